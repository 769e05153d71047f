# SPDX-License-Identifier: Apache-2.0
# weft_add_op_library(NAME source...): a shared library NAME.so of ops, for weft server --op_library and LoadOpLibrary.
# It does not link weft: the program that loads it has weft's code, once.
function(weft_add_op_library name)
  add_library(${name} MODULE ${ARGN})
  set_target_properties(${name} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_link_libraries(${name} PRIVATE weft::headers)
  if(TARGET weft_api)
    add_dependencies(${name} weft_api)  # its generated header
  endif()
endfunction()
