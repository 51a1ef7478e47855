#include "launch/compat/python_command.h"

namespace farandole {

std::vector<std::string> pythonCommand(const Given& given, const Surroundings& here) {
  std::vector<std::string> command = given.command;
  if (command.empty() || given.has("--no-python")) return command;
  const std::string chosen = here.env("PYTHON_EXEC");
  std::vector<std::string> python = {chosen.empty() ? "python3" : chosen, "-u"};
  if (given.has("--module")) {
    python.emplace_back("-m");
  } else if (!command[0].ends_with(".py")) {
    return command;  // a program, or "python train.py" by mistake: both can be run
  }
  command.insert(command.begin(), python.begin(), python.end());
  return command;
}

}  // namespace farandole
