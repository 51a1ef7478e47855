// `farandole run`: from the words a person typed to a job that has run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "run/run_options.h"

namespace CLI {
class App;
}  // namespace CLI

namespace farandole::run {

// Adds its options to `app`, which is its own, and holds what they say. Lives as long as the app;
// main thread.
class RunCommand {
 public:
  explicit RunCommand(CLI::App& app);

  // Divides the words after "run" into options (returned) and the command, which begins at the
  // first word that is neither an option nor its value, or after "--". Everything after it belongs
  // to it. An unknown option is an error that suggests a known one. Options from the environment
  // (FARANDOLE_RUN_…) and from --config-file stand before those of the words, which outrank them.
  Result<std::vector<std::string>> prepare(const std::vector<std::string>& words);

  // After the options have been parsed. The exit code; errors are printed to stderr.
  int execute();

 private:
  void addOptions();
  std::vector<std::string> optionNames() const;
  // What to say about an option that does not exist.
  std::string unknownOption(const std::string& word) const;
  Result<std::vector<std::string>> divide(const std::vector<std::string>& words);

  CLI::App* run_;
  RunOptions options_;
  std::vector<std::pair<const RunOption*, std::string>> given_;  // what CLI11 has found, unread
};

}  // namespace farandole::run
