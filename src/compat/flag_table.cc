#include "compat/flag_table.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace farandole::compat {
namespace {

// The shortest abbreviation of a long flag: "--" and two letters.
constexpr std::size_t kShortestAbbreviation = 4;

std::string_view withoutDashes(std::string_view word) {
  const auto begin = word.find_first_not_of('-');
  return begin == std::string_view::npos ? std::string_view() : word.substr(begin);
}

// The comparable form of a spelling: "--nproc_per_node" → "--nproc-per-node".
std::string comparable(const Grammar& grammar, std::string_view spelling) {
  std::string text(grammar.anyDashes ? withoutDashes(spelling) : spelling);
  if (grammar.underscores) std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

const Flag* exactly(const Grammar& grammar, std::string_view word) {
  const std::string wanted = comparable(grammar, word);
  if (wanted.empty()) return nullptr;
  for (const Flag& flag : grammar.flags) {
    for (const std::string& spelling : flag.allSpellings()) {
      if (comparable(grammar, spelling) == wanted) return &flag;
    }
  }
  return nullptr;
}

// The flags whose long spelling begins so, by that spelling.
std::vector<std::pair<const Flag*, std::string>> abbreviated(const Grammar& grammar,
                                                             std::string_view word) {
  std::vector<std::pair<const Flag*, std::string>> found;
  const std::string wanted = comparable(grammar, word);
  if (!grammar.abbreviations || !word.starts_with("--") || wanted.size() < kShortestAbbreviation) {
    return found;
  }
  for (const Flag& flag : grammar.flags) {
    for (std::string& spelling : flag.allSpellings()) {
      if (!comparable(grammar, spelling).starts_with(wanted)) continue;
      found.emplace_back(&flag, std::move(spelling));
      break;
    }
  }
  return found;
}

struct Found {
  const Flag* flag = nullptr;
  std::string spelling;
  std::optional<std::string> attached;  // "2" of "-np=2" or "-n2"
};

Found find(const Grammar& grammar, const std::string& word) {
  if (const Flag* flag = exactly(grammar, word)) return {flag, word, {}};
  const auto equals = word.find('=');
  const std::string name = word.substr(0, equals);
  std::optional<std::string> attached;
  if (equals != std::string::npos) attached = word.substr(equals + 1);
  if (const Flag* flag = exactly(grammar, name)) return {flag, name, attached};
  if (const auto flags = abbreviated(grammar, name); flags.size() == 1) {
    return {flags[0].first, flags[0].second, attached};
  }
  if (grammar.abbreviations && word.size() > 2 && word[0] == '-' && word[1] != '-') {
    const Flag* flag = exactly(grammar, word.substr(0, 2));
    if (flag != nullptr && flag->takes == Takes::kValue) {
      return {flag, word.substr(0, 2), word.substr(2)};
    }
  }
  return {};
}

Status unknown(const Grammar& grammar, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  if (const auto several = abbreviated(grammar, name); several.size() > 1) {
    std::string all;
    for (const auto& [flag, spelling] : several) all += (all.empty() ? "" : " or ") + spelling;
    return Status::invalid(name + " may mean " + all + ": type more of it");
  }
  std::vector<std::string> candidates;
  for (const Flag& flag : grammar.flags) {
    for (std::string& spelling : flag.allSpellings()) candidates.push_back(std::move(spelling));
  }
  // Two letters are too few to guess from.
  const auto guess = name.size() > 2 ? closest(name, candidates) : std::nullopt;
  return Status::invalid("there is no option " + name +
                         (guess ? "; did you mean " + *guess + "?"
                                : "; " + std::string(grammar.command) + " --help lists them"));
}

// Takes the values of one flag from the words behind it.
Status takeValues(const Found& found, const std::vector<std::string>& words, std::size_t& at,
                  Given::Entry& entry) {
  if (found.flag->takes == Takes::kNothing) {
    if (!found.attached) return {};
    return Status::invalid(found.spelling + " takes no value: leave '=" + *found.attached +
                           "' out");
  }
  const std::size_t wanted = found.flag->takes == Takes::kValue ? 1 : 2;
  if (found.attached) entry.values.push_back(*found.attached);
  while (entry.values.size() < wanted) {
    if (found.flag->takes == Takes::kAssignment && entry.values.size() == 1) {
      std::string& name = entry.values[0];
      if (const auto equals = name.find('='); equals != std::string::npos) {
        std::string value = name.substr(equals + 1);
        name.resize(equals);
        entry.values.push_back(std::move(value));
        break;
      }
    }
    if (at + 1 >= words.size()) {
      return Status::invalid(found.spelling + " needs " + (wanted == 1 ? "a value" : "two values") +
                             " after it");
    }
    entry.values.push_back(words[++at]);
  }
  return {};
}

template <typename T>
std::optional<T> parseNumber(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Status badNumber(std::string_view flag, std::string_view text, const std::string& low,
                 const std::string& high, const char* kind) {
  return Status::invalid(std::string(flag) + " takes " + kind + " from " + low + " to " + high +
                         ", not '" + std::string(text) + "'");
}

std::string shown(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

std::vector<std::string> Flag::allSpellings() const {
  std::vector<std::string> all;
  std::string_view rest = spellings;
  while (!rest.empty()) {
    const auto blank = rest.find(' ');
    all.emplace_back(rest.substr(0, blank));
    rest.remove_prefix(blank == std::string_view::npos ? rest.size() : blank + 1);
  }
  return all;
}

std::string Flag::effect() const {
  const std::string text(target);
  switch (becomes) {
    case Becomes::kOption: return "`" + text + "`";
    case Becomes::kVariable: return "variable `" + text + "`";
    case Becomes::kNothing: return "accepted: " + text;
    case Becomes::kNote: return "accepted with a note: " + text;
    case Becomes::kRefusal: return "refused: " + text;
    case Becomes::kSpecial: return text;
  }
  return text;
}

const Given::Entry* Given::last(std::string_view name) const { return lastOf(name, name); }

const Given::Entry* Given::lastOf(std::string_view one, std::string_view other) const {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->flag->name() == one || entry->flag->name() == other) return &*entry;
  }
  return nullptr;
}

std::optional<std::string> Given::value(std::string_view name) const {
  const Entry* entry = last(name);
  if (entry == nullptr || entry->values.empty()) return std::nullopt;
  return entry->values[0];
}

std::vector<std::string> Given::values(std::string_view name) const {
  std::vector<std::string> all;
  for (const Entry& entry : entries) {
    if (entry.flag->name() == name && !entry.values.empty()) all.push_back(entry.values[0]);
  }
  return all;
}

Result<Given> parseFlags(const Grammar& grammar, const std::vector<std::string>& words) {
  Given given;
  std::size_t at = 0;
  for (; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--") {
      ++at;
      break;
    }
    if (word.size() < 2 || word[0] != '-') break;
    const Found found = find(grammar, word);
    if (found.flag == nullptr) return unknown(grammar, word);
    Given::Entry entry{found.flag, found.spelling, {}};
    FARANDOLE_RETURN_IF_ERROR(takeValues(found, words, at, entry));
    given.entries.push_back(std::move(entry));
  }
  given.command.assign(words.begin() + static_cast<std::ptrdiff_t>(std::min(at, words.size())),
                       words.end());
  return given;
}

std::string helpText(const Grammar& grammar) {
  std::string text = "Usage: " + std::string(grammar.command) +
                     " [options] command [arguments...]\n"
                     "The words are translated into those of `farandole run`; with --verbose the\n"
                     "translation is shown. Options, and what becomes of them:\n";
  for (const Flag& flag : grammar.flags) {
    std::string left = "  " + std::string(flag.spellings);
    left.resize(std::max<std::size_t>(left.size(), 38), ' ');
    text += left + "  " + flag.effect() + "\n";
  }
  return text;
}

Result<long> wholeNumber(std::string_view flag, std::string_view text, long low, long high) {
  const auto value = parseNumber<long>(text);
  if (value && *value >= low && *value <= high) return *value;
  return badNumber(flag, text, std::to_string(low), std::to_string(high), "a whole number");
}

Result<double> decimalNumber(std::string_view flag, std::string_view text, double low,
                             double high) {
  const auto value = parseNumber<double>(text);
  if (value && *value >= low && *value <= high) return *value;
  return badNumber(flag, text, shown(low), shown(high), "a number");
}

}  // namespace farandole::compat
