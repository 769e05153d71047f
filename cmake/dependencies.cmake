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

# By which name programs that are linked against `library` ask for it.
function(weft_soname library name)
  execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${library} OUTPUT_VARIABLE headers)
  string(REGEX MATCH "SONAME +([^ \n]+)" line "${headers}")
  if(NOT line)
    message(FATAL_ERROR "${library} tells no SONAME")
  endif()
  set(${name} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

# oneDNN: headers only. The library is loaded when it is first needed (device/cpu/dnnl_library.h), by
# the name that programs linked against it would ask for.
find_library(WEFT_DNNL_LIBRARY dnnl REQUIRED)
find_path(WEFT_DNNL_INCLUDE dnnl.h REQUIRED)
weft_soname(${WEFT_DNNL_LIBRARY} dnnl_soname)
add_library(weft_dnnl INTERFACE)
target_compile_definitions(weft_dnnl INTERFACE WEFT_DNNL_SONAME="${dnnl_soname}")
target_link_libraries(weft_dnnl INTERFACE ${CMAKE_DL_LIBS})
target_include_directories(weft_dnnl SYSTEM INTERFACE ${WEFT_DNNL_INCLUDE})

# UCX: headers only, for it is loaded where it is asked for (weft/transport/ucx/library.h). Without it
# weft says that UCX is not in this build.
find_library(WEFT_UCP_LIBRARY ucp)
find_path(WEFT_UCP_INCLUDE ucp/api/ucp.h)
if(WEFT_UCP_LIBRARY AND WEFT_UCP_INCLUDE)
  weft_soname(${WEFT_UCP_LIBRARY} ucp_soname)
  add_library(weft_ucx INTERFACE)
  target_compile_definitions(weft_ucx INTERFACE WEFT_UCP_SONAME="${ucp_soname}")
  target_link_libraries(weft_ucx INTERFACE ${CMAKE_DL_LIBS})
  target_include_directories(weft_ucx SYSTEM INTERFACE ${WEFT_UCP_INCLUDE})
else()
  message(STATUS "UCX (libucx-dev) was not found: weft is built without it")
endif()

if(WEFT_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
