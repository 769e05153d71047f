# SPDX-License-Identifier: Apache-2.0
# Compiler cache, linker, warnings and sanitizers. Flags apply to our targets only (weft_flags).

find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE)
  # Paths inside the tree count as relative, so that every clone shares one cache; precompiled headers
  # (precompiled.cmake) count by their content, which the cache hands to every clone alike.
  set(launcher env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_INODECACHE=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${WEFT_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
find_program(WEFT_MOLD mold)
if(WEFT_MOLD AND NOT WEFT_FUZZ)
  # What runs only at start lies together: a program touches, and so keeps in memory, the code that it uses.
  add_link_options(-fuse-ld=mold -Wl,-z,keep-text-section-prefix)
endif()

add_library(weft_flags INTERFACE)
target_compile_options(weft_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror
  -Wno-missing-field-initializers -fno-math-errno -fvisibility-inlines-hidden)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(weft_flags INTERFACE -Wthread-safety)
else()
  # GCC 12 reports false positives of these through inlined containers.
  target_compile_options(weft_flags INTERFACE
    -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds -Wno-restrict)
endif()
target_include_directories(weft_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
# What some libraries ask of those who include them, said to all: precompiled headers need one answer.
target_compile_options(weft_flags INTERFACE -pthread)
target_compile_definitions(weft_flags INTERFACE HWY_SHARED_DEFINE)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(weft_flags INTERFACE -fpch-preprocess)  # so that ccache sees which headers a file takes
endif()

if(WEFT_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
elseif(WEFT_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
  include(tsan)
elseif(WEFT_SANITIZE)
  message(FATAL_ERROR "WEFT_SANITIZE is '${WEFT_SANITIZE}': expected address, thread or nothing")
endif()

if(WEFT_FUZZ)
  # The code under the fuzzer tells it which paths an input took.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
