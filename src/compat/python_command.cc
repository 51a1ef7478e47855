#include "compat/python_command.h"

namespace farandole::compat {

std::vector<std::string> pythonCommand(const Given& given, const Surroundings& here, bool anyName) {
  std::vector<std::string> command = given.command;
  if (command.empty() || given.has("--no-python")) return command;
  const std::string chosen = here.env("PYTHON_EXEC");
  std::vector<std::string> python = {chosen.empty() ? "python3" : chosen, "-u"};
  if (given.has("--module")) {
    python.emplace_back("-m");
  } else if (!command[0].ends_with(".py")) {
    // "python train.py" is a mistake that can be understood.
    const std::string name = command[0].substr(command[0].rfind('/') + 1);
    if (!anyName || name.starts_with("python")) return command;
  }
  command.insert(command.begin(), python.begin(), python.end());
  return command;
}

}  // namespace farandole::compat
