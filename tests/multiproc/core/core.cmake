# The library behind the C ABI, with real ranks: faults and behaviour.
set(core_dir ${CMAKE_CURRENT_LIST_DIR})

if(TARGET farandole)
  file(GLOB core_case_sources CONFIGURE_DEPENDS ${core_dir}/case_*.cc)
  add_executable(core_rank ${core_dir}/core_rank.cc ${core_case_sources})
  farandole_unity(core_rank ${core_case_sources})
  target_link_libraries(core_rank PRIVATE farandole farandole_options)
  target_include_directories(core_rank PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  if(FARANDOLE_SANITIZE)
    target_compile_options(core_rank PRIVATE -O1)  # it looks at every element, again and again
  endif()

  file(GLOB core_test_sources CONFIGURE_DEPENDS ${core_dir}/core_*_test.cc)
  add_executable(multiproc_core ${core_test_sources} ${core_dir}/job.cc)
  farandole_unity(multiproc_core ${core_test_sources})
  target_link_libraries(multiproc_core PRIVATE test_paths farandole_bootstrap GTest::gtest_main GTest::gmock)
  add_dependencies(multiproc_core core_rank)
  if(TARGET farandole_gloo_engine)
    add_dependencies(multiproc_core farandole_gloo_engine)
    target_compile_definitions(multiproc_core PRIVATE FARANDOLE_HAS_GLOO)
  endif()
  farandole_light_test(multiproc_core)
  gtest_discover_tests(multiproc_core TEST_PREFIX multiproc. PROPERTIES LABELS multiproc TIMEOUT 120 DISCOVERY_TIMEOUT 60)

  # The header is C, and so may be a program that uses it.
  add_executable(core_c_api ${core_dir}/c_api_test.c)
  set_target_properties(core_c_api PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(core_c_api PRIVATE -Wall -Wextra -Wpedantic -Werror)
  target_link_libraries(core_c_api PRIVATE farandole)
  if(FARANDOLE_SANITIZE)  # whose run-time library for C++ the shared library needs
    target_link_options(core_c_api PRIVATE -fsanitize=${FARANDOLE_SANITIZE})
    set_target_properties(core_c_api PROPERTIES LINKER_LANGUAGE CXX)
  endif()
  if(TARGET farandole_command)
    add_test(NAME multiproc.core.c_program COMMAND farandole_command run -np 2 $<TARGET_FILE:core_c_api>)
    set_tests_properties(multiproc.core.c_program PROPERTIES
      LABELS multiproc TIMEOUT 60 PASS_REGULAR_EXPRESSION "ok: rank 0 of 2.*ok: rank 1 of 2|ok: rank 1 of 2.*ok: rank 0 of 2")
  endif()
endif()
