// Pinning in the notations of those who read it.
#include <algorithm>

#include "compat/pinning.h"
#include "compat/split_words.h"
#include "process/cpu_list.h"

namespace farandole::compat {
namespace {

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
  return join(ranks, ';', [](const RankCpus& rank) { return process::formatCpuList(rank.all()); });
}

Result<std::vector<int>> parseNumbers(const std::string& flag, const std::string& text) {
  std::string list;
  for (const std::string& part : splitList(text)) list += (list.empty() ? "" : ",") + part;
  auto numbers = process::parseCpuList(list);
  if (numbers.ok()) return numbers;
  return Status::invalid(flag + " takes a list such as 0,2-3" +
                         (list.empty() ? "" : ", not '" + text + "'"));
}

}  // namespace farandole::compat
