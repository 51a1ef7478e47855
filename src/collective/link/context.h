// What the operations of one LinkCommunicator share: who the members are, the numbering of
// collectives, the failure that ends them all, and scratch memory.
//
// Used by the driver only; Bell is shared with the mesh's callbacks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "collective/link/link_communicator.h"
#include "collective/scratch.h"

namespace farandole::collective::link {

// Rings the driver, until it is closed: callbacks may come when the communicator is gone.
class Bell {
 public:
  explicit Bell(std::function<void()> wake) : wake_(std::move(wake)) {}
  void ring() {
    const MutexLock lock(mutex_);
    if (wake_) wake_();
  }
  void close() {
    const MutexLock lock(mutex_);
    wake_ = nullptr;
  }

 private:
  Mutex mutex_;
  std::function<void()> wake_ GUARDED_BY(mutex_);
};

// The 40 bits of a slot that are the engine's: bit 39 says which of the two halves it is in.
//     collectives     38..24 number of the operation, 23..0 step within it
//     point to point  38..36 kind, 35..0 number of the message between these two members
// Members are at most one operation apart, so numbers may start again.
inline constexpr int kKeyShift = 40;
inline constexpr int kSequenceShift = 24;
inline constexpr std::uint64_t kSequences = std::uint64_t{1} << 15;
inline constexpr std::uint64_t kSteps = std::uint64_t{1} << kSequenceShift;
inline constexpr std::uint64_t kPointToPoint = std::uint64_t{1} << 39;
inline constexpr int kKindShift = 36;
inline constexpr std::uint64_t kMessageNumbers = std::uint64_t{1} << kKindShift;

struct Context {
  explicit Context(LinkOptions given)
      : options(std::move(given)), bell(std::make_shared<Bell>(options.wake)) {}
  ~Context() { bell->close(); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int me() const { return options.me; }
  int size() const { return static_cast<int>(options.ranks.size()); }
  int rankOf(int member) const { return options.ranks[static_cast<std::size_t>(member)]; }
  // "rank 3 on beta"
  std::string nameOf(int member) const;

  std::uint64_t keyBits() const { return std::uint64_t{options.key} << kKeyShift; }
  std::uint64_t nextSlots() { return keyBits() | (sequence++ % kSequences) << kSequenceShift; }

  const LinkOptions options;
  const std::shared_ptr<Bell> bell;
  std::uint64_t sequence = 0;
  Status failure;  // not ok: every operation fails with it
  ScratchPool scratch{1};
};

}  // namespace farandole::collective::link
