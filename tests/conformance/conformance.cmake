# One suite of collectives × dtypes × ops × sizes × ranks. Every engine runs this same program.
add_executable(conformance_rank ${CMAKE_CURRENT_LIST_DIR}/conformance_rank.cc)
target_include_directories(conformance_rank PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(conformance_rank PRIVATE farandole farandole_options)
add_executable(batches_rank ${CMAKE_CURRENT_LIST_DIR}/batches_rank.cc ${CMAKE_CURRENT_LIST_DIR}/batch.cc)
target_include_directories(batches_rank PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(batches_rank PRIVATE farandole farandole_options)
if(FARANDOLE_SANITIZE)
  target_compile_options(conformance_rank PRIVATE -O1)
  target_compile_options(batches_rank PRIVATE -O1)
endif()

# Everything but `large`. `bits`: the same on all ranks, and when it is repeated. `order`: float sums have the bits of the
# order of ranks.
set(conformance_cases allreduce scales bits order sets allgather broadcast alltoall reducescatter rooted adasum)
# Engines that promise no order.
set(unordered_cases ${conformance_cases})
list(REMOVE_ITEM unordered_cases order)

# Under a sanitizer the paths count, not the sizes of the job; the engine's own tests have more ranks there.
set(conformance_ranks 1 2 3 5 8)
if(FARANDOLE_SANITIZE)
  set(conformance_ranks 3)
endif()
foreach(case ${conformance_cases})
  foreach(ranks ${conformance_ranks})
    add_test(NAME conformance.shm.${case}.np${ranks}
      COMMAND farandole_command run -np ${ranks} $<TARGET_FILE:conformance_rank> ${case})
    set_tests_properties(conformance.shm.${case}.np${ranks} PROPERTIES LABELS conformance TIMEOUT 300)
  endforeach()
endforeach()

# The engine between machines, among ranks of this one.
set(link_ranks 2 3)
if(FARANDOLE_SANITIZE)
  set(link_ranks 3)
endif()
foreach(case ${conformance_cases})
  foreach(ranks ${link_ranks})
    add_test(NAME conformance.link.${case}.np${ranks}
      COMMAND farandole_command run -np ${ranks} --no-hierarchy $<TARGET_FILE:conformance_rank> ${case})
    set_tests_properties(conformance.link.${case}.np${ranks} PROPERTIES LABELS conformance TIMEOUT 300)
  endforeach()
endforeach()

# The same with the promise of an order, where it makes a difference.
foreach(case allreduce scales bits order broadcast rooted)
  foreach(ranks ${link_ranks})
    add_test(NAME conformance.link.ordered.${case}.np${ranks}
      COMMAND farandole_command run -np ${ranks} --no-hierarchy --engine link $<TARGET_FILE:conformance_rank> ${case}
        ordered)
    set_tests_properties(conformance.link.ordered.${case}.np${ranks} PROPERTIES LABELS conformance TIMEOUT 300)
  endforeach()
endforeach()

# Gloo's functions on the same connections. Their sums have an order of their own.
if(TARGET farandole_gloo_engine)
  foreach(case ${unordered_cases})
    foreach(ranks 2 3)
      add_test(NAME conformance.gloo.${case}.np${ranks}
        COMMAND farandole_command run -np ${ranks} --no-hierarchy --engine gloo $<TARGET_FILE:conformance_rank> ${case})
      set_tests_properties(conformance.gloo.${case}.np${ranks} PROPERTIES LABELS conformance TIMEOUT 300)
    endforeach()
  endforeach()
endif()

# Ranks that others have started: alone, and as the hierarchy of machines that are this one several times; also with Gloo
# between them. On real hosts the hierarchy, also over MPI, is tested in tests/lab.
function(farandole_machines_conform name layout environment)
  foreach(case ${ARGN})
    set(words ${case})
    if(case STREQUAL order)
      list(APPEND words ${layout})
    endif()
    add_test(NAME conformance.${name}.${layout}.${case}
      COMMAND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/without_launcher.sh ${layout} $<TARGET_FILE:conformance_rank> ${words})
    set_tests_properties(conformance.${name}.${layout}.${case} PROPERTIES LABELS conformance TIMEOUT 240
      ENVIRONMENT "${environment}")
  endforeach()
endfunction()
set(machines_cases ${conformance_cases})
if(FARANDOLE_SANITIZE)
  list(REMOVE_ITEM machines_cases allreduce broadcast)  # a minute each
endif()
foreach(layout 1+1 2+2)
  farandole_machines_conform(without_launcher ${layout} "" ${machines_cases})
endforeach()
farandole_machines_conform(without_launcher 2+1+2 "" bits order sets)
if(TARGET farandole_gloo_engine)
  farandole_machines_conform(hierarchy.gloo 2+1 FARANDOLE_ENGINE=gloo ${unordered_cases})
endif()
# Outputs of all sizes, through the hierarchy of two machines with two ranks each.
set(output_rounds 400)
if(FARANDOLE_SANITIZE STREQUAL thread)
  set(output_rounds 60)
endif()
add_test(NAME conformance.without_launcher.2+2.outputs
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/without_launcher.sh 2+2 $<TARGET_FILE:core_rank> outputs ${output_rounds} 9)
set_tests_properties(conformance.without_launcher.2+2.outputs PROPERTIES LABELS conformance TIMEOUT 240)

# Who is where: of each rank its local rank and size, and its cross rank and size.
foreach(layout 2+1 1+2 3+1+2)
  set(places_2+1 0/2:0/2 1/2:0/1 0/1:1/2)
  set(places_1+2 0/1:0/2 0/2:1/2 1/2:0/1)
  set(places_3+1+2 0/3:0/3 1/3:0/2 2/3:0/1 0/1:1/3 0/2:2/3 1/2:1/2)
  add_test(NAME conformance.without_launcher.${layout}.places
    COMMAND ${CMAKE_CURRENT_LIST_DIR}/without_launcher.sh ${layout} $<TARGET_FILE:core_rank> places ${places_${layout}})
  set_tests_properties(conformance.without_launcher.${layout}.places PROPERTIES LABELS conformance TIMEOUT 240)
endforeach()

# The engines of MPI, each under its own starter; without shared memory, so that MPI carries everything.
find_program(FARANDOLE_OPENMPI_RUN mpirun.openmpi)
find_program(FARANDOLE_MPICH_RUN mpiexec.mpich)
set(mpi_environment "FARANDOLE_HIERARCHY=off;OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"
  OMPI_MCA_rmaps_base_oversubscribe=1)
function(farandole_mpi_conformance abi case ranks)
  string(TOUPPER ${abi} upper)
  add_test(NAME conformance.${abi}.${case}.np${ranks}
    COMMAND timeout -k 5 100 ${FARANDOLE_${upper}_RUN} -n ${ranks} $<TARGET_FILE:conformance_rank> ${case})
  set_tests_properties(conformance.${abi}.${case}.np${ranks} PROPERTIES LABELS conformance TIMEOUT 120 PROCESSORS 2
    ENVIRONMENT "${mpi_environment}")
endfunction()
foreach(abi openmpi mpich)
  string(TOUPPER ${abi} upper)
  if(NOT TARGET farandole_mpi_${abi} OR NOT FARANDOLE_${upper}_RUN)
    continue()
  endif()
  foreach(case ${conformance_cases})
    farandole_mpi_conformance(${abi} ${case} 3)
  endforeach()
  farandole_mpi_conformance(${abi} large 2)
endforeach()

# Random batches of everything at once, on machines with the same and with different numbers of ranks.
set(batch_rounds 40)
if(FARANDOLE_SANITIZE)
  set(batch_rounds 12)
endif()
function(farandole_some_batches name environment seeds words)
  add_test(NAME conformance.batches.${name}
    COMMAND ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/batches.sh ${seeds} ${words} ${ARGN} $<TARGET_FILE:batches_rank>)
  set_tests_properties(conformance.batches.${name} PROPERTIES LABELS conformance TIMEOUT 600 PROCESSORS 2
    ENVIRONMENT "${environment}")
endfunction()
function(farandole_batches name environment)
  farandole_some_batches(${name} "${environment}" 1 ${batch_rounds} ${ARGN})
endfunction()
set(batch_run $<TARGET_FILE:farandole_command> run -q)
set(batch_machines ${CMAKE_CURRENT_LIST_DIR}/without_launcher.sh)
farandole_batches(shm.4 "" ${batch_run} -np 4)
farandole_batches(link.3 "" ${batch_run} -np 3 --no-hierarchy)
foreach(layout 1+2 2+1 2+2 3+1 2+1+2)
  if(NOT FARANDOLE_SANITIZE OR layout MATCHES "^(2\\+1|2\\+1\\+2)$")
    farandole_batches(hierarchy.${layout} "" ${batch_machines} ${layout})
  endif()
endforeach()
# A rank ends in the midst of them, and the others are told so.
farandole_some_batches(leave.2+2 "" 12 "8 0 leave" ${batch_machines} 2+2)
farandole_batches(hierarchy.bf16.1+2+1 "FARANDOLE_WIRE=bf16" ${batch_machines} 1+2+1)
if(TARGET farandole_gloo_engine)
  farandole_batches(gloo.3 "" ${batch_run} -np 3 --no-hierarchy --engine gloo)
  farandole_batches(hierarchy.gloo.2+1 "FARANDOLE_ENGINE=gloo" ${batch_machines} 2+1)
  farandole_batches(hierarchy.gloo.2+2 "FARANDOLE_ENGINE=gloo" ${batch_machines} 2+2)
endif()
foreach(abi openmpi mpich)
  string(TOUPPER ${abi} upper)
  if(TARGET farandole_mpi_${abi} AND FARANDOLE_${upper}_RUN)
    farandole_batches(${abi}.3 "${mpi_environment}" ${FARANDOLE_${upper}_RUN} -n 3)
  endif()
endforeach()

# Two jobs get the same bits.
set(twice ${CMAKE_CURRENT_LIST_DIR}/twice.sh)
function(farandole_twice name environment)
  add_test(NAME conformance.twice.${name} COMMAND ${twice} ${ARGN} $<TARGET_FILE:conformance_rank> bits)
  set_tests_properties(conformance.twice.${name} PROPERTIES LABELS conformance TIMEOUT 240 ENVIRONMENT "${environment}")
endfunction()
set(twice_run $<TARGET_FILE:farandole_command> run -q --no-prefix)
farandole_twice(shm.4 "" ${twice_run} -np 4)
farandole_twice(link.3 "" ${twice_run} -np 3 --no-hierarchy)
farandole_twice(hierarchy.2+1 "" ${batch_machines} 2+1)
if(TARGET farandole_gloo_engine)
  farandole_twice(gloo.3 "" ${twice_run} -np 3 --no-hierarchy --engine gloo)
  farandole_twice(hierarchy.gloo.2+1 FARANDOLE_ENGINE=gloo ${batch_machines} 2+1)
endif()
foreach(abi openmpi mpich)
  string(TOUPPER ${abi} upper)
  if(TARGET farandole_mpi_${abi} AND FARANDOLE_${upper}_RUN)
    farandole_twice(${abi}.3 "${mpi_environment}" ${FARANDOLE_${upper}_RUN} -n 3)
  endif()
endforeach()

# More than 2^31 elements: 2 GiB for each rank; too slow under a sanitizer.
if(NOT FARANDOLE_SANITIZE)
  add_test(NAME conformance.shm.large.np2
    COMMAND farandole_command run -np 2 $<TARGET_FILE:conformance_rank> large)
  add_test(NAME conformance.link.large.np2
    COMMAND farandole_command run -np 2 --no-hierarchy --wire-security handshake $<TARGET_FILE:conformance_rank> large)
  set(large_tests conformance.shm.large.np2 conformance.link.large.np2)
  farandole_machines_conform(without_launcher 2+1 FARANDOLE_WIRE_SECURITY=handshake large)
  list(APPEND large_tests conformance.without_launcher.2+1.large)
  if(TARGET farandole_gloo_engine)
    add_test(NAME conformance.gloo.large.np2 COMMAND farandole_command run -np 2 --no-hierarchy --engine gloo
      --wire-security handshake $<TARGET_FILE:conformance_rank> large)
    farandole_machines_conform(hierarchy.gloo 1+2 "FARANDOLE_ENGINE=gloo;FARANDOLE_WIRE_SECURITY=handshake" large)
    list(APPEND large_tests conformance.gloo.large.np2 conformance.hierarchy.gloo.1+2.large)
  endif()
  set_tests_properties(${large_tests} PROPERTIES LABELS conformance TIMEOUT 300 RUN_SERIAL ON)
endif()
