// The operations in flight, so that Ctrl-C can withdraw them: the main thread waits inside
// TensorFlow for a graph, which waits for another rank, and sees no signal before that ends.
//
// All functions may be called from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "library.h"

namespace farandole_ops {

class Pending {
 public:
  // Before the operations are submitted: they may be done before that call returns.
  uint64_t add() {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_.emplace(++last_, Entry{});
    return last_;
  }

  void started(uint64_t id, std::vector<farandole_handle> handles) {
    bool withdraw = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = entries_.find(id);
      if (found == entries_.end()) return;  // done already
      found->second.handles = handles;
      withdraw = found->second.withdrawn;
    }
    if (withdraw) cancel(handles);
  }

  size_t count() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return entries_.size();
  }

  void remove(uint64_t id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_.erase(id);
  }

  // What other ranks have begun with goes on; it will end soon, or with a lost rank.
  void withdrawAll() {
    std::vector<farandole_handle> handles;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (auto& each : entries_) {
        each.second.withdrawn = true;
        handles.insert(handles.end(), each.second.handles.begin(), each.second.handles.end());
      }
    }
    cancel(handles);
  }

 private:
  struct Entry {
    std::vector<farandole_handle> handles;
    bool withdrawn = false;
  };

  // Never under the lock: Farandole may have to wait for a completion that wants it.
  static void cancel(const std::vector<farandole_handle>& handles) {
    for (const auto handle : handles) library().cancel(handle);
  }

  std::mutex mutex_;
  uint64_t last_ = 0;
  std::unordered_map<uint64_t, Entry> entries_;
};

// Never destroyed: operations may end while the process exits.
inline Pending& pending() {
  static Pending* const all = new Pending;
  return *all;
}

}  // namespace farandole_ops
