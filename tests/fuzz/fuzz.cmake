# libFuzzer programs, one per decoder: clang only, -DFARANDOLE_FUZZ=ON. Run one with
#   bin/fuzz_bootstrap_frame -max_total_time=60
option(FARANDOLE_FUZZ "Build the fuzzers (clang)" OFF)
if(FARANDOLE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "FARANDOLE_FUZZ needs clang: -DCMAKE_CXX_COMPILER=clang++")
  endif()
  # The decoder's own sources, so that they are instrumented whatever the library was built with.
  add_executable(fuzz_bootstrap_frame ${CMAKE_CURRENT_LIST_DIR}/bootstrap_frame_fuzz.cc
    ${PROJECT_SOURCE_DIR}/src/bootstrap/wire.cc ${PROJECT_SOURCE_DIR}/src/base/status.cc)
  target_link_libraries(fuzz_bootstrap_frame PRIVATE farandole_options)
  target_compile_options(fuzz_bootstrap_frame PRIVATE -fsanitize=fuzzer,address,undefined
    -fno-sanitize-recover=all -g -O1)
  target_link_options(fuzz_bootstrap_frame PRIVATE -fsanitize=fuzzer,address,undefined)
  add_test(NAME fuzz.bootstrap_frame COMMAND fuzz_bootstrap_frame -runs=100000 -seed=1 -max_len=4096)
  set_tests_properties(fuzz.bootstrap_frame PROPERTIES LABELS fuzz TIMEOUT 120)
endif()
