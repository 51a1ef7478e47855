#include "bootstrap/bootstrap.h"

#include <cstring>

namespace farandole::bootstrap {

std::string describe(const RankEnd& end) {
  if (!end.account.empty()) return end.account;
  const std::string where = end.host.empty() ? std::string() : " on " + end.host;
  if (end.rank < 0) {
    // The agent itself; what is known about its loss stands in lastLines.
    return "the agent" + where + " was lost" +
           (end.lastLines.empty() ? std::string() : ": " + end.lastLines);
  }
  const std::string who = "rank " + std::to_string(end.rank) + where;
  if (end.hostLost) return who + " is out of reach: its host was lost";
  if (!end.signalled) return who + " exited with code " + std::to_string(end.code);
  // sigdescr_np is thread-safe and, unlike strsignal, nullptr for numbers that are no signals.
  const char* name = ::sigdescr_np(end.code);
  return who + " was killed by signal " + std::to_string(end.code) +
         (name != nullptr ? " (" + std::string(name) + ")" : std::string());
}

std::string describe(const RankStop& stop) {
  const std::string process = std::to_string(stop.pid);
  const std::string who =
      "rank " + std::to_string(stop.rank) + " on " + stop.host + " (process " + process + ")";
  switch (stop.how) {
    case Standstill::kNone: return who + " runs again";
    case Standstill::kSignal:
      return who + " is stopped; the others wait for it. To continue it: kill -CONT " + process;
    case Standstill::kDebugger:
      return who + " is stopped by a debugger; the others wait for it. Continue it there";
    case Standstill::kFrozen:
      return who + " is stopped: its cgroup is frozen; the others wait until that is thawed";
  }
  return who;
}

}  // namespace farandole::bootstrap
