// Rank 0's standard input.
//
// Anything but a terminal is simply handed to rank 0: it reads what it wants and when it wants, end
// of file included, and a loop in a shell script around the launcher keeps the rest. A terminal is
// read here, because rank 0 is in a background process group and may not. Main thread only.
#pragma once

#include <string>

#include "base/fd.h"
#include "base/status.h"

namespace farandole::launch::supervise {

class StdinPump {
 public:
  static Result<StdinPump> open();

  // What rank 0 gets; only until releaseRankEnd().
  int rankFd() const { return rankEnd_ ? rankEnd_.get() : 0; }
  // After rank 0 has been started, or it would never see end of file.
  void releaseRankEnd() { rankEnd_.reset(); }

  // The one descriptor to wait for now, and for what (EPOLLIN, EPOLLOUT); -1: nothing.
  int waitFd() const;
  unsigned waitEvents() const { return pending_.empty() ? 0x001U : 0x004U; }
  // Call when that is ready. Never blocks.
  void ready();
  // We may have become the terminal's foreground job: try reading again.
  void retry() { background_ = false; }
  void stop();

 private:
  StdinPump() = default;
  UniqueFd rankEnd_;
  UniqueFd pipe_;        // to rank 0; empty: nothing to pump
  std::string pending_;  // read from the terminal, not yet taken by the pipe
  bool background_ = false;
};

}  // namespace farandole::launch::supervise
