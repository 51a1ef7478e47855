# The Python packages: every test_*.py is one test per interpreter, python.NAME.FILE. `make test` installs what they
# need (tools/deps python, tools/venv torch-2.15). Not part of the sanitizers' builds, nor of cross builds.
if(FARANDOLE_SANITIZE OR CMAKE_CROSSCOMPILING OR NOT TARGET farandole_command)
  return()
endif()
set(here ${CMAKE_CURRENT_LIST_DIR})
set(FARANDOLE_VENVS ${CMAKE_BINARY_DIR}/venvs CACHE PATH "Where the virtual environments of tools/venv are")
set(python_debian /usr/bin/python3)
set(python_torch215 ${FARANDOLE_VENVS}/torch-2.15/bin/python)

# What does not depend on PyTorch's version is run with one interpreter.
set(once test_core test_mpi4py test_numpy test_run_function test_wheel)

# Debian's torchrun 1.13 does not start with its Python.
set(newer test_torchrun)

file(GLOB files CONFIGURE_DEPENDS ${here}/test_*.py)
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  foreach(interpreter debian torch215)
    if(interpreter STREQUAL torch215 AND name IN_LIST once)
      continue()
    endif()
    if(interpreter STREQUAL debian AND name IN_LIST newer)
      continue()
    endif()
    set(test python.${interpreter}.${name})
    add_test(NAME ${test} COMMAND ${here}/run_pytest ${python_${interpreter}} ${file})
    # Two ranks with a thread each.
    set_tests_properties(${test} PROPERTIES LABELS python TIMEOUT 300 PROCESSORS 2
      ENVIRONMENT "FARANDOLE_TREE=${CMAKE_BINARY_DIR};OMP_NUM_THREADS=1;PYTHONDONTWRITEBYTECODE=1")
  endforeach()
endforeach()
