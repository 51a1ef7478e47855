#include "process/cpu_list.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text.h"

namespace farandole::process {

Result<CpuSet> parseCpuList(std::string_view text) {
  std::vector<bool> chosen(kMostCpus);
  for (std::string_view part : splitAt(text, ',')) {
    part = trimmed(part);
    const auto dash = part.find('-');
    const auto first = parseDigits(trimmed(part.substr(0, dash)));
    const auto last =
        dash == std::string_view::npos ? first : parseDigits(trimmed(part.substr(dash + 1)));
    if (!first || !last || *last < *first || *last >= kMostCpus) {
      return Status::invalid("in the list of CPUs " + quoted(text) + ": " + quoted(part) +
                             " is not a CPU or low-high; write for example 0-3,8");
    }
    std::fill(chosen.begin() + *first, chosen.begin() + *last + 1, true);
  }
  CpuSet cpus;
  for (int cpu = 0; cpu < kMostCpus; ++cpu) {
    if (chosen[static_cast<std::size_t>(cpu)]) cpus.push_back(cpu);
  }
  return cpus;
}

std::string formatCpuList(const CpuSet& cpus) {
  std::string text;
  for (std::size_t begin = 0; begin < cpus.size();) {
    std::size_t end = begin + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    if (begin > 0) text += ',';
    text += std::to_string(cpus[begin]);
    if (end - begin > 1) text += "-" + std::to_string(cpus[end - 1]);
    begin = end;
  }
  return text;
}

Result<std::vector<CpuSet>> parseCpuSets(std::string_view text) {
  std::vector<CpuSet> sets;
  for (std::string_view part : splitAt(text, ';')) {
    if (trimmed(part).empty()) {
      return Status::invalid("--cpus " + quoted(text) + ": the set of local rank " +
                             std::to_string(sets.size()) + " is empty; write for example 0-3;4-7");
    }
    auto cpus = parseCpuList(part);
    if (!cpus.ok()) return Status::invalid("--cpus: " + cpus.status().message());
    sets.push_back(std::move(*cpus));
  }
  return sets;
}

CpuSet commonCpus(const CpuSet& a, const CpuSet& b) {
  CpuSet both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace farandole::process
