# The mpi engine, once for each of the two binary interfaces. Only the headers are needed here: which library it rides on
# is decided when it is loaded (mpi_library/mpi_library.h), so that Debian's libmpich, PyPI's libmpi and Intel's all serve.
file(GLOB mpi_engine_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cc)
set(mpi_engine_dir ${CMAKE_CURRENT_LIST_DIR})

find_path(FARANDOLE_OPENMPI_INCLUDE mpi.h NO_DEFAULT_PATH
  PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi/include /usr/include/openmpi-${CMAKE_SYSTEM_PROCESSOR})
find_path(FARANDOLE_MPICH_INCLUDE mpi.h NO_DEFAULT_PATH
  PATHS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/mpich /usr/include/mpich-${CMAKE_SYSTEM_PROCESSOR})

function(farandole_mpi_engine abi include)
  if(NOT include)
    message(STATUS "mpi engine for ${abi}: not built, its headers are not installed")
    return()
  endif()
  set(target farandole_mpi_${abi})
  add_library(${target} MODULE ${mpi_engine_sources})
  farandole_unity(${target} ${mpi_engine_sources})
  target_include_directories(${target} SYSTEM PRIVATE ${include})
  target_link_libraries(${target} PRIVATE farandole_collective)
  farandole_self_contained(${target})
  target_link_options(${target} PRIVATE LINKER:--version-script=${mpi_engine_dir}/../engine_exports.map)
  set_target_properties(${target} PROPERTIES SKIP_BUILD_RPATH ON INSTALL_RPATH ""
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/farandole/engines)
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/farandole/engines)
endfunction()
farandole_mpi_engine(openmpi "${FARANDOLE_OPENMPI_INCLUDE}")
farandole_mpi_engine(mpich "${FARANDOLE_MPICH_INCLUDE}")
