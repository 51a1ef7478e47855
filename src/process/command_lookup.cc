#include "process/command_lookup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

namespace farandole::process {
namespace {

bool isFile(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool isExecutable(const std::string& path) {
  return isFile(path) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::optional<std::string> findProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return ::access(name.c_str(), F_OK) == 0 ? std::optional(name) : std::nullopt;
  }
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

namespace {

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

// "python3", "python3.11", "pypy3"; not "python-config".
bool isPython(std::string_view program) {
  program.remove_prefix(program.rfind('/') + 1);  // npos + 1 is 0
  for (const std::string_view name : {"python", "pypy"}) {
    if (program.starts_with(name)) {
      return program.find_first_not_of("0123456789.", name.size()) == std::string_view::npos;
    }
  }
  return false;
}

// The script among the arguments of Python; nothing if it runs something else (-c, -m, standard
// input), or if an option is not known here.
std::optional<std::string> scriptOf(const std::vector<std::string>& arguments) {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word.empty() || word == "-" || word.starts_with("--")) return std::nullopt;
    if (word[0] != '-') return word;
    for (std::size_t at = 1; at < word.size(); ++at) {
      if (word[at] == 'W' || word[at] == 'X') {
        if (at + 1 == word.size()) ++i;  // its value is the next word
        break;
      }
      if (std::string_view("bBdEiIOPqRsStuvx").find(word[at]) == std::string_view::npos) {
        return std::nullopt;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

Status checkScript(const ResolvedCommand& command) {
  if (!isPython(command.program) && !isPython(command.arguments.front())) return {};
  const auto script = scriptOf(command.arguments);
  if (!script || ::access(script->c_str(), F_OK) == 0 || errno != ENOENT) return {};
  std::error_code error;
  const std::string here = std::filesystem::current_path(error);
  const std::string where =
      script->starts_with("/") || error ? "" : " in the folder '" + here + "'";
  return Status::invalid("there is no script '" + *script + "'" + where +
                         ": copy it there, or name the folder where all hosts have it with --wdir");
}

Result<ResolvedCommand> lookUpCommand(std::vector<std::string> command) {
  if (command.empty() || command[0].empty()) return Status::invalid("there is no command to run");
  if (isPythonScript(command[0])) {
    auto python = findProgram("python3");
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
    auto found = findProgram(command[0]);
    if (!found) return notFound(command[0]);
    return ResolvedCommand{std::move(*found), std::move(command)};
  }
  if (!isExecutable(command[0])) return notFound(command[0]);
  std::string program = command[0];
  return ResolvedCommand{std::move(program), std::move(command)};
}

std::string ownProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "/proc/self/exe" : self.string();
}

}  // namespace farandole::process
