# The launcher, without main(): the command is put together in ../command.cmake.
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
# Debian's package names the shared library; the static one lies beside it.
find_library(yaml_cpp NAMES libyaml-cpp.a yaml-cpp REQUIRED)
file(GLOB_RECURSE launch_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cc)
list(FILTER launch_sources EXCLUDE REGEX "/main\\.cc$")
add_library(farandole_launch STATIC ${launch_sources})
farandole_unity(farandole_launch ${launch_sources})
target_link_libraries(farandole_launch PUBLIC farandole_bootstrap farandole_base CLI11::CLI11 nlohmann_json::nlohmann_json
  ${yaml_cpp})
target_link_libraries(farandole_launch PRIVATE ${CMAKE_DL_LIBS})
# Loaded by those who need it (core_library.h), not linked.
target_compile_definitions(farandole_launch PRIVATE FARANDOLE_CORE_LIBRARY="$<TARGET_SONAME_FILE_NAME:farandole>")
