# The farandole command: the launcher and whatever other commands this build has. Included last, when
# all their targets are known.
option(FARANDOLE_BENCH "The command has the subcommand bench" ON)
if(TARGET farandole_launch)
  add_executable(farandole_command ${CMAKE_CURRENT_LIST_DIR}/launch/main.cc)
  set_target_properties(farandole_command PROPERTIES OUTPUT_NAME farandole)
  target_link_libraries(farandole_command PRIVATE farandole_launch)
  if(FARANDOLE_BENCH AND TARGET farandole_bench)
    target_link_libraries(farandole_command PRIVATE farandole_bench)
    target_compile_definitions(farandole_command PRIVATE FARANDOLE_WITH_BENCH)
  endif()
  install(TARGETS farandole_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
