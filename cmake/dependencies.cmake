# SPDX-License-Identifier: Apache-2.0
# Every third-party library, found once. All of them are Debian packages (tools/packages.txt).
# Which room may use which of them is written in layers.toml.

find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Snappy REQUIRED)
find_package(ZLIB REQUIRED)
find_package(hwy REQUIRED)

# Debian's dnnl CMake config demands OpenCL headers; link the library by hand.
find_library(WEFT_DNNL_LIBRARY dnnl REQUIRED)
find_path(WEFT_DNNL_INCLUDE dnnl.hpp REQUIRED)
add_library(weft_dnnl INTERFACE)
target_link_libraries(weft_dnnl INTERFACE ${WEFT_DNNL_LIBRARY})
target_include_directories(weft_dnnl SYSTEM INTERFACE ${WEFT_DNNL_INCLUDE})

if(WEFT_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
