#include "compat/translation.h"

#include <unistd.h>

#include <cstdlib>

namespace farandole::compat {

Surroundings Surroundings::real() {
  return {[](const char* name) { return std::getenv(name); },
          [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; },
          [] { return readUsableCpus("/sys/devices/system"); }};
}

std::string Surroundings::env(const char* name) const {
  const char* value = getEnv(name);
  return value != nullptr ? value : "";
}

Translation beginTranslation(const Grammar& grammar, const Given& given) {
  Translation translation;
  if (given.has("--help")) {
    translation.text = helpText(grammar);
  } else if (given.has("--version")) {
    translation.text = "farandole " FARANDOLE_VERSION "\n";
  }
  return translation;
}

Result<Translation> endTranslation(const Grammar& grammar, const Given& given, const RunWords& run,
                                   const std::vector<std::string>& command) {
  if (command.empty()) {
    return Status::invalid("what shall be run? type for example: " + std::string(grammar.command) +
                           " " + std::string(grammar.example) + " train.py");
  }
  Translation translation;
  translation.words = run.words(command);
  translation.notes = run.notes();
  translation.quiet = given.has("--quiet");
  translation.verbose = given.has("--verbose");
  return translation;
}

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
