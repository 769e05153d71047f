# SPDX-License-Identifier: Apache-2.0
# The headers that programs and op libraries include, WEFT_PUBLIC_HEADERS, and what they are: a library that was
# built with others is refused (weft/kernel/op_library.h).

# The headers that `header` (a path from an include root) includes, itself too, appended to `out`.
function(weft_headers_of header out)
  set(found ${${out}})
  if(header IN_LIST found)
    return()
  endif()
  list(APPEND found ${header})
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/${header})
    set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS src/${header})
    file(STRINGS ${CMAKE_SOURCE_DIR}/src/${header} includes REGEX "^#include \"")
    foreach(line IN LISTS includes)
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included ${line})
      if(included MATCHES "^(base|net|weft|proto)/")
        weft_headers_of(${included} found)
      endif()
    endforeach()
  endif()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

set(WEFT_PUBLIC_HEADERS "")
foreach(header weft/weft.h weft/models.h weft/eager.h weft/estimator.h
    weft/graph/output_ports.h weft/kernel/op_library.h weft/ops/optimizer_rule.h)
  weft_headers_of(${header} WEFT_PUBLIC_HEADERS)
endforeach()

set(contents "")
foreach(header IN LISTS WEFT_PUBLIC_HEADERS)
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/${header})  # what is generated follows from these
    file(SHA256 ${CMAKE_SOURCE_DIR}/src/${header} content)
    string(APPEND contents "${header} ${content}\n")
  endif()
endforeach()
string(SHA256 id "${contents}")
string(SUBSTRING ${id} 0 16 id)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/weft/kernel/build_id.h @ONLY CONTENT "// Generated from weft's public headers.
#pragma once

#define WEFT_HEADERS_ID \"${id}\"
")

# For op libraries of this tree, as weftConfig.cmake makes it of the installed ones.
add_library(weft_public_headers INTERFACE)
target_include_directories(weft_public_headers INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)
target_link_libraries(weft_public_headers INTERFACE absl::flat_hash_map absl::span absl::status absl::statusor
  absl::strings absl::synchronization absl::any_invocable absl::function_ref absl::time)
add_library(weft::headers ALIAS weft_public_headers)
