#include "bench/launch_peers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "bench/peers.h"
#include "bench/processors.h"
#include "process/command_lookup.h"

namespace farandole::bench {
namespace {

namespace fs = std::filesystem;

struct Known {
  std::string name;
  std::string program;  // on PATH; empty: not looked for there
  std::string file;     // in the peers' directory
  std::string install;
  bool forwardsOutput = true;
};

std::vector<Known> known() {
  return {
      {"openmpi", "mpirun.openmpi", "", "tools/peers openmpi"},
      {"mpich", "mpiexec.mpich", "", "tools/peers mpich"},
      {"intelmpi", "", "intelmpi/bin/mpiexec.hydra", "tools/peers intelmpi"},
      {"torchrun", "torchrun", "deepspeed/bin/torchrun", "tools/peers deepspeed", false},
      {"horovodrun", "horovodrun", "horovod/bin/horovodrun", "pip install horovod"},
  };
}

std::vector<std::string> optionsOf(const Launcher& launcher, int ranks) {
  const std::string count = std::to_string(ranks);
  if (launcher.name == "openmpi") {
    std::vector<std::string> options = {"--bind-to", "none", "-np", count};
    if (ranks > static_cast<int>(allowedProcessors().size())) options.push_back("--oversubscribe");
    return options;
  }
  if (launcher.name == "torchrun") {
    return {"--standalone", "--nproc_per_node", count, "--no_python"};
  }
  if (launcher.name == "horovodrun") return {"-np", count, "-H", "localhost:" + count};
  return {"-n", count};
}

}  // namespace

std::string findProgram(std::string_view path, const std::string& name) {
  std::istringstream in{std::string(path)};
  for (std::string directory; std::getline(in, directory, ':');) {
    if (directory.empty()) continue;
    const fs::path file = fs::path(directory) / name;
    std::error_code error;
    if (!fs::is_regular_file(file, error) || access(file.c_str(), X_OK) != 0) continue;
    if (fs::canonical(file, error).filename() != "farandole" && !error) return file.string();
  }
  return {};
}

std::vector<Launcher> findLaunchers() {
  const char* path = std::getenv("PATH");
  const fs::path directory = peersDirectory();
  std::vector<Launcher> launchers;
  for (const Known& one : known()) {
    Launcher launcher{one.name, {}, {}, one.install, one.forwardsOutput};
    if (!one.program.empty()) {
      launcher.program = findProgram(path == nullptr ? "" : path, one.program);
    }
    if (!one.file.empty() && launcher.program.empty()) {
      const fs::path file = fs::absolute(directory / one.file);
      launcher.program = findProgram(file.parent_path().string(), file.filename().string());
    }
    if (launcher.program.empty()) {
      launcher.missing = one.program.empty() ? ".peers/" + one.file : one.program;
    }
    launchers.push_back(std::move(launcher));
  }
  return launchers;
}

Result<std::vector<Launcher>> selectLaunchers(const std::string& names) {
  std::vector<Launcher> all = findLaunchers();
  if (names == "all") return all;
  if (names == "none") return std::vector<Launcher>();
  if (names == "available") {
    std::erase_if(all, [](const Launcher& launcher) { return launcher.program.empty(); });
    return all;
  }
  std::vector<Launcher> chosen;
  std::istringstream in(names);
  for (std::string name; std::getline(in, name, ',');) {
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&name](const Launcher& one) { return one.name == name; });
    if (found == all.end()) {
      return Status::invalid(
          fmt::format("unknown launcher '{}'; known are openmpi, mpich, intelmpi, torchrun, "
                      "horovodrun, all, available, none",
                      name));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

TimedCommand startWith(const Launcher& launcher, int ranks,
                       const std::vector<std::string>& command) {
  TimedCommand start;
  start.words = {launcher.program};
  const auto options = optionsOf(launcher, ranks);
  start.words.insert(start.words.end(), options.begin(), options.end());
  start.words.insert(start.words.end(), command.begin(), command.end());
  if (launcher.name == "openmpi") {
    start.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  } else if (launcher.name == "intelmpi") {
    const std::string root = fs::path(launcher.program).parent_path().parent_path().string();
    start.environment = {{"I_MPI_ROOT", root}, {"LD_LIBRARY_PATH", root + "/lib"}};
  }
  return start;
}

TimedCommand startWithFarandole(int ranks, const std::vector<std::string>& command,
                                const std::vector<std::string>& options) {
  TimedCommand start;
  start.words = {process::ownProgram(), "run"};
  start.words.insert(start.words.end(), options.begin(), options.end());
  start.words.insert(start.words.end(), {"-np", std::to_string(ranks)});
  start.words.insert(start.words.end(), command.begin(), command.end());
  return start;
}

}  // namespace farandole::bench
