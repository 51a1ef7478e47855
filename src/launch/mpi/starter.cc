#include "launch/mpi/starter.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "process/bounded_command.h"

namespace farandole::launch::mpi {
namespace {

constexpr std::size_t kMostText = std::size_t{64} << 10;
constexpr std::size_t kLongestFolder = 4096;

bool isExecutable(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

// Farandole's own alias, whatever it is linked as.
bool isOurs(const std::string& path) {
  struct stat own {};
  struct stat other {};
  return ::stat("/proc/self/exe", &own) == 0 && ::stat(path.c_str(), &other) == 0 &&
         own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

// All of that name in PATH: the first may be ours.
std::vector<std::string> inPath(const std::string& name) {
  if (name.find('/') != std::string::npos) return {name};
  const char* const variable = std::getenv("PATH");
  std::string_view path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  std::vector<std::string> found;
  while (!path.empty()) {
    const auto colon = std::min(path.find(':'), path.size());
    const std::string_view folder = path.substr(0, colon);
    path.remove_prefix(std::min(colon + 1, path.size()));
    if (folder.empty() || folder.size() > kLongestFolder) continue;
    std::string candidate = std::string(folder) + "/" + name;
    if (isExecutable(candidate)) found.push_back(std::move(candidate));
  }
  return found;
}

// The word after one of these, as in "mpirun (Open MPI) 4.1.4".
std::string wordAfter(std::string_view text, std::string_view before) {
  const auto at = text.find(before);
  if (at == std::string_view::npos) return {};
  const auto begin = text.find_first_not_of(" \t", at + before.size());
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_first_of(" \t\n", begin) - begin));
}

bool fits(const Starter& starter, std::string_view wanted) {
  if (wanted.empty() || wanted.find('/') != std::string_view::npos) return true;
  if (wanted == "intelmpi" || wanted == "impi") return starter.kind == Starter::Kind::kIntel;
  return (wanted == "openmpi") == (starter.kind == Starter::Kind::kOpenMpi);
}

Status missing(std::string_view wanted) {
  const std::string which = wanted.empty() ? "no MPI" : "no " + std::string(wanted);
  const bool hydra = !wanted.empty() && wanted != "openmpi";
  return Status(Code::kUnavailable,
                "--engine mpi: " + which +
                    " is installed here (no mpirun or mpiexec of it in PATH): install it on all "
                    "hosts (Debian: " +
                    (hydra ? "mpich" : "openmpi-bin") +
                    "), load its module, or name its mpirun with --mpi PATH; without --engine mpi "
                    "none is needed");
}

}  // namespace

std::string pathBefore(const std::string& program) {
  const char* const path = std::getenv("PATH");
  return program.substr(0, program.rfind('/')) +
         (path == nullptr ? std::string() : std::string(":") + path);
}

std::optional<Starter> starterFrom(std::string_view text) {
  using Kind = Starter::Kind;
  for (const std::string_view name : {"(Open MPI)", "(OpenRTE)", "(PRRTE)"}) {
    if (text.find(name) == std::string_view::npos) continue;
    const std::string version = wordAfter(text, name);
    return Starter{Kind::kOpenMpi, "", "Open MPI" + (version.empty() ? "" : " " + version)};
  }
  if (text.find("Intel(R) MPI") != std::string_view::npos) {
    const std::string version = wordAfter(text, "Version");
    return Starter{Kind::kIntel, "", "Intel MPI" + (version.empty() ? "" : " " + version)};
  }
  if (text.find("HYDRA") != std::string_view::npos) {
    const std::string version = wordAfter(text, "Version:");
    return Starter{Kind::kHydra, "", "MPICH" + (version.empty() ? "" : " " + version)};
  }
  return std::nullopt;
}

Result<std::vector<std::string>> starterCandidates(std::string_view wanted) {
  if (wanted.empty()) {
    return std::vector<std::string>{"mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.hydra",
                                    "mpiexec.mpich"};
  }
  if (wanted.find('/') != std::string_view::npos) {
    const std::string path(wanted);
    if (path.find(".so") == std::string::npos) return std::vector<std::string>{path};
    // A library: PREFIX/lib/libmpi.so and PREFIX/bin/mpirun.
    const std::string folder = path.substr(0, path.rfind('/') + 1);
    return std::vector<std::string>{folder + "../bin/mpirun",
                                    folder + "../bin/mpiexec",
                                    folder + "../../bin/mpirun",
                                    folder + "../../bin/mpiexec",
                                    "mpirun",
                                    "mpiexec"};
  }
  if (wanted == "openmpi") {
    return std::vector<std::string>{"mpirun.openmpi", "mpirun", "mpiexec", "orterun"};
  }
  for (const std::string_view known : {"mpich", "intelmpi", "impi", "mvapich", "cray"}) {
    if (wanted != known) continue;
    return std::vector<std::string>{"mpiexec.mpich", "mpiexec.hydra", "mpiexec", "mpirun"};
  }
  return Status::invalid("--mpi " + std::string(wanted) +
                         ": expected openmpi, mpich, intelmpi, mvapich, cray, or the path of an "
                         "mpirun or a libmpi.so");
}

Result<Starter> findStarter(std::string_view wanted) {
  auto candidates = starterCandidates(wanted);
  FARANDOLE_RETURN_IF_ERROR(candidates.status());
  for (const std::string& name : *candidates) {
    for (const std::string& path : inPath(name)) {
      if (!isExecutable(path) || isOurs(path)) continue;
      process::CommandRequest request{{"env", "PATH=" + pathBefore(path), path, "--version"},
                                      "/usr/bin/env"};
      request.mostOutput = kMostText;
      request.endsAtMost = true;
      const process::CommandEnd asked =
          process::runCommand(request, Deadline::after(std::chrono::seconds(10)));
      if (asked.startError != 0 || asked.timedOut || asked.tooMuch) continue;
      std::optional<Starter> found = starterFrom(asked.out + asked.err);
      if (!found || !fits(*found, wanted)) continue;
      found->program = path;
      return *found;
    }
  }
  return missing(wanted);
}

}  // namespace farandole::launch::mpi
