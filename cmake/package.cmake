# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` gives: bin/weft, one shared library, the headers that weft/weft.h needs, and
# find_package(weft).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# One library of all rooms that a program may call. Third-party code comes from the system's shared
# libraries; what is exported is named in weft.map, so that generated protobuf classes (whose names are
# TensorFlow's) stay inside.
set(rooms weft_base weft_tensor weft_graph weft_kernel weft_device weft_ops weft_gradients weft_session weft_api weft_cluster weft_client weft_server weft_train weft_estimator weft_imperative)
set(source ${CMAKE_BINARY_DIR}/generated/weft_library.cc)
file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "// Generated: the library is made of the rooms' archives.\n")
add_library(weft_library SHARED ${source})
set_target_properties(weft_library PROPERTIES OUTPUT_NAME weft EXPORT_NAME weft VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/weft.map)
list(JOIN rooms "," whole)
set_target_properties(weft_library PROPERTIES LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${whole}")
target_link_libraries(weft_library PRIVATE ${rooms}
  PUBLIC absl::any_invocable absl::base absl::core_headers absl::flat_hash_map absl::function_ref absl::span
         absl::status absl::statusor absl::strings absl::synchronization absl::time Threads::Threads)
target_link_options(weft_library PRIVATE LINKER:--version-script=${CMAKE_SOURCE_DIR}/cmake/weft.map
                    LINKER:--no-undefined)
target_compile_features(weft_library INTERFACE cxx_std_20)
target_include_directories(weft_library INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/weft>)

# The same for programs in C and other languages: one header of C, no C++ in what is shown.
set(source ${CMAKE_BINARY_DIR}/generated/weft_c_library.cc)
file(CONFIGURE OUTPUT ${source} @ONLY CONTENT "// Generated: the library is made of the rooms' archives.\n")
add_library(weft_c_library SHARED ${source})
set_target_properties(weft_c_library PROPERTIES OUTPUT_NAME weft_c EXPORT_NAME weft_c VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/weft_c.map
  LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,weft_c_api")
target_link_libraries(weft_c_library PRIVATE weft_c_api)
target_link_options(weft_c_library PRIVATE LINKER:--version-script=${CMAKE_SOURCE_DIR}/cmake/weft_c.map
                    LINKER:--no-undefined)
target_include_directories(weft_c_library INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src/weft/c_api>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
add_library(weft::c ALIAS weft_c_library)
install(FILES ${CMAKE_SOURCE_DIR}/src/weft/c_api/weft_c.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

set(headers ${WEFT_PUBLIC_HEADERS})
# For libraries of devices, which are C.
weft_headers_of(weft/device/plugin/weft_device.h headers)
foreach(header IN LISTS headers)
  get_filename_component(folder ${header} DIRECTORY)
  set(root ${CMAKE_SOURCE_DIR}/src)
  if(NOT EXISTS ${root}/${header})
    set(root ${CMAKE_BINARY_DIR}/generated)
  endif()
  install(FILES ${root}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft/${folder})
endforeach()

install(TARGETS weft RUNTIME)
install(TARGETS weft_library weft_c_library EXPORT weftTargets LIBRARY NAMELINK_SKIP)
install(TARGETS weft_library weft_c_library LIBRARY NAMELINK_ONLY)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
install(EXPORT weftTargets NAMESPACE weft:: DESTINATION ${package})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/weftConfig.cmake.in ${CMAKE_BINARY_DIR}/weftConfig.cmake
                              INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/weftConfig.cmake ${CMAKE_BINARY_DIR}/weftConfigVersion.cmake
              ${CMAKE_SOURCE_DIR}/cmake/op_library.cmake
        DESTINATION ${package})
