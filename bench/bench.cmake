# `farandole bench`: measures the engine, the named path and the peers side by side. The peers' programs are built by
# tools/peers, never here: a build of Farandole needs no MPI.
file(GLOB bench_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cc)
add_library(farandole_bench STATIC ${bench_sources})
farandole_unity(farandole_bench ${bench_sources})
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
# "bench/…"
target_include_directories(farandole_bench PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(farandole_bench PUBLIC farandole_collective CLI11::CLI11
  PRIVATE farandole_launch_hosts farandole_launch_ssh farandole_process fmt::fmt-header-only nlohmann_json::nlohmann_json)
