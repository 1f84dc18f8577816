# quern_library(<folder> DEPENDS <targets>…): the library of one folder, from every .cc file in it;
# its headers are installed as quern/<folder>/<name>.h.
function(quern_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;PRIVATE" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  add_library(quern_${name} STATIC ${sources})
  add_library(quern::${name} ALIAS quern_${name})
  set_target_properties(quern_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(quern_${name} PUBLIC cxx_std_20)
  target_include_directories(
    quern_${name}
    PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
           # Our own headers name each other without the prefix.
           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/quern>)
  target_link_libraries(quern_${name} PUBLIC ${ARG_DEPENDS}
                        PRIVATE $<BUILD_INTERFACE:quern_flags> ${ARG_PRIVATE})
  install(TARGETS quern_${name} EXPORT quernTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quern/${name})
endfunction()
