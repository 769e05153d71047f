# SPDX-License-Identifier: Apache-2.0
# The system's headers that most files include, compiled once instead of in every file: about two fifths
# of the compiler's time. Files name what they include all the same: the lint preset builds without this.
option(WEFT_PRECOMPILE "Precompile the system headers that most files include (GCC)" ON)

set(WEFT_COMMON_HEADERS
  <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <deque> <functional> <limits> <map> <memory>
  <optional> <set> <string> <utility> <vector>
  <absl/base/thread_annotations.h> <absl/container/flat_hash_map.h> <absl/functional/any_invocable.h>
  <absl/functional/function_ref.h> <absl/status/status.h> <absl/status/statusor.h> <absl/strings/match.h>
  <absl/strings/numbers.h> <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/strings/str_split.h>
  <absl/strings/string_view.h> <absl/synchronization/mutex.h> <absl/time/time.h> <absl/types/span.h>)
set(WEFT_TEST_HEADERS ${WEFT_COMMON_HEADERS} <gtest/gtest.h> <gmock/gmock.h>)

# An object library `name` of HEADERS, compiled with OPTIONS as those of its users are, who link LIBS.
function(weft_header_library name)
  cmake_parse_arguments(PARSE_ARGV 1 it "" "" "LIBS;HEADERS;OPTIONS")
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR NOT WEFT_PRECOMPILE)
    return()
  endif()
  set(empty ${CMAKE_BINARY_DIR}/generated/precompiled.cc)
  file(CONFIGURE OUTPUT ${empty} CONTENT "// Generated: only its headers count.\n")
  add_library(${name} OBJECT ${empty})
  target_link_libraries(${name} PRIVATE ${it_LIBS})
  target_compile_options(${name} PRIVATE ${it_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${it_HEADERS})
endfunction()

weft_header_library(weft_headers LIBS weft_flags absl::flat_hash_map absl::statusor absl::synchronization
  HEADERS ${WEFT_COMMON_HEADERS})
if(WEFT_TESTS)
  # As the programs of tests are: they take only headers compiled with the same flags.
  weft_header_library(weft_test_headers LIBS weft_flags absl::flat_hash_map absl::statusor GTest::gmock
    HEADERS ${WEFT_TEST_HEADERS} OPTIONS -fPIE $<$<CONFIG:Release>:-O1>)
endif()

# The C++ files of `target` take their headers from `from`: weft_headers, or weft_test_headers for programs
# that link GoogleTest and are optimised as tests are.
function(weft_precompiled target from)
  if(TARGET ${from})
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

# The files named after them are optimised with `options` in the release preset. They take no precompiled
# headers, which must be compiled with the same.
function(weft_optimised_as options)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:${options}>"
    SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# A room's files compile several at once, in half the time: whoever edits one of them often takes the dev
# preset, which is without.
option(WEFT_MERGE_SOURCES "Compile several files of a room at once" ON)
function(weft_merge_sources target)
  if(WEFT_MERGE_SOURCES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

# Those that have names of their own for what other files of the room name so too.
function(weft_compiled_alone)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
