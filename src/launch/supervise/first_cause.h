// FirstCause: which of the ranks that ended abnormally is the one to blame.
//
// When one rank dies the others soon fail too, because of it. The earliest end is the cause, with
// one correction: a process that is killed may take longer to vanish than its neighbours take to
// notice, so a fatal signal seen shortly after a plain non-zero exit is preferred. Main thread
// only.
#pragma once

#include <optional>

#include "base/clock.h"
#include "bootstrap/bootstrap.h"

namespace farandole::launch::supervise {

class FirstCause {
 public:
  // A rank has ended. ordered: we had already sent it the signal it died of.
  void observe(const bootstrap::RankEnd& end, TimePoint at, bool ordered);

  const std::optional<bootstrap::RankEnd>& get() const { return cause_; }
  // The exit code of the job: the cause's, 128 + n for signal n; 0 without a cause.
  int exitCode() const;

 private:
  std::optional<bootstrap::RankEnd> cause_;
  TimePoint at_;
};

}  // namespace farandole::launch::supervise
