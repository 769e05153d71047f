# SPDX-License-Identifier: Apache-2.0
# One build target a room.
#
#   weft_room(tensor DEPS base proto LIBS absl::span TEST_DEPS ... TEST_LIBS ...)
#
# makes the static library weft_tensor (alias weft::tensor) of every *.cc in the calling folder and the
# sub-folders named by DIRS, and of its *_test.cc files the program tensor_test, label `unit`.
# DEPS are rooms; tools/check_layers.py holds them against layers.toml. *_fuzz.cc become libFuzzer targets
# with WEFT_FUZZ and short tests without, *_benchmark.cc become programs when Google Benchmark is there.
function(weft_room name)
  cmake_parse_arguments(ROOM "" "" "DEPS;LIBS;PRIVATE_LIBS;DIRS;TEST_DEPS;TEST_LIBS;EXTRA_SOURCES" ${ARGN})
  set(patterns *.cc)
  foreach(dir IN LISTS ROOM_DIRS)
    list(APPEND patterns ${dir}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(tests ${sources})
  set(fuzzers ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|benchmark)\\.cc$")

  list(TRANSFORM ROOM_DEPS PREPEND weft_ OUTPUT_VARIABLE dep_targets)
  list(TRANSFORM ROOM_TEST_DEPS PREPEND weft_ OUTPUT_VARIABLE test_dep_targets)
  if(sources OR ROOM_EXTRA_SOURCES)
    add_library(weft_${name} STATIC ${sources} ${ROOM_EXTRA_SOURCES})
    target_link_libraries(weft_${name} PUBLIC ${dep_targets} ${ROOM_LIBS} PRIVATE weft_flags ${ROOM_PRIVATE_LIBS})
    target_include_directories(weft_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    weft_precompiled(weft_${name} weft_headers)
    weft_merge_sources(weft_${name})
  else()
    add_library(weft_${name} INTERFACE)
    target_link_libraries(weft_${name} INTERFACE ${dep_targets} ${ROOM_LIBS})
    target_include_directories(weft_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src)
  endif()
  add_library(weft::${name} ALIAS weft_${name})

  if(WEFT_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE weft_${name} ${test_dep_targets} ${ROOM_TEST_LIBS}
                          weft_flags GTest::gmock GTest::gtest_main)
    # What tests call is optimised as ever; they themselves need a fifth less of the compiler's time so.
    target_compile_options(${name}_test PRIVATE $<$<CONFIG:Release>:-O1>)
    weft_precompiled(${name}_test weft_test_headers)
    weft_merge_sources(${name}_test)
    gtest_discover_tests(${name}_test TEST_PREFIX ${name}/ DISCOVERY_MODE PRE_TEST
                         PROPERTIES LABELS unit TIMEOUT 120)
  endif()
  if(WEFT_TESTS AND NOT WEFT_FUZZ)
    # Without libFuzzer each target runs for a moment on seeded random bytes, as a unit test.
    foreach(fuzzer IN LISTS fuzzers)
      get_filename_component(stem ${fuzzer} NAME_WE)
      if(NOT TARGET weft_fuzz_driver)
        add_library(weft_fuzz_driver OBJECT ${CMAKE_SOURCE_DIR}/tests/fuzz/driver.cc)
        target_link_libraries(weft_fuzz_driver PRIVATE weft_flags)
      endif()
      add_executable(${stem} ${fuzzer})
      target_link_libraries(${stem} PRIVATE weft_fuzz_driver weft_${name} ${test_dep_targets} ${ROOM_TEST_LIBS} weft_flags)
      add_test(NAME fuzz/${stem} COMMAND ${stem})
      set_tests_properties(fuzz/${stem} PROPERTIES LABELS unit TIMEOUT 120)
    endforeach()
  endif()
  if(WEFT_FUZZ)
    foreach(fuzzer IN LISTS fuzzers)
      get_filename_component(stem ${fuzzer} NAME_WE)
      add_executable(${stem} ${fuzzer})
      target_compile_options(${stem} PRIVATE -fsanitize=fuzzer)
      target_link_options(${stem} PRIVATE -fsanitize=fuzzer)
      target_link_libraries(${stem} PRIVATE weft_${name} ${test_dep_targets} weft_flags)
      set_property(GLOBAL APPEND PROPERTY WEFT_FUZZERS ${stem})
    endforeach()
  endif()
endfunction()
