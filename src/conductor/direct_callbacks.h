// DirectCallbacks: callbacks that run on the thread that drove their operations to the end, after
// that thread has given up the role of the driver. So no thread has to be woken for them.
//
// A callback may submit, test and release. Therefore none runs on a driver, and none inside another
// callback. What completes while a callback calls test is run by the same thread when that callback
// has returned.
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

  // The driver adds callbacks while it drives, and takes them before it gives up the role.
  void add(std::function<void()> callback) REQUIRES(driverRole);
  bool any() const REQUIRES(driverRole) { return !due_.empty(); }
  Batch take() REQUIRES(driverRole) { return std::exchange(due_, {}); }

  // Any thread may call it, holding no lock. Returns when the callbacks have run; inside a callback
  // it returns at once, and they run later.
  void run(Batch batch) {
    if (!batch.empty()) runAll(std::move(batch));
  }
  // Waits until everything that was added has run, on whatever thread. Must not be called from a
  // callback.
  void awaitAll() const;

  // True if the calling thread is inside a callback.
  static bool isInside();

 private:
  void runAll(Batch batch);

  Batch due_ GUARDED_BY(driverRole);
  std::atomic<std::int64_t> owed_{0};  // added, and not finished yet
};

}  // namespace farandole::conductor
