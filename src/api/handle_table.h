// HandleTable: numbers for entries. A handle is a holder and its generation, so that a released
// handle is never mistaken for a later one. Thread-safe. Lives as long as the process: handles
// outlive a shutdown.
#pragma once

#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "conductor/entry.h"

namespace farandole::api {

class HandleTable {
 public:
  // Gives the entry its handle.
  void add(const conductor::EntryPtr& entry);
  // Null: no such handle.
  conductor::EntryPtr find(std::uint64_t handle) const;
  // False: no such handle.
  bool release(std::uint64_t handle);

 private:
  struct Holder {
    std::uint32_t generation = 1;
    conductor::EntryPtr entry;
  };
  const Holder* holderOf(std::uint64_t handle) const REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::vector<Holder> holders_ GUARDED_BY(mutex_);
  std::vector<std::uint32_t> free_ GUARDED_BY(mutex_);
};

}  // namespace farandole::api
