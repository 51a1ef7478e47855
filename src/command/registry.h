// The subcommands of `farandole`: one line each in registry.cc, and all that main() knows of them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace CLI {
class App;
}  // namespace CLI

namespace farandole::command {

// A subcommand that has been asked for. Main thread.
class Command {
 public:
  virtual ~Command() = default;
  // The words after its name, as CLI11 can read them.
  virtual Result<std::vector<std::string>> prepare(std::vector<std::string> words) = 0;
  // After the options have been read. The exit code; errors are printed to stderr.
  virtual int execute() = 0;
};

struct Subcommand {
  std::string_view name;
  std::string_view help;  // one line
  // Adds its options to `app`, which is its own and outlives it.
  std::unique_ptr<Command> (*make)(CLI::App& app);
  // Instead of all that, if it is not for people: takes the words, its name first.
  int (*run)(const std::vector<std::string>& words);
};

std::span<const Subcommand> subcommands();

}  // namespace farandole::command
