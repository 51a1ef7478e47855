# Real processes on this machine. Every folder brings its own .cmake file.
set(multiproc_folders launch core bench mpi)
if(single_threaded)
  list(REMOVE_ITEM multiproc_folders launch bench mpi)
endif()
foreach(folder ${multiproc_folders})
  include(${CMAKE_CURRENT_LIST_DIR}/${folder}/${folder}.cmake)
endforeach()
