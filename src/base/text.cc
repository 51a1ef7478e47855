#include "base/text.h"

#include <algorithm>
#include <numeric>

namespace farandole {
namespace {

bool isBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && isBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && isBlank(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> parseDigits(std::string_view text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  std::int64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::string result = "'";
  for (char c : text.substr(0, kMost)) result += c >= ' ' && c <= '~' ? c : '?';
  result += text.size() > kMost ? "…'" : "'";
  return result;
}

std::string oneLine(std::string text) {
  for (char& c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f) c = '?';
  }
  return text;
}

std::string shellQuoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string shellWord(std::string_view text, std::string_view alsoPlain) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./=:,+@%").find(c) != std::string_view::npos ||
           alsoPlain.find(c) != std::string_view::npos;
  });
  return plain ? std::string(text) : shellQuoted(text);
}

std::vector<std::string_view> splitWords(std::string_view text) {
  std::vector<std::string_view> words;
  while (!(text = trimmed(text)).empty()) {
    const auto* end = std::find_if(text.begin(), text.end(), isBlank);
    const auto length = static_cast<std::size_t>(end - text.begin());
    words.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return words;
}

std::vector<std::string_view> splitAt(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (;;) {
    const auto end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::string countOf(std::int64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string rankList(std::vector<std::int32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(ranks[i]);
    if (last > i) text += (last == i + 1 ? ", " : "-") + std::to_string(ranks[last]);
    i = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

std::string hexOf(std::span<const std::uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

namespace {

// Insertions, deletions and replacements between a and b (Levenshtein), one row at a time.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0U);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string> closest(const std::string& word,
                                   const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t fewest = word.size() / 3 + 2;  // more than this many errors is another word
  for (const std::string& candidate : candidates) {
    // The beginning of a word is no typing error.
    const bool begins = word.size() >= 4 && candidate.starts_with(word);
    const std::size_t errors = begins ? 1 : distance(word, candidate);
    if (errors < fewest) {
      fewest = errors;
      best = candidate;
    }
  }
  return best;
}

std::string fillTemplate(std::string_view text,
                         std::initializer_list<std::pair<std::string_view, std::string>> values) {
  std::string out;
  while (true) {
    const auto begin = text.find('@');
    out += text.substr(0, begin);
    if (begin == std::string_view::npos) return out;
    text.remove_prefix(begin);
    const auto end = text.find('@', 1);
    const std::string_view name =
        end == std::string_view::npos ? std::string_view() : text.substr(1, end - 1);
    const auto* found = values.begin();
    while (found != values.end() && (name.empty() || found->first != name)) ++found;
    if (found == values.end()) {
      out += '@';
      text.remove_prefix(1);
    } else {
      out += found->second;
      text.remove_prefix(end + 1);
    }
  }
}

std::string joinLines(std::string_view text) {
  std::string out;
  for (std::string_view line : splitAt(text, '\n')) {
    line = trimmed(line);
    if (line.empty() || line.front() == '#') continue;
    if (!out.empty()) out += ' ';
    out += line;
  }
  return out;
}

}  // namespace farandole
