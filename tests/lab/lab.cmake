# Tests on several hosts that are namespaces of this machine (tools/lab). Need root.
# The same Command as the launcher's tests, for another command: tools/lab, which enters the hosts.
add_library(lab_harness STATIC ${CMAKE_CURRENT_LIST_DIR}/../multiproc/launch/command.cc
  ${CMAKE_CURRENT_LIST_DIR}/lab.cc)
target_link_libraries(lab_harness PUBLIC test_paths farandole_base GTest::gtest)

add_executable(lab_delay ${CMAKE_CURRENT_LIST_DIR}/delay.cc)
target_link_libraries(lab_delay PRIVATE farandole_base)

add_executable(lab_relay_actor ${CMAKE_CURRENT_LIST_DIR}/relay_actor.cc)
target_link_libraries(lab_relay_actor PRIVATE farandole_bootstrap)

# Every laboratory has a name of its own: tests may run at the same time.
file(GLOB lab_test_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*_test.cc)
find_package(nlohmann_json REQUIRED)
add_executable(lab_tests ${lab_test_sources})
farandole_unity(lab_tests ${lab_test_sources})
target_link_libraries(lab_tests PRIVATE lab_harness GTest::gtest_main GTest::gmock nlohmann_json::nlohmann_json)
add_dependencies(lab_tests farandole_command lab_delay lab_relay_actor conformance_rank batches_rank core_rank)
farandole_light_test(lab_tests)
gtest_discover_tests(lab_tests TEST_PREFIX lab. PROPERTIES LABELS lab TIMEOUT 120 COST 10 DISCOVERY_TIMEOUT 60)
