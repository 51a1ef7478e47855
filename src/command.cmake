# The farandole command: the launcher and whatever other commands this build has. Included last, when
# all their targets are known.
option(FARANDOLE_BENCH "The command has the subcommand bench" ON)
if(TARGET farandole_run)
  file(GLOB command_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/command/*.cc)
  add_executable(farandole_command ${command_sources})
  set_target_properties(farandole_command PROPERTIES OUTPUT_NAME farandole)
  target_link_libraries(farandole_command PRIVATE farandole_run farandole_doctor farandole_init farandole_compat)
  farandole_self_contained(farandole_command)
  if(FARANDOLE_BENCH AND TARGET farandole_bench)
    target_link_libraries(farandole_command PRIVATE farandole_bench)
    target_compile_definitions(farandole_command PRIVATE FARANDOLE_WITH_BENCH)
  endif()
  set_target_properties(farandole_command PROPERTIES BUILD_RPATH "$ORIGIN/../lib")
  if(TARGET farandole)
    add_dependencies(farandole_command farandole)
  endif()
  install(TARGETS farandole_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

  # The names of the commands it replaces. Those that other packages install under the same name stand
  # apart: a user who wants them puts compat/bin into PATH.
  foreach(pair bin:horovodrun bin:ipexrun compat/bin:torchrun compat/bin:mpirun compat/bin:mpiexec)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 folder)
    list(GET pair 1 name)
    string(REGEX REPLACE "[^/]+" ".." up ${folder})  # to the root of the tree
    add_custom_command(TARGET farandole_command POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/${folder}
      COMMAND ${CMAKE_COMMAND} -E create_symlink ${up}/bin/farandole ${CMAKE_BINARY_DIR}/${folder}/${name})
    install(FILES ${CMAKE_BINARY_DIR}/${folder}/${name} DESTINATION ${folder})
  endforeach()
endif()
