#include "compat/compat.h"

#include <cstdio>

#include "compat/flag_table.h"
#include "compat/split_words.h"

namespace farandole::compat {
namespace {

constexpr int kUsage = 2;

constexpr Compat kCommands[] = {
    {"horovodrun", horovodrunGrammar, translateHorovodrun},
    {"ipexrun", ipexrunGrammar, translateIpexrun},
    {"torchrun", torchrunGrammar, translateTorchrun},
    {"mpirun", mpirunGrammar, translateMpirun},
    {"mpiexec", mpirunGrammar, translateMpirun},
};

}  // namespace

std::optional<Compat> compatFor(std::string_view argv0) {
  const std::string_view name = argv0.substr(argv0.rfind('/') + 1);
  for (const Compat& command : kCommands) {
    if (command.name == name) return command;
  }
  return std::nullopt;
}

std::optional<int> runCompat(std::string_view argv0, std::vector<std::string>& words) {
  const auto command = compatFor(argv0);
  if (!command) return std::nullopt;
  const std::string name(command->name);
  auto translation = command->translate(words, Surroundings::real());
  if (!translation.ok()) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), translation.status().message().c_str());
    return kUsage;
  }
  if (!translation->text.empty()) {
    std::fputs(translation->text.c_str(), stdout);
    return 0;
  }
  if (!translation->quiet) {
    if (translation->verbose) {
      translation->notes.insert(translation->notes.begin(),
                                "this is: farandole run " + joinWords(translation->words));
    }
    for (const std::string& note : translation->notes) {
      std::fprintf(stderr, "farandole: note: %s\n", note.c_str());
    }
  }
  words = std::move(translation->words);
  words.insert(words.begin(), "run");
  return std::nullopt;
}

}  // namespace farandole::compat
