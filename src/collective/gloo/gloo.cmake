# The gloo engine, if libgloo-dev is installed: a library that is loaded on demand, because Gloo needs libraries that the
# product does not.
find_path(FARANDOLE_GLOO_INCLUDE gloo/allgatherv.h)
find_library(FARANDOLE_GLOO_LIBRARY gloo)
if(FARANDOLE_GLOO_INCLUDE AND FARANDOLE_GLOO_LIBRARY AND NOT CMAKE_CROSSCOMPILING)
  file(GLOB gloo_plugin CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/plugin/*.cc)
  add_library(farandole_gloo_engine MODULE ${gloo_plugin})
  farandole_unity(farandole_gloo_engine ${gloo_plugin})
  set_target_properties(farandole_gloo_engine PROPERTIES OUTPUT_NAME farandole_gloo
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/farandole/engines)
  target_include_directories(farandole_gloo_engine SYSTEM PRIVATE ${FARANDOLE_GLOO_INCLUDE})
  target_link_libraries(farandole_gloo_engine PRIVATE farandole_base ${FARANDOLE_GLOO_LIBRARY} ${CMAKE_DL_LIBS})
  target_link_options(farandole_gloo_engine PRIVATE LINKER:--exclude-libs,ALL
    LINKER:--version-script=${CMAKE_CURRENT_LIST_DIR}/../engine_exports.map)
  install(TARGETS farandole_gloo_engine LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/farandole/engines)
endif()
