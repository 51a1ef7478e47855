#include "launch/supervise/failure_screen.h"

#include <chrono>
#include <cstdio>
#include <map>

#include "base/text.h"

namespace farandole::launch::supervise {
namespace {

std::string activity(const bootstrap::AgentServer::RankReport& report) {
  if (!report.what.empty()) return report.what;
  return report.connected ? "inside init" : "had not initialised Farandole";
}

// Ranks that did the same share a line; many different lines are cut.
std::string others(const std::set<int>& gone,
                   const std::vector<bootstrap::AgentServer::RankReport>& reports) {
  constexpr std::size_t kMostLines = 12;
  std::map<std::string, std::vector<int>> byActivity;
  for (int rank = 0; rank < static_cast<int>(reports.size()); ++rank) {
    if (gone.contains(rank)) continue;
    byActivity[activity(reports[static_cast<std::size_t>(rank)])].push_back(rank);
  }
  std::string text;
  std::size_t lines = 0;
  for (const auto& [what, ranks] : byActivity) {
    if (++lines > kMostLines) {
      return text + "    … and " + std::to_string(byActivity.size() - kMostLines) + " more\n";
    }
    text += "    " + rankList(ranks) + ": " + what + "\n";
  }
  return text;
}

std::string indented(const std::string& lines) {
  std::string text;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin) + 1;
    text += "    | " + lines.substr(begin, end - begin);
    begin = end;
  }
  return text;
}

}  // namespace

std::string failureScreen(const bootstrap::RankEnd& cause, const std::set<int>& gone,
                          const std::vector<bootstrap::AgentServer::RankReport>& reports,
                          Duration runtime, int exitCode, bool colour) {
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%.1f s", std::chrono::duration<double>(runtime).count());
  std::string text = "\nfarandole: the job failed after " + std::string(seconds) + "\n";
  text += std::string("  first cause: ") + (colour ? "\033[1;31m" : "") +
          bootstrap::describe(cause) + (colour ? "\033[0m" : "") + "\n";
  if (cause.lastLines.empty()) {
    text += cause.account.empty() ? "  it had printed nothing\n" : "";
  } else {
    text += (cause.account.empty() ? "  its last lines:\n"
                                   : "  last lines of rank " + std::to_string(cause.rank) + ":\n") +
            indented(cause.lastLines);
  }
  const std::string rest = others(gone, reports);
  if (!rest.empty()) text += "  the others at that moment:\n" + rest;
  return text + "  exit code " + std::to_string(exitCode) + "\n";
}

}  // namespace farandole::launch::supervise
