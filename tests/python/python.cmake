# The Python packages: every test_*.py is one test per interpreter, python.NAME.FILE. `make test` installs what they
# need (tools/deps python, tools/venv torch-2.15, tf-2.21 and tf-2.15). Not part of the sanitizers' builds, nor of cross builds.
if(FARANDOLE_SANITIZE OR CMAKE_CROSSCOMPILING OR NOT TARGET farandole_command)
  return()
endif()
set(here ${CMAKE_CURRENT_LIST_DIR})
set(python_debian /usr/bin/python3)
set(python_torch215 ${FARANDOLE_VENVS}/torch-2.15/bin/python)
set(python_tf221 ${FARANDOLE_VENVS}/tf-2.21/bin/python)
set(python_tf215 ${FARANDOLE_VENVS}/tf-2.15/bin/python)
# The same with Keras 2 (tf_keras).
set(python_tf221keras2 ${python_tf221})
set(environment_tf221keras2 TF_USE_LEGACY_KERAS=1)

# What does not depend on the version of PyTorch is run with one interpreter. TensorFlow takes long to start: everything
# with Keras 3, and with the others what depends on them.
set(once test_c10d_kills test_core test_mpi4py test_numpy test_run_function test_wheel)

# Debian's torchrun 1.13 does not start with its Python.
set(newer test_torchrun)

file(GLOB files CONFIGURE_DEPENDS ${here}/test_*.py)
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  set(interpreters debian torch215)
  if(name STREQUAL test_tf_suite)
    set(interpreters tf221 tf215)
  elseif(name STREQUAL test_tf_keras2)
    set(interpreters tf221keras2)
  elseif(name MATCHES "^test_tf_")
    set(interpreters tf221)
  endif()
  foreach(interpreter ${interpreters})
    if(interpreter STREQUAL torch215 AND name IN_LIST once)
      continue()
    endif()
    if(interpreter STREQUAL debian AND name IN_LIST newer)
      continue()
    endif()
    set(test python.${interpreter}.${name})
    add_test(NAME ${test} COMMAND ${here}/run_pytest ${python_${interpreter}} ${file})
    # Two ranks with a thread each: one such test at a time, beside tests that mostly wait (those of the laboratory). First of
    # all, so that they do not stand in a row at the end; the one that needs a processor for itself is alone.
    set(alone 1)
    if(name STREQUAL test_c10d_kills)
      set(alone 2)
    endif()
    set_tests_properties(${test} PROPERTIES LABELS python TIMEOUT 300 PROCESSORS ${alone} RESOURCE_LOCK python COST 100
      ENVIRONMENT "FARANDOLE_TREE=${CMAKE_BINARY_DIR};FARANDOLE_CACHE=${CMAKE_BINARY_DIR}/cache;OMP_NUM_THREADS=1;PYTHONDONTWRITEBYTECODE=1;${environment_${interpreter}}")
  endforeach()
endforeach()
