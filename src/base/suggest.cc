#include "base/suggest.h"

#include <algorithm>
#include <numeric>

namespace farandole {
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
    // Half a word is a beginning, not an error.
    const bool begins = word.size() >= 4 && candidate.starts_with(word);
    const std::size_t errors = begins ? 1 : distance(word, candidate);
    if (errors < fewest) {
      fewest = errors;
      best = candidate;
    }
  }
  return best;
}

}  // namespace farandole
