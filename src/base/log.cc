#include "base/log.h"

#include <unistd.h>

#include <atomic>

namespace farandole {
namespace {

std::atomic<LogLevel> level_{LogLevel::kWarning};
std::atomic<int> rank_{-1};

std::string_view label(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kError: return "error";
    case LogLevel::kOff: break;
  }
  return "";
}

}  // namespace

void setLogLevel(LogLevel level) { level_.store(level, std::memory_order_relaxed); }
void setLogRank(int rank) { rank_.store(rank, std::memory_order_relaxed); }
bool logs(LogLevel level) { return level >= level_.load(std::memory_order_relaxed); }

void log(LogLevel level, std::string_view text) {
  if (!logs(level)) return;
  const int rank = rank_.load(std::memory_order_relaxed);
  std::string line = "farandole";
  if (rank >= 0) line += "[" + std::to_string(rank) + "]";
  line.append(" ").append(label(level)).append(": ").append(text).append("\n");
  // A line that cannot be written has nowhere else to go.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace farandole
