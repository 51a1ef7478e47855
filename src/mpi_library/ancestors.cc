// The MPI starters among the ancestors of this process.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>

#include "mpi_library/mpi_library.h"

namespace farandole::mpi_library {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLevels = 8;

bool isStarter(const fs::path& program) {
  const std::string file = program.filename().string();
  for (const std::string_view known :
       {"orterun", "orted", "prterun", "prted", "prte", "mpirun", "mpiexec", "hydra"}) {
    if (file.starts_with(known)) return true;
  }
  return false;
}

}  // namespace

std::vector<fs::path> mpiAncestors() {
  std::vector<fs::path> result;
  pid_t pid = ::getppid();
  for (int level = 0; level < kMostLevels && pid > 1; ++level) {
    const std::string folder = "/proc/" + std::to_string(pid);
    std::error_code error;
    fs::path program = fs::read_symlink(folder + "/exe", error);
    if (!error && isStarter(program)) result.push_back(std::move(program));
    std::ifstream file(folder + "/stat");
    std::string line;
    std::getline(file, line);
    // "pid (name) state ppid …"; the name may hold anything.
    const std::size_t end = line.rfind(')');
    if (end == std::string::npos || end + 4 >= line.size()) break;
    pid = static_cast<pid_t>(std::strtol(line.c_str() + end + 4, nullptr, 10));
  }
  return result;
}

}  // namespace farandole::mpi_library
