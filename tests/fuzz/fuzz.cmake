# libFuzzer programs, one per decoder: clang only, -DFARANDOLE_FUZZ=ON. Run one with
#   bin/fuzz_bootstrap_frame -max_total_time=60
option(FARANDOLE_FUZZ "Build the fuzzers (clang)" OFF)
if(FARANDOLE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "FARANDOLE_FUZZ needs clang: -DCMAKE_CXX_COMPILER=clang++")
  endif()
  # The decoders' own sources, so that they are instrumented whatever the library was built with.
  function(farandole_fuzzer name)
    add_executable(fuzz_${name} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${name}_fuzz.cc
      ${PROJECT_SOURCE_DIR}/src/base/status.cc ${ARGN})
    target_link_libraries(fuzz_${name} PRIVATE farandole_options)
    target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer,address,undefined
      -fno-sanitize-recover=all -g -O1)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer,address,undefined)
    add_test(NAME fuzz.${name} COMMAND fuzz_${name} -runs=100000 -seed=1 -max_len=4096)
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 120)
  endfunction()
  farandole_fuzzer(bootstrap_frame ${PROJECT_SOURCE_DIR}/src/bootstrap/wire.cc)
  set(host_parsers host_spec.cc host_list.cc host_range.cc host_file.cc read_file.cc text.cc
    scheduler.cc slurm_allocation.cc batch_allocation.cc cpu_list.cc)
  list(TRANSFORM host_parsers PREPEND ${PROJECT_SOURCE_DIR}/src/launch/hosts/)
  farandole_fuzzer(host_list ${host_parsers})
endif()
