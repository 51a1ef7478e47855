# farandole_layer(name DEPENDS other layers…): a folder of src/ as a static library, with the project's warnings.
# Dependencies point down only (docs/architecture.md); CMake refuses a cycle.

add_library(farandole_options INTERFACE)
target_compile_options(farandole_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<BOOL:${FARANDOLE_WERROR}>:-Werror>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
target_include_directories(farandole_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(farandole_options INTERFACE FARANDOLE_VERSION="${PROJECT_VERSION}")
target_link_libraries(farandole_options INTERFACE Threads::Threads)
if(FARANDOLE_SANITIZE)
  target_compile_options(farandole_options INTERFACE -fsanitize=${FARANDOLE_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(farandole_options INTERFACE -fsanitize=${FARANDOLE_SANITIZE})
endif()

function(farandole_layer name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc)
  if(NOT sources)
    add_library(farandole_${name} INTERFACE)
    target_link_libraries(farandole_${name} INTERFACE farandole_options)
    foreach(dep ${ARG_DEPENDS})
      target_link_libraries(farandole_${name} INTERFACE farandole_${dep})
    endforeach()
    return()
  endif()
  add_library(farandole_${name} STATIC ${sources})
  # Under a sanitizer only what is on the way of every operation is optimised: the rest compiles in a third of the time.
  if(FARANDOLE_SANITIZE AND name MATCHES "^(base|collective|control|conductor|link)$")
    target_compile_options(farandole_${name} PRIVATE -O1)
  endif()
  target_link_libraries(farandole_${name} PUBLIC farandole_options)
  foreach(dep ${ARG_DEPENDS})
    target_link_libraries(farandole_${name} PUBLIC farandole_${dep})
  endforeach()
endfunction()
