# Ranks under a real Slurm, of one node and of two (tools/deps slurm; root). Where there is none, there is no such test.
find_program(FARANDOLE_SLURMD slurmd PATHS /usr/sbin)
if(FARANDOLE_SLURMD AND NOT FARANDOLE_SANITIZE)
  add_test(NAME multiproc.slurm.ranks COMMAND timeout -k 20 200 ${CMAKE_CURRENT_LIST_DIR}/slurm.sh
    ${CMAKE_CURRENT_LIST_DIR}/ranks.sh $<TARGET_FILE:farandole_command> $<TARGET_FILE:conformance_rank>)
  set_tests_properties(multiproc.slurm.ranks PROPERTIES LABELS multiproc TIMEOUT 240 PROCESSORS 2)
  add_test(NAME lab.slurm.nodes COMMAND timeout -k 20 200 ${CMAKE_CURRENT_LIST_DIR}/nodes.sh ${PROJECT_SOURCE_DIR}/tools/lab
    ${PROJECT_BINARY_DIR}/slurm $<TARGET_FILE:farandole_command> $<TARGET_FILE:conformance_rank>)
  # Alone: on a machine full of other tests a rank may miss the time in which another one says goodbye.
  set_tests_properties(lab.slurm.nodes PROPERTIES LABELS lab TIMEOUT 240 RUN_SERIAL ON)
endif()
