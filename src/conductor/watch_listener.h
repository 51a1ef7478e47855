// WatchListener: whom the watch tells what it has seen: the conductor. Called by the watch's
// thread.
#pragma once

#include "base/clock.h"
#include "base/status.h"

namespace farandole::conductor {

class WatchListener {
 public:
  virtual ~WatchListener() = default;
  // The job is over for this rank: everything in flight and everything later fails with that
  // status.
  virtual void fail(Status status) = 0;
  // Several times a second: that this process runs; suspended: that it did not for a while. Nobody
  // is late because of that.
  virtual void runs(TimePoint now, bool suspended) = 0;
};

}  // namespace farandole::conductor
