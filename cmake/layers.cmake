# farandole_layer(name DEPENDS other layers… [EXCLUDE pattern]): a folder of src/ as a static library, with the project's warnings.
# Dependencies point down only (docs/architecture.md, house.layers); CMake refuses a cycle.

add_library(farandole_options INTERFACE)
target_compile_options(farandole_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<BOOL:${FARANDOLE_WERROR}>:-Werror>)
target_include_directories(farandole_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(farandole_options INTERFACE FARANDOLE_VERSION="${PROJECT_VERSION}")
target_link_libraries(farandole_options INTERFACE Threads::Threads)
if(FARANDOLE_SANITIZE)
  target_compile_options(farandole_options INTERFACE -fsanitize=${FARANDOLE_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(farandole_options INTERFACE -fsanitize=${FARANDOLE_SANITIZE})
  # Compilers have different names for this.
  if(FARANDOLE_SANITIZE MATCHES address)
    target_compile_definitions(farandole_options INTERFACE FARANDOLE_ASAN)
  else()
    target_compile_definitions(farandole_options INTERFACE FARANDOLE_TSAN)
  endif()
endif()

# farandole_unity(target sources…): the sources of one folder are compiled together, up to FARANDOLE_UNITY of them, so that
# the headers they share are read once: less than half the time. Only what stands together in a folder is put together:
# there names are one author's choice. A test whose helpers have their neighbours' names keeps them in a namespace of its
# own instead of an unnamed one. 0: each on its own, for clang-tidy and for work on a single file (preset dev).
set(FARANDOLE_UNITY 12 CACHE STRING "Sources that are compiled together; 0: none")
function(farandole_unity target)
  if(FARANDOLE_UNITY EQUAL 0)
    return()
  endif()
  foreach(source ${ARGN})
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "${folder}" group)
    math(EXPR part "${count_${group}} + 0" OUTPUT_FORMAT DECIMAL)
    math(EXPR count_${group} "${part} + 1")
    math(EXPR part "${part} / ${FARANDOLE_UNITY}")
    file(RELATIVE_PATH group ${PROJECT_SOURCE_DIR} ${folder})
    string(MAKE_C_IDENTIFIER "${group}" group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${part})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

function(farandole_layer name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;EXCLUDE" ${ARGN})
  # A room in a room, such as launch/hosts, is farandole_launch_hosts.
  string(REPLACE "/" "_" target farandole_${name})
  string(REPLACE "/" "_" ARG_DEPENDS "${ARG_DEPENDS}")
  list(TRANSFORM ARG_DEPENDS PREPEND farandole_)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc)
  if(ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${ARG_EXCLUDE}")
  endif()
  if(NOT sources)
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE farandole_options ${ARG_DEPENDS})
    return()
  endif()
  add_library(${target} STATIC ${sources})
  farandole_unity(${target} ${sources})
  # Under a sanitizer only what is on the way of every operation is optimised: the rest compiles in a third of the time.
  if(FARANDOLE_SANITIZE AND name MATCHES "^(base|machine|collective|control|conductor|transport|runtime)$")
    target_compile_options(${target} PRIVATE -O1)
  endif()
  target_link_libraries(${target} PUBLIC farandole_options ${ARG_DEPENDS})
endfunction()
