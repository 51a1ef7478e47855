# Real processes on this machine. Every folder brings its own .cmake file.
include(${CMAKE_CURRENT_LIST_DIR}/launch/launch.cmake)
file(GLOB multiproc_parts CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*/*.cmake)
list(FILTER multiproc_parts EXCLUDE REGEX "/launch/launch\\.cmake$")
foreach(part ${multiproc_parts})
  include(${part})
endforeach()
