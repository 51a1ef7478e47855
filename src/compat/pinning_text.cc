// Pinning in the notations of those who read it.
#include <algorithm>
#include <charconv>
#include <set>

#include "compat/pinning.h"
#include "compat/split_words.h"

namespace farandole {
namespace {

constexpr int kMostCpus = 1 << 16;

// Bit n stands for CPU n.
std::string mask(const std::vector<int>& cpus) {
  if (cpus.empty()) return "0x0";
  std::vector<int> digits(static_cast<std::size_t>(cpus.back() / 4 + 1));
  for (const int cpu : cpus) digits[static_cast<std::size_t>(cpu / 4)] |= 1 << (cpu % 4);
  std::string text = "0x";
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    text += "0123456789abcdef"[*digit];
  }
  return text;
}

// joins what `part` makes of each rank.
template <typename Part>
std::string join(const std::vector<RankCpus>& ranks, char between, Part part) {
  std::string text;
  for (const RankCpus& rank : ranks) {
    const std::string next = part(rank);
    if (!text.empty() && !next.empty()) text += between;
    text += next;
  }
  return text;
}

bool parseNumber(std::string_view text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size() && value >= 0 &&
         value < kMostCpus;
}

}  // namespace

std::vector<int> RankCpus::all() const {
  std::vector<int> both = compute;
  both.insert(both.end(), workers.begin(), workers.end());
  std::sort(both.begin(), both.end());
  return both;
}

int Pinning::threads() const {
  if (ranks.empty()) return unpinnedThreads;
  std::size_t fewest = 0;
  for (const RankCpus& rank : ranks) {
    fewest = fewest == 0 ? rank.compute.size() : std::min(fewest, rank.compute.size());
  }
  return static_cast<int>(fewest);
}

std::string Pinning::pinDomain() const {
  return "[" + join(ranks, ',', [](const RankCpus& rank) { return mask(rank.compute); }) + "]";
}

std::string Pinning::workerAffinity() const {
  return join(ranks, ',', [](const RankCpus& rank) {
    std::string list;
    for (const int cpu : rank.workers) list += (list.empty() ? "" : ",") + std::to_string(cpu);
    return list;
  });
}

std::string Pinning::cpuSets() const {
  return join(ranks, ';', [](const RankCpus& rank) { return cpuList(rank.all()); });
}

std::string cpuList(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[i]);
    if (last > i) text += "-" + std::to_string(cpus[last]);
    i = last + 1;
  }
  return text;
}

Result<std::vector<int>> parseCpuList(const std::string& flag, const std::string& text) {
  std::set<int> numbers;
  for (const std::string& part : splitList(text)) {
    const auto dash = part.find('-');
    int first = 0;
    int last = 0;
    const bool good =
        parseNumber(std::string_view(part).substr(0, dash), first) &&
        (dash == std::string::npos || parseNumber(std::string_view(part).substr(dash + 1), last));
    if (dash == std::string::npos) last = first;
    if (!good || last < first) {
      return Status::invalid(flag + " takes a list such as 0,2-3, not '" + text + "'");
    }
    for (int number = first; number <= last; ++number) numbers.insert(number);
  }
  if (numbers.empty()) return Status::invalid(flag + " takes a list such as 0,2-3");
  return std::vector<int>(numbers.begin(), numbers.end());
}

}  // namespace farandole
