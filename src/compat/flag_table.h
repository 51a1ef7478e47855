// Flags of an old command as a table, and what was found of them on a command line.
//
// A flag says how it is spelled, what follows it, and what becomes of it under `farandole run`.
// Most need nothing else; kSpecial ones are looked up by their translator.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace farandole::compat {

enum class Takes {
  kNothing,
  kValue,
  kTwoValues,   // --mca NAME VALUE
  kAssignment,  // -genv NAME VALUE or -genv NAME=VALUE; two values either way
};

enum class Becomes {
  kOption,    // the option of `farandole run` that target names
  kVariable,  // an environment variable: target is NAME=VALUE
  kNothing,   // accepted without a word: target says why nothing is lost
  kNote,      // accepted with one line: target
  kRefusal,   // an error with this reason: target
  kSpecial,   // the translator knows; target says it in words, for help and docs/compat.md
};

struct Flag {
  std::string_view spellings;  // separated by blanks; the first one is its name in Given
  Takes takes;
  Becomes becomes;
  std::string_view target;

  std::string_view name() const { return spellings.substr(0, spellings.find(' ')); }
  std::vector<std::string> allSpellings() const;
  // What becomes of it, in words: the right column of docs/compat.md.
  std::string effect() const;
};

// How a command reads its words.
struct Grammar {
  std::string_view command;
  std::string_view example;  // a few options for messages
  std::span<const Flag> flags;
  bool anyDashes = false;      // -flag and --flag are the same
  bool underscores = false;    // --my_flag and --my-flag are the same
  bool abbreviations = false;  // --verb is --verbose; -p22 is -p 22
};

// The flags that were given, in order, and the command after them.
class Given {
 public:
  struct Entry {
    const Flag* flag;
    std::string spelling;  // as typed
    std::vector<std::string> values;
  };

  bool has(std::string_view name) const { return last(name) != nullptr; }
  const Entry* last(std::string_view name) const;
  // The last of either: for pairs such as --autotune and --no-autotune.
  const Entry* lastOf(std::string_view one, std::string_view other) const;
  std::optional<std::string> value(std::string_view name) const;
  std::vector<std::string> values(std::string_view name) const;  // of every occurrence

  std::vector<Entry> entries;
  std::vector<std::string> command;
};

Result<Given> parseFlags(const Grammar& grammar, const std::vector<std::string>& words);

// The flags of every old command.
const Grammar& horovodrunGrammar();
const Grammar& ipexrunGrammar();
const Grammar& torchrunGrammar();
const Grammar& mpirunGrammar();

// The page for --help.
std::string helpText(const Grammar& grammar);

// A whole number within [low, high], or an error that names the flag.
Result<long> wholeNumber(std::string_view flag, std::string_view text, long low, long high);
// The same for a number such as 0.5.
Result<double> decimalNumber(std::string_view flag, std::string_view text, double low, double high);

}  // namespace farandole::compat
