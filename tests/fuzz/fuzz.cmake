# libFuzzer programs, one per family of decoders: clang only, -DFARANDOLE_FUZZ=ON. tools/fuzz builds and runs them all.
option(FARANDOLE_FUZZ "Build the fuzzers (clang)" OFF)
if(FARANDOLE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "FARANDOLE_FUZZ needs clang: -DCMAKE_CXX_COMPILER=clang++")
  endif()
  add_custom_target(fuzzers)
  # libFuzzer's entry points, and what the fuzzers of single decoders have in common.
  add_library(fuzz_main OBJECT ${CMAKE_CURRENT_LIST_DIR}/fuzz_main.cc)
  target_link_libraries(fuzz_main PUBLIC farandole_options)
  target_compile_options(fuzz_main PUBLIC -O1)
  target_link_options(fuzz_main PUBLIC -fsanitize=fuzzer)
  add_library(fuzz_common OBJECT ${PROJECT_SOURCE_DIR}/src/base/status.cc ${PROJECT_SOURCE_DIR}/src/base/limits.cc
    ${PROJECT_SOURCE_DIR}/src/bootstrap/wire.cc)
  target_link_libraries(fuzz_common PUBLIC farandole_options)
  target_compile_options(fuzz_common PUBLIC -O1)

  # farandole_fuzzer(NAME SOURCES…): NAME_fuzz.cc and the decoders' own sources (relative to src/): a fuzzer of one
  # decoder need not wait for whole layers.
  function(farandole_fuzzer name)
    list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/src/)
    add_executable(fuzz_${name} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${name}_fuzz.cc ${ARGN})
    target_link_libraries(fuzz_${name} PRIVATE fuzz_main fuzz_common)
    add_dependencies(fuzzers fuzz_${name})
  endfunction()

  set(fashion ../examples/01_fashion_mnist)
  set(hosts host_spec host_list host_file scheduler slurm_allocation batch_allocation)
  list(TRANSFORM hosts REPLACE "(.+)" "launch/hosts/\\1.cc")
  list(APPEND hosts base/files.cc base/slurm_notation.cc base/text.cc process/cpu_list.cc)
  set(checks checks checks_inputs checks_limits checks_network checks_software checks_ssh
    checks_surroundings matrix report)
  list(TRANSFORM checks REPLACE "(.+)" "doctor/\\1.cc")
  list(APPEND checks launch/facts/fact_access.cc launch/facts/facts_request.cc)

  find_package(nlohmann_json REQUIRED)
  find_package(yaml-cpp REQUIRED)
  farandole_fuzzer(bootstrap_frame)
  farandole_fuzzer(handshake bootstrap/handshake.cc bootstrap/meeting_messages.cc bootstrap/unix_socket.cc base/fd_passing.cc)
  farandole_fuzzer(control control/messages.cc control/meta.cc control/byte_ring.cc control/ordered_record.cc
    base/types.cc)
  farandole_fuzzer(agent_frame launch/remote/agent_wire.cc)
  farandole_fuzzer(link_frame transport/frame.cc transport/link_address.cc transport/inbox.cc transport/outbox.cc transport/wire_security.cc)
  farandole_fuzzer(host_list ${hosts})
  farandole_fuzzer(config run/run_config.cc compat/horovodrun_config.cc base/suggest.cc base/text.cc)
  farandole_fuzzer(doctor ${checks})
  # Plays against whole layers.
  add_executable(fuzz_peer ${CMAKE_CURRENT_LIST_DIR}/peer_fuzz.cc)
  target_link_libraries(fuzz_peer PRIVATE fuzz_main farandole_conductor)
  add_dependencies(fuzzers fuzz_peer)
  farandole_fuzzer(example_files ${fashion}/idx.cc ${fashion}/checkpoint.cc)
  target_link_libraries(fuzz_handshake PRIVATE OpenSSL::Crypto)
  target_link_libraries(fuzz_config PRIVATE yaml-cpp)
  target_link_libraries(fuzz_doctor PRIVATE nlohmann_json::nlohmann_json)
  target_link_libraries(fuzz_example_files PRIVATE ZLIB::ZLIB)
  target_include_directories(fuzz_example_files PRIVATE ${PROJECT_SOURCE_DIR}/examples/01_fashion_mnist)
endif()
