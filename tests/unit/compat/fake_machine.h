// A machine of the test's choice for translators, and short ways to call them.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compat/split_words.h"
#include "compat/translation.h"

namespace farandole::compat {

struct FakeMachine {
  std::map<std::string, std::string> variables;
  std::set<std::string> files;
  UsableCpus topology = UsableCpus::uniform(2, 28, 2);

  Surroundings surroundings() const {
    return {[this](const char* name) {
              const auto found = variables.find(name);
              return found == variables.end() ? nullptr : found->second.c_str();
            },
            [this](const std::string& path) { return files.contains(path); },
            [this] { return topology; }};
  }
};

using Translator = Result<Translation> (*)(const std::vector<std::string>&, const Surroundings&);

// Translates a line as a shell would divide it; the machine must outlive nothing.
inline Result<Translation> translateLine(Translator translator, const std::string& line,
                                         const FakeMachine& machine = {}) {
  auto words = splitShellWords(line);
  EXPECT_TRUE(words.ok()) << line;
  return translator(words.value(), machine.surroundings());
}

// The words of `farandole run` as one line, or "error: …".
inline std::string lineOf(Translator translator, const std::string& line,
                          const FakeMachine& machine = {}) {
  const auto translation = translateLine(translator, line, machine);
  if (!translation.ok()) return "error: " + translation.status().message();
  return joinWords(translation.value().words);
}

inline std::string notesOf(Translator translator, const std::string& line,
                           const FakeMachine& machine = {}) {
  const auto translation = translateLine(translator, line, machine);
  if (!translation.ok()) return "error: " + translation.status().message();
  std::string notes;
  for (const std::string& note : translation.value().notes) notes += note + "\n";
  return notes;
}

}  // namespace farandole::compat
