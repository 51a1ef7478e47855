#include "launch/command_lookup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string_view>

#include "launch/own_command.h"

namespace farandole {
namespace {

bool isFile(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool isExecutable(const std::string& path) {
  return isFile(path) && ::access(path.c_str(), X_OK) == 0;
}

std::optional<std::string> findInPath(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::string_view path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  while (true) {
    const auto colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    // An empty entry means the current folder.
    std::string candidate = (folder.empty() ? "." : std::string(folder)) + "/" + name;
    if (isExecutable(candidate)) return candidate;
    if (colon == std::string_view::npos) return std::nullopt;
    path.remove_prefix(colon + 1);
  }
}

bool isPythonScript(const std::string& name) {
  if (!std::string_view(name).ends_with(".py") || !isFile(name)) return false;
  return name.find('/') == std::string::npos || !isExecutable(name);
}

Status notFound(const std::string& name) {
  if (name.find('/') == std::string::npos) {
    if (isExecutable("./" + name)) {
      return Status::invalid(
          "'" + name + "' is not in PATH, but here is a program of that name: " + "type ./" + name);
    }
    return Status::invalid("there is no command '" + name +
                           "' in PATH: check its spelling, or give its path");
  }
  struct stat info {};
  if (::stat(name.c_str(), &info) != 0) {
    return Status::invalid("there is no file '" + name + "': check the path");
  }
  if (S_ISDIR(info.st_mode)) {
    return Status::invalid("'" + name + "' is a folder: give the program to run");
  }
  return Status::invalid("'" + name + "' may not be executed: type chmod +x " + name);
}

}  // namespace

Result<ResolvedCommand> lookUpCommand(std::vector<std::string> command) {
  if (command.empty() || command[0].empty()) return Status::invalid("there is no command to run");
  if (isPythonScript(command[0])) {
    auto python = findInPath("python3");
    if (!python) {
      return Status::invalid("'" + command[0] +
                             "' needs python3, which is not in PATH: install it, or give the "
                             "interpreter: path/to/python " +
                             command[0]);
    }
    command.insert(command.begin(), {"python3", "-u"});
    return ResolvedCommand{std::move(*python), std::move(command)};
  }
  if (command[0] == kOwnCommand) {
    command[0] = "farandole";
    return ResolvedCommand{ownProgram(), std::move(command)};
  }
  if (command[0].find('/') == std::string::npos) {
    auto found = findInPath(command[0]);
    if (!found) return notFound(command[0]);
    return ResolvedCommand{std::move(*found), std::move(command)};
  }
  if (!isExecutable(command[0])) return notFound(command[0]);
  std::string program = command[0];
  return ResolvedCommand{std::move(program), std::move(command)};
}

}  // namespace farandole
