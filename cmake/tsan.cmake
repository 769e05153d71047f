# SPDX-License-Identifier: Apache-2.0
# Tells ThreadSanitizer what the system's Abseil and gRPC do: see tsan_libraries.cc.
add_library(weft_tsan_libraries STATIC ${CMAKE_SOURCE_DIR}/cmake/tsan_libraries.cc)
file(STRINGS ${CMAKE_SOURCE_DIR}/cmake/tsan_libraries.cc told REGEX "^WEFT_(TOLD|LOCKS|UNLOCKS|WAITS)\\(_Z")
foreach(line IN LISTS told)
  string(REGEX MATCH "_Z[A-Za-z0-9_]+" symbol "${line}")
  add_link_options(-Wl,--wrap=${symbol})
endforeach()
link_libraries(weft_tsan_libraries)
