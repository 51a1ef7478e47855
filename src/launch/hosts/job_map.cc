#include "launch/hosts/job_map.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace farandole::launch::hosts {
namespace {

using Row = std::array<std::string, 5>;

bool sameShare(const MappedRank& a, const MappedRank& b) {
  return a.cpus == b.cpus && a.threads == b.threads;
}

Row rowOf(const MappedHost& host, std::size_t begin, std::size_t end) {
  std::vector<int> ranks;
  for (std::size_t i = begin; i < end; ++i) ranks.push_back(host.ranks[i].rank);
  const MappedRank& first = host.ranks[begin];
  // Ranks are numbers in a list like CPUs are, so they are written alike.
  return {begin == 0 ? host.name : "", begin == 0 ? std::to_string(host.slots) : "",
          process::formatCpuList(ranks),
          first.cpus.empty() ? "any" : process::formatCpuList(first.cpus),
          first.threads == 0 ? "-" : std::to_string(first.threads)};
}

std::vector<Row> rowsOf(const MappedHost& host) {
  if (host.ranks.empty()) return {{host.name, std::to_string(host.slots), "-", "-", "-"}};
  std::vector<Row> rows;
  for (std::size_t begin = 0; begin < host.ranks.size();) {
    std::size_t end = begin + 1;
    while (end < host.ranks.size() && sameShare(host.ranks[begin], host.ranks[end])) ++end;
    rows.push_back(rowOf(host, begin, end));
    begin = end;
  }
  return rows;
}

}  // namespace

std::string describeMap(const std::vector<MappedHost>& hosts) {
  std::vector<Row> rows = {{"host", "slots", "ranks", "cpus", "threads"}};
  for (const MappedHost& host : hosts) {
    for (Row& row : rowsOf(host)) rows.push_back(std::move(row));
  }
  std::array<std::size_t, 5> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - row[i].size() + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

std::string describeMapAsOpenMpi(const std::vector<MappedHost>& hosts, int jobFamily) {
  const std::string job = "[" + std::to_string(jobFamily) + ",1]";
  std::int64_t slots = 0;
  for (const MappedHost& host : hosts) slots += host.slots;
  std::string text =
      " Data for JOB " + job + " offset 0 Total slots allocated " + std::to_string(slots) + "\n\n";
  text += " ========================   JOB MAP   ========================\n";
  for (const MappedHost& host : hosts) {
    if (host.ranks.empty()) continue;
    text += "\n Data for node: " + host.name + "\tNum slots: " + std::to_string(host.slots) +
            "\tMax slots: 0\tNum procs: " + std::to_string(host.ranks.size()) + "\n";
    for (const MappedRank& rank : host.ranks) {
      text += " \tProcess OMPI jobid: " + job +
              " App: 0 Process rank: " + std::to_string(rank.rank) +
              " Bound: " + (rank.cpus.empty() ? "N/A" : process::formatCpuList(rank.cpus)) + "\n";
    }
  }
  return text + "\n =============================================================\n";
}

}  // namespace farandole::launch::hosts
