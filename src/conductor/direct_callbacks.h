// DirectCallbacks: callbacks that run on whichever thread drove their operations to the end, once
// it has let go of that role: nobody has to be woken for them.
//
// A callback may submit, test and release: so none runs while drive_ is held, and none inside of
// another one. What completes while a callback drives a little (test) is run by the same thread
// when that callback has returned.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "conductor/driver_role.h"

namespace farandole::conductor {

class DirectCallbacks {
 public:
  using Batch = std::vector<std::function<void()>>;

  // The driver's: noted while it drives, taken before it lets go.
  void add(std::function<void()> callback) REQUIRES(driverRole);
  bool any() const REQUIRES(driverRole) { return !due_.empty(); }
  Batch take() REQUIRES(driverRole) { return std::exchange(due_, {}); }

  // Any thread, with no lock held. Returns when they have run; from inside of a callback at once.
  void run(Batch batch) {
    if (!batch.empty()) runAll(std::move(batch));
  }
  // Until everything noted has run, on whatever thread. Not from a callback.
  void awaitAll() const;

  // Whether the calling thread is inside of a callback.
  static bool isInside();

 private:
  void runAll(Batch batch);

  Batch due_ GUARDED_BY(driverRole);
  std::atomic<std::int64_t> owed_{0};  // noted, and not yet through
};

}  // namespace farandole::conductor
