# find_package(quern) for users of the installed package.
include(CMakePackageConfigHelpers)
install(EXPORT quernTargets NAMESPACE quern:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/quern)
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/quernConfig.cmake.in ${CMAKE_BINARY_DIR}/quernConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/quern)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/quernConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/quernConfig.cmake ${CMAKE_BINARY_DIR}/quernConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/quern)
