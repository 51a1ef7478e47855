#include "launch/supervise/init_watch.h"

#include <algorithm>

namespace farandole::launch::supervise {

std::optional<std::string> findInitProblem(
    const std::vector<bootstrap::AgentServer::RankReport>& reports,
    const std::vector<bool>& endedWell) {
  const int size = static_cast<int>(reports.size());
  std::optional<int> absent;
  std::optional<int> inside;
  for (int rank = 0; rank < size; ++rank) {
    const auto& report = reports[static_cast<std::size_t>(rank)];
    if (report.size >= 0 && report.size != size) {
      return "rank " + std::to_string(rank) + " initialised as one of " +
             std::to_string(report.size) + " ranks, but the launcher started " +
             std::to_string(size) + ": does the script set FARANDOLE_SIZE itself?";
    }
    const bool ended = endedWell[static_cast<std::size_t>(rank)];
    if (ended && !report.initialised && !absent) absent = rank;
    if (!ended && report.connected && !report.initialised && !inside) inside = rank;
  }
  if (!absent || !inside) return std::nullopt;
  return "rank " + std::to_string(*absent) +
         " exited with code 0 without initialising Farandole, while rank " +
         std::to_string(*inside) +
         " is inside init and would wait for it: every rank must call init";
}

bool anyInitialised(const std::vector<bootstrap::AgentServer::RankReport>& reports) {
  return std::any_of(reports.begin(), reports.end(),
                     [](const auto& report) { return report.initialised; });
}

}  // namespace farandole::launch::supervise
