# The C++ API, the LibTorch adapter and the example. What needs neither LibTorch nor several ranks is tested without.
find_package(ZLIB REQUIRED)
set(adapters ${PROJECT_SOURCE_DIR}/adapters/libtorch)
set(fashion ${PROJECT_SOURCE_DIR}/examples/01_fashion_mnist)
set(here ${CMAKE_CURRENT_LIST_DIR})

add_executable(adapters_files ${here}/checkpoint_test.cc ${here}/idx_test.cc ${here}/sharding_test.cc
  ${fashion}/checkpoint.cc ${fashion}/idx.cc ${adapters}/src/sharding.cc)
target_include_directories(adapters_files PRIVATE ${here} ${fashion} ${adapters}/include)
target_link_libraries(adapters_files PRIVATE farandole_options GTest::gtest_main GTest::gmock ZLIB::ZLIB)
gtest_discover_tests(adapters_files TEST_PREFIX adapters. PROPERTIES LABELS adapters TIMEOUT 120 DISCOVERY_TIMEOUT 60)

# farandole.h as C99 and as C++11, without a warning.
foreach(language c_header.c c_header_cpp11.cc)
  string(REGEX REPLACE "[.](cc|c)$" "" name ${language})
  add_library(adapters_${name} OBJECT ${here}/${language})
  target_include_directories(adapters_${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_options(adapters_${name} PRIVATE -Wall -Wextra -Wpedantic -Werror)
  set_target_properties(adapters_${name} PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF CXX_STANDARD 11 CXX_EXTENSIONS OFF)
endforeach()
add_executable(adapters_headers ${here}/c_header_test.cc)
target_include_directories(adapters_headers PRIVATE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(adapters_headers PRIVATE adapters_c_header adapters_c_header_cpp11 farandole_options GTest::gtest_main)
gtest_discover_tests(adapters_headers TEST_PREFIX adapters. PROPERTIES LABELS adapters TIMEOUT 60 DISCOVERY_TIMEOUT 60)

# Cases that need somebody to wait for or to disagree with: they run on 2 and 3 ranks.
set(not_alone CppApi.WaitGivesUpAndMayBeRepeated CppApi.MismatchesNameTheTensorAndTheJobGoesOn
  CppApi.ADroppedHandleIsWithdrawn CppApi.SendsAndReceivesInTheBackground Broadcast.DifferentNumbersOfTensorsAreAnErrorEverywhere)
list(JOIN not_alone ":" not_alone)

# adapters_on_ranks(target): one test per number of ranks; 1 is the program alone.
function(adapters_on_ranks target)
  add_test(NAME adapters.${target}.1_rank COMMAND ${target} --gtest_filter=-${not_alone})
  set(tests adapters.${target}.1_rank)
  if(TARGET farandole_command)
    foreach(ranks 2 3)
      add_test(NAME adapters.${target}.${ranks}_ranks COMMAND farandole_command run -np ${ranks} $<TARGET_FILE:${target}>)
      list(APPEND tests adapters.${target}.${ranks}_ranks)
    endforeach()
  endif()
  # One thread per rank: several ranks share the cores.
  set_tests_properties(${tests} PROPERTIES LABELS adapters TIMEOUT 180 ENVIRONMENT OMP_NUM_THREADS=1)
endfunction()

if(TARGET farandole)
  add_executable(cpp_api_test ${here}/cpp_api_test.cc ${here}/rank_main.cc)
  target_link_libraries(cpp_api_test PRIVATE farandole farandole_options GTest::gtest)
  adapters_on_ranks(cpp_api_test)
endif()

if(FARANDOLE_TORCH AND TARGET farandole)
  # A library, to share the adapter's precompiled header (see the example).
  add_library(torch_test_cases OBJECT ${here}/torch_test.cc)
  target_link_libraries(torch_test_cases PUBLIC farandole_torch farandole_options GTest::gtest)
  target_precompile_headers(torch_test_cases REUSE_FROM farandole_torch)
  add_executable(torch_test ${here}/rank_main.cc)
  target_link_libraries(torch_test PRIVATE torch_test_cases)
  adapters_on_ranks(torch_test)

  if(TARGET farandole_command)
    foreach(case two_ranks_equal_one resume bad_checkpoint bad_data independent)
      add_test(NAME adapters.fashion_mnist.${case}
        COMMAND ${here}/fashion_mnist_test.sh ${case} $<TARGET_FILE:farandole_command> $<TARGET_FILE:fashion_mnist>)
      set_tests_properties(adapters.fashion_mnist.${case} PROPERTIES LABELS adapters TIMEOUT 300 RUN_SERIAL ON)
    endforeach()
  endif()
endif()
