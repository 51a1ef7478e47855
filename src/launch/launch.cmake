# What the command is made of, from the bottom up; main() and the table of subcommands are put together in ../command.cmake.
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
# Debian's package names the shared library; the static one lies beside it.
find_library(yaml_cpp NAMES libyaml-cpp.a yaml-cpp REQUIRED)

# Processes of this machine: starting, finding and ending them, and what CPUs they may use.
farandole_layer(process DEPENDS base)
target_link_libraries(farandole_process PRIVATE ${CMAKE_DL_LIBS})
# Loaded by those who need it (core_library.h), not linked.
target_compile_definitions(farandole_process PRIVATE FARANDOLE_CORE_LIBRARY="$<TARGET_SONAME_FILE_NAME:farandole>")

# The launcher.
farandole_layer(launch/output DEPENDS base)
farandole_layer(launch/hosts DEPENDS process base)
farandole_layer(launch/ssh DEPENDS process crypto base)
farandole_embed(farandole_launch_ssh launch/ssh/templates.h ${CMAKE_CURRENT_SOURCE_DIR}/launch/ssh/templates/*.in)
farandole_layer(launch/facts DEPENDS launch/hosts process crypto base)
target_link_libraries(farandole_launch_facts PUBLIC nlohmann_json::nlohmann_json PRIVATE OpenSSL::Crypto)
farandole_layer(launch/plan DEPENDS launch/ssh process base)
farandole_layer(launch/mpi DEPENDS launch/plan launch/ssh process bootstrap mpi_library base)
farandole_embed(farandole_launch_mpi launch/mpi/templates.h ${CMAKE_CURRENT_SOURCE_DIR}/launch/mpi/templates/*.in)
farandole_layer(launch/local DEPENDS launch/mpi launch/output launch/plan process bootstrap base)
farandole_layer(launch/remote DEPENDS launch/facts launch/hosts launch/local launch/output launch/plan launch/ssh process
  bootstrap base)
target_link_libraries(farandole_launch_remote PRIVATE OpenSSL::Crypto)
farandole_embed(farandole_launch_remote launch/remote/templates.h
  ${CMAKE_CURRENT_SOURCE_DIR}/launch/remote/templates/*.in)
farandole_layer(launch/supervise DEPENDS launch/hosts launch/local launch/mpi launch/output launch/plan launch/remote process
  bootstrap base)
add_library(farandole_launch INTERFACE)
target_link_libraries(farandole_launch INTERFACE farandole_launch_supervise)

# The subcommands, and the names of other launchers.
farandole_layer(compat DEPENDS launch/plan process base)
target_link_libraries(farandole_compat PRIVATE ${yaml_cpp})
farandole_layer(init DEPENDS process base)
target_link_libraries(farandole_init PUBLIC CLI11::CLI11)
farandole_embed(farandole_init init/templates.h ${CMAKE_CURRENT_SOURCE_DIR}/init/templates/*.in)
farandole_layer(doctor DEPENDS launch/remote launch/facts launch/hosts launch/output launch/ssh process base)
target_link_libraries(farandole_doctor PUBLIC CLI11::CLI11)
farandole_layer(run DEPENDS doctor launch/supervise launch/remote launch/mpi launch/plan launch/hosts launch/output process
  base)
target_link_libraries(farandole_run PUBLIC CLI11::CLI11 PRIVATE ${yaml_cpp})
