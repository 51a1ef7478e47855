# One suite of collectives × dtypes × ops × sizes × ranks. Every engine runs this same program.
add_executable(conformance_rank ${CMAKE_CURRENT_LIST_DIR}/conformance_rank.cc)
target_include_directories(conformance_rank PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(conformance_rank PRIVATE farandole farandole_options)

# Under a sanitizer the paths count, not the sizes of the job; the engine's own tests have more ranks there.
set(conformance_ranks 1 2 3 5 8)
if(FARANDOLE_SANITIZE)
  set(conformance_ranks 2 3)
endif()
foreach(case allreduce scales bits allgather broadcast alltoall reducescatter rooted adasum)
  foreach(ranks ${conformance_ranks})
    add_test(NAME conformance.shm.${case}.np${ranks}
      COMMAND farandole_command run -np ${ranks} $<TARGET_FILE:conformance_rank> ${case})
    set_tests_properties(conformance.shm.${case}.np${ranks} PROPERTIES LABELS conformance TIMEOUT 300)
  endforeach()
endforeach()

# The engine between machines, among ranks of this one.
foreach(case allreduce scales bits allgather broadcast alltoall reducescatter rooted adasum)
  foreach(ranks 2 3)
    add_test(NAME conformance.link.${case}.np${ranks}
      COMMAND farandole_command run -np ${ranks} --no-hierarchy $<TARGET_FILE:conformance_rank> ${case})
    set_tests_properties(conformance.link.${case}.np${ranks} PROPERTIES LABELS conformance TIMEOUT 300)
  endforeach()
endforeach()

# The hierarchy is tested on real hosts in tests/lab; here, for the sanitizers, two hosts are this one twice.
if(FARANDOLE_SANITIZE)
  foreach(case allreduce bits allgather broadcast reducescatter rooted)
    add_test(NAME conformance.hierarchy.${case}
      COMMAND ${CMAKE_CURRENT_LIST_DIR}/two_hosts.sh $<TARGET_FILE:farandole_command> $<TARGET_FILE:conformance_rank> ${case})
    set_tests_properties(conformance.hierarchy.${case} PROPERTIES LABELS conformance TIMEOUT 300)
  endforeach()
endif()

# 2 × 2 GiB; too slow under a sanitizer.
if(NOT FARANDOLE_SANITIZE)
  add_test(NAME conformance.shm.large.np2
    COMMAND farandole_command run -np 2 $<TARGET_FILE:conformance_rank> large)
  set_tests_properties(conformance.shm.large.np2 PROPERTIES LABELS conformance TIMEOUT 300 RUN_SERIAL ON)
endif()
