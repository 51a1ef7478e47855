// The farandole command.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "command/registry.h"
#include "compat/compat.h"

namespace farandole::command {
namespace {

constexpr int kUsage = 2;

// Started with closed standard descriptors, the first files we open would become stdin or stdout.
void openStandardDescriptors() {
  for (int fd = 0; fd < 3; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", O_RDWR);
  }
}

int complain(const std::string& who, const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", who.c_str(), text.c_str());
  return kUsage;
}

const Subcommand* named(const std::string& word) {
  const auto all = subcommands();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&word](const Subcommand& one) { return one.name == word; });
  return found == all.end() ? nullptr : &*found;
}

int unknown(const std::string& word) {
  std::vector<std::string> names;
  for (const Subcommand& one : subcommands()) {
    if (one.make != nullptr) names.emplace_back(one.name);
  }
  const auto guess = closest(word, names);
  return complain("farandole", "there is no command '" + word + "'" +
                                   (guess ? "; did you mean 'farandole " + *guess + "'?"
                                          : "; farandole --help lists the commands"));
}

// The words without those of old launchers (compat); none for people who have typed nothing.
int commandMain(std::vector<std::string> words) {
  const Subcommand* const chosen = words.empty() ? nullptr : named(words[0]);
  if (chosen != nullptr && chosen->run != nullptr) return chosen->run(words);
  if (chosen == nullptr && !words.empty() && !words[0].starts_with('-')) return unknown(words[0]);
  CLI::App app("Farandole: one training job on many processes", "farandole");
  app.set_version_flag("--version", std::string("farandole ") + FARANDOLE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "farandole COMMAND --help explains a command. To begin with:\n"
      "  farandole run -np 2 python3 train.py");
  std::vector<std::pair<CLI::App*, std::unique_ptr<Command>>> commands;
  for (const Subcommand& one : subcommands()) {
    // A job need not wait for commands that nobody has asked for.
    if (one.make == nullptr || (chosen != nullptr && chosen != &one)) continue;
    CLI::App* const own = app.add_subcommand(std::string(one.name), std::string(one.help));
    commands.emplace_back(own, one.make(*own));
  }
  if (words.empty()) {
    std::fputs(app.help().c_str(), stderr);
    return kUsage;
  }
  const std::string who = chosen == nullptr ? "farandole" : "farandole " + words[0];
  if (chosen != nullptr) {
    auto options = commands.front().second->prepare({words.begin() + 1, words.end()});
    if (!options.ok()) return complain(who, options.status().message());
    options->insert(options->begin(), words[0]);
    words = std::move(*options);
  }
  try {
    std::reverse(words.begin(), words.end());  // as CLI11 wants it
    app.parse(std::move(words));
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help, --version
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();  // a command's own exit code
  } catch (const CLI::ParseError& error) {
    return complain(who, error.what());
  }
  for (const auto& [own, command] : commands) {
    if (own->parsed()) return command->execute();
  }
  return 0;
}

}  // namespace
}  // namespace farandole::command

int main(int argc, char** argv) {
  farandole::command::openStandardDescriptors();
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (const auto code = farandole::compat::runCompat(argc > 0 ? argv[0] : "", words)) return *code;
  return farandole::command::commandMain(std::move(words));
}
