# `farandole bench` end to end: what it measures is checked, never how fast it was.
if(TARGET farandole_command AND TARGET farandole_bench)
  add_test(NAME multiproc.bench COMMAND ${CMAKE_CURRENT_LIST_DIR}/bench_test.sh $<TARGET_FILE:farandole_command>)
  set_tests_properties(multiproc.bench PROPERTIES LABELS multiproc TIMEOUT 240)
  add_test(NAME multiproc.bench_launch COMMAND ${CMAKE_CURRENT_LIST_DIR}/launch_test.sh $<TARGET_FILE:farandole_command>)
  set_tests_properties(multiproc.bench_launch PROPERTIES LABELS multiproc TIMEOUT 120)
endif()
