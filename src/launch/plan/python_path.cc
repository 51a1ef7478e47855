#include "launch/plan/python_path.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace farandole::launch::plan {
namespace {

namespace fs = std::filesystem;

// Of the tree that this process was started from, as tree.cc has it; "" if it has no packages.
std::string hookFolder() {
  std::error_code error;
  const fs::path command = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const fs::path root = command.parent_path().parent_path();
  fs::path folder = root / "lib" / "farandole" / "python" / "farandole_hooks";
  return fs::is_regular_file(folder / "sitecustomize.py", error) ? folder.string() : std::string();
}

}  // namespace

void addPythonPath(std::vector<std::string>& environment) {
  constexpr std::string_view kName = "PYTHONPATH=";
  static const std::string folder = hookFolder();
  if (folder.empty()) return;
  const auto found =
      std::find_if(environment.begin(), environment.end(),
                   [&](const std::string& entry) { return entry.starts_with(kName); });
  // Not "folder:": Python takes an empty part for the working directory.
  if (found == environment.end()) {
    environment.push_back(std::string(kName) + folder);
  } else if (found->size() == kName.size()) {
    *found += folder;
  } else {
    found->insert(kName.size(), folder + ":");
  }
}

}  // namespace farandole::launch::plan
