# find_package(quern) for users of the installed package.
include(CMakePackageConfigHelpers)
set(quern_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/quern)
set(quern_worker_folder ${CMAKE_INSTALL_LIBEXECDIR}/quern)
install(EXPORT quernTargets NAMESPACE quern:: DESTINATION ${quern_cmake_folder})
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/quernConfig.cmake.in ${CMAKE_BINARY_DIR}/quernConfig.cmake
  INSTALL_DESTINATION ${quern_cmake_folder} PATH_VARS quern_worker_folder)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/quernConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/quernConfig.cmake ${CMAKE_BINARY_DIR}/quernConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/quern_worker_location.cc.in
        DESTINATION ${quern_cmake_folder})
