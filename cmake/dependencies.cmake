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
find_package(SQLite3 REQUIRED)
find_package(hwy REQUIRED)
find_package(GIF REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(Eigen3 REQUIRED)

# Debian's libre2 has no CMake config.
find_library(WEFT_RE2_LIBRARY re2 REQUIRED)

# oneDNN: headers only. The library is loaded when it is first needed (device/cpu/dnnl_library.h), by
# the name that programs linked against it would ask for.
find_library(WEFT_DNNL_LIBRARY dnnl REQUIRED)
find_path(WEFT_DNNL_INCLUDE dnnl.h REQUIRED)
execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${WEFT_DNNL_LIBRARY} OUTPUT_VARIABLE dnnl_headers)
string(REGEX MATCH "SONAME +([^ \n]+)" dnnl_soname "${dnnl_headers}")
if(NOT CMAKE_MATCH_1)
  message(FATAL_ERROR "${WEFT_DNNL_LIBRARY} tells no SONAME")
endif()
add_library(weft_dnnl INTERFACE)
target_compile_definitions(weft_dnnl INTERFACE WEFT_DNNL_SONAME="${CMAKE_MATCH_1}")
target_link_libraries(weft_dnnl INTERFACE ${CMAKE_DL_LIBS})
target_include_directories(weft_dnnl SYSTEM INTERFACE ${WEFT_DNNL_INCLUDE})

if(WEFT_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
