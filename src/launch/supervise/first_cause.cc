#include "launch/supervise/first_cause.h"

#include <signal.h>

#include <chrono>

namespace farandole::launch::supervise {
namespace {

constexpr auto kDoubt = std::chrono::milliseconds(200);

// Signals that come from outside or from broken memory. SIGABRT is not among them: it is how a C++
// program ends that did not catch our "rank 1 was lost".
bool cannotBeAConsequence(int signal) {
  switch (signal) {
    case SIGKILL:
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGSYS:
    case SIGXCPU: return true;
    default: return false;
  }
}

}  // namespace

void FirstCause::observe(const bootstrap::RankEnd& end, TimePoint at, bool ordered) {
  if (ordered || (!end.signalled && end.code == 0)) return;
  const bool better = cause_ && !cause_->signalled && end.signalled &&
                      cannotBeAConsequence(end.code) && at - at_ <= kDoubt;
  if (cause_ && !better) return;
  cause_ = end;
  at_ = at;
}

int FirstCause::exitCode() const {
  if (!cause_) return 0;
  return cause_->signalled ? 128 + cause_->code : cause_->code;
}

}  // namespace farandole::launch::supervise
