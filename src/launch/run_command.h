// `farandole run`: from the words a person typed to a plan and its settings.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "base/status.h"

namespace farandole {

// Registers the subcommand and holds what its options say. Lives as long as the app; main thread.
class RunCommand {
 public:
  explicit RunCommand(CLI::App& app);

  // Divides the words after "run" into options (returned) and the command, which begins at the
  // first word that is neither an option nor its value, or after "--". Everything after it belongs
  // to it. An unknown option is an error that suggests a known one.
  Result<std::vector<std::string>> takeCommand(const std::vector<std::string>& words);

  // After the options have been parsed. The exit code; mistakes are told on stderr.
  int execute();

 private:
  void addOptions();
  std::vector<std::string> optionNames() const;
  // What to say about an option that does not exist.
  std::string unknownOption(const std::string& word) const;

  CLI::App* run_;
  std::vector<std::string> command_;

  std::string ranks_ = "1";
  bool noPrefix_ = false;
  bool tag_ = false;
  bool timestamp_ = false;
  std::string outputFolder_;
  std::string grace_ = "5";
  bool requireInit_ = false;
  bool quiet_ = false;
  bool verbose_ = false;
  bool dryRun_ = false;
  std::string startTimeout_;
  std::string timeline_;
  std::string stallWarning_;
  std::string stallShutdown_;
};

}  // namespace farandole
