# The mpi engine under the two MPIs of Debian, each with its own mpirun.
set(mpi_dir ${CMAKE_CURRENT_LIST_DIR})
find_program(FARANDOLE_OPENMPI_RUN mpirun.openmpi)
find_program(FARANDOLE_MPICH_RUN mpiexec.mpich)
find_library(FARANDOLE_OPENMPI_LIBRARY mpi NO_DEFAULT_PATH PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/lib)
find_library(FARANDOLE_MPICH_LIBRARY mpich)

file(GLOB mpi_case_sources CONFIGURE_DEPENDS ${mpi_dir}/case_*.cc)
add_executable(mpi_rank ${mpi_dir}/rank.cc ${mpi_case_sources})
farandole_unity(mpi_rank ${mpi_case_sources})
target_link_libraries(mpi_rank PRIVATE farandole_collective)
target_include_directories(mpi_rank PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})

function(farandole_mpi_test abi name)
  add_test(NAME multiproc.mpi.${abi}.${name} COMMAND timeout -k 5 100 ${ARGN})
  set_tests_properties(multiproc.mpi.${abi}.${name} PROPERTIES LABELS multiproc TIMEOUT 120 PROCESSORS 2
    ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1")
endfunction()

function(farandole_mpi_tests abi run include library)
  if(NOT TARGET farandole_mpi_${abi} OR NOT run)
    return()
  endif()
  foreach(case reductions native moves numbers messages sets life waiting)
    farandole_mpi_test(${abi} ${case}.np3 ${run} -n 3 $<TARGET_FILE:mpi_rank> ${case})
  endforeach()
  foreach(case moves numbers messages)
    farandole_mpi_test(${abi} ${case}.np1 ${run} -n 1 $<TARGET_FILE:mpi_rank> ${case})
  endforeach()
  # 8 GiB of memory; only with ctest -C Large.
  add_test(NAME multiproc.mpi.${abi}.large CONFIGURATIONS Large
    COMMAND timeout -k 5 550 ${run} -n 2 $<TARGET_FILE:mpi_rank> large)
  set_tests_properties(multiproc.mpi.${abi}.large PROPERTIES LABELS large TIMEOUT 600 RUN_SERIAL ON
    ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1")
  farandole_mpi_test(${abi} lost ${mpi_dir}/must_fail.sh ${run} -n 3 $<TARGET_FILE:mpi_rank> lost)
  farandole_mpi_test(${abi} killed ${mpi_dir}/ends.sh ${run} -n 3 $<TARGET_FILE:mpi_rank> killed)
  farandole_mpi_test(${abi} absent ${mpi_dir}/absent.sh ${run} $<TARGET_FILE:core_rank>)
  if(abi STREQUAL openmpi)
    add_library(ending_mpi MODULE ${mpi_dir}/ending_mpi.c)
    target_link_libraries(ending_mpi PRIVATE ${CMAKE_DL_LIBS})
    farandole_mpi_test(${abi} launcher_killed ${mpi_dir}/launcher_killed.sh $<TARGET_FILE:farandole_command> ${abi}
      $<TARGET_FILE:core_rank>)
    foreach(how exit pipe)
      farandole_mpi_test(${abi} ended_by_mpi.${how} ${mpi_dir}/ended_by_mpi.sh ${run} $<TARGET_FILE:ending_mpi>
        $<TARGET_FILE:core_rank> ${how})
    endforeach()
  endif()
  # Under our own launcher, which has the starter bring MPI; without shared memory, so that MPI carries everything.
  farandole_mpi_test(${abi} launched $<TARGET_FILE:farandole_command> run -np 3 --engine mpi --mpi ${abi}
    --no-hierarchy $<TARGET_FILE:conformance_rank> bits)
  farandole_mpi_test(${abi} launched.outputs $<TARGET_FILE:farandole_command> run -np 3 --engine mpi --mpi ${abi}
    --no-hierarchy $<TARGET_FILE:core_rank> outputs 200 7)
  farandole_mpi_test(${abi} launched.lost ${mpi_dir}/launched_lost.sh $<TARGET_FILE:farandole_command> ${abi}
    $<TARGET_FILE:core_rank>)
  farandole_mpi_test(${abi} numbers.np4 ${run} -n 4 $<TARGET_FILE:mpi_rank> numbers)
  if(library)
    add_executable(mpi_beside_${abi} ${mpi_dir}/beside.cc)
    target_include_directories(mpi_beside_${abi} SYSTEM PRIVATE ${include})
    target_link_libraries(mpi_beside_${abi} PRIVATE farandole_collective ${library})
    set_target_properties(mpi_beside_${abi} PROPERTIES SKIP_BUILD_RPATH ON)
    farandole_light_test(mpi_beside_${abi})
    add_executable(mpi_stopped_${abi} ${mpi_dir}/stopped.cc)
    target_include_directories(mpi_stopped_${abi} SYSTEM PRIVATE ${include})
    target_link_libraries(mpi_stopped_${abi} PRIVATE farandole_collective ${library})
    # The engine is to see the function in front of MPI's.
    set_target_properties(mpi_stopped_${abi} PROPERTIES SKIP_BUILD_RPATH ON ENABLE_EXPORTS ON)
    farandole_light_test(mpi_stopped_${abi})
    farandole_mpi_test(${abi} stopped.create_group ${mpi_dir}/stopped.sh ${run} $<TARGET_FILE:mpi_stopped_${abi}>
      create_group "MPI_Comm_create_group has not returned for 5 s: one of the 2 ranks from 0 to 1 was there")
    # Open MPI does not tell when a program's own MPI_Finalize has returned; MPICH's is not called by the engine.
    set(finalize exit)
    if(abi STREQUAL mpich)
      set(finalize finalize)
    endif()
    farandole_mpi_test(${abi} stopped.${finalize} ${mpi_dir}/stopped.sh ${run} $<TARGET_FILE:mpi_stopped_${abi}>
      ${finalize} "MPI_Finalize has not returned for 2 s, though all ranks have called it")
    farandole_mpi_test(${abi} loaded ${run} -n 2 $<TARGET_FILE:mpi_rank> loaded ${library})
    farandole_mpi_test(${abi} launched.beside $<TARGET_FILE:farandole_command> run -np 2 --engine mpi --mpi ${abi}
      $<TARGET_FILE:mpi_beside_${abi}> follows)
    foreach(who starts follows)
      farandole_mpi_test(${abi} beside.${who} ${run} -n 2 $<TARGET_FILE:mpi_beside_${abi}> ${who})
    endforeach()
  endif()
endfunction()

# The MPIs' own leaks and races are not ours.
if(NOT FARANDOLE_SANITIZE)
  farandole_mpi_tests(openmpi "${FARANDOLE_OPENMPI_RUN}" "${FARANDOLE_OPENMPI_INCLUDE}" "${FARANDOLE_OPENMPI_LIBRARY}")
  farandole_mpi_tests(mpich "${FARANDOLE_MPICH_RUN}" "${FARANDOLE_MPICH_INCLUDE}" "${FARANDOLE_MPICH_LIBRARY}")
endif()
