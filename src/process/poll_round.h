// PollRound: one round of an event loop: which descriptors are waited for, and what is done when
// one of them is ready. Made anew for every round; one thread.
#pragma once

#include <poll.h>

#include <functional>
#include <vector>

#include "base/clock.h"

namespace farandole::process {

class PollRound {
 public:
  // A negative descriptor is not waited for: a caller that expects nothing now passes one.
  void on(int fd, short events, std::function<void()> ready);

  // Waits for `limit` at most, which may be finer than milliseconds. Then calls what belongs to
  // each descriptor with one of its events, an error or a hang-up, in the order of on().
  void run(Duration limit);

 private:
  std::vector<pollfd> entries_;
  std::vector<std::function<void()>> ready_;  // the handler of each entry
};

}  // namespace farandole::process
