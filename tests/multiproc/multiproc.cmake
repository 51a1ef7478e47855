# Real processes on this machine. Every folder brings its own .cmake file.
set(multiproc_folders launch core bench)
if(single_threaded)
  list(REMOVE_ITEM multiproc_folders launch bench)
endif()
foreach(folder ${multiproc_folders})
  include(${CMAKE_CURRENT_LIST_DIR}/${folder}/${folder}.cmake)
endforeach()
