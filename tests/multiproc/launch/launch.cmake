# The launcher's tests drive the real command.
add_executable(launch_actor ${CMAKE_CURRENT_LIST_DIR}/actor.cc)
target_link_libraries(launch_actor PRIVATE farandole_bootstrap)

file(GLOB launch_test_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cc)
list(FILTER launch_test_sources EXCLUDE REGEX "/actor\\.cc$")
add_executable(multiproc_launch ${launch_test_sources})
farandole_unity(multiproc_launch ${launch_test_sources})
target_link_libraries(multiproc_launch PRIVATE test_paths farandole_launch GTest::gtest_main GTest::gmock)
add_dependencies(multiproc_launch farandole_command farandole_python launch_actor)
farandole_light_test(multiproc_launch)
gtest_discover_tests(multiproc_launch TEST_PREFIX multiproc. PROPERTIES LABELS multiproc TIMEOUT 120 DISCOVERY_TIMEOUT 60)
