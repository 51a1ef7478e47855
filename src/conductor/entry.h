// Entry: one submitted operation, from submission until its handle is released.
//
// Shared between the table of handles, the process set that runs it and whoever waits. Before
// `done` the driver owns the outcome; after it (store with release, load with acquire) the outcome
// never changes again.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "collective/exchange.h"
#include "control/messages.h"
#include "control/meta.h"
#include "control/ordered_channel.h"

namespace farandole::conductor {

class CompletionQueue;

// Returns memory for an output of that size and shape, or nullptr.
using OutputAllocator =
    std::function<void*(std::size_t bytes, const std::vector<std::int64_t>& shape)>;

// Of an output that the library or the caller's allocator provides.
inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// A checked request: what api/ makes of a farandole_request.
struct Request {
  std::string name;    // empty: named by call order
  control::Meta meta;  // root is a member index; for send and recv the peer (or kAnyMember)
  const void* input = nullptr;
  void* output = nullptr;
  // The room there. Nothing behind it is written, whatever the other ranks say.
  std::int64_t outputBytes = kNoLimit;
  std::vector<std::int64_t> splits;  // alltoall, scatter
  std::int32_t tag = 0;
  std::uint64_t group = 0;  // as the user named it
  bool willWait = false;
  bool ordered = false;  // the caller promises the same order on all members
  OutputAllocator allocate;
  std::function<void(std::uint64_t handle, Code code)> onComplete;
  bool callbackAnywhere = false;  // onComplete may run on the thread that drives
  std::shared_ptr<CompletionQueue> queue;
  std::uint64_t queueTag = 0;
};

struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};

struct Outcome {
  Status status;
  void* data = nullptr;
  std::size_t bytes = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> splits;  // rows received from each member
  std::int32_t lastJoined = -1;
  std::int32_t source = -1;
  std::unique_ptr<void, FreeDeleter> owned;  // the data, if the library owns it
};

struct Entry final : control::OrderedOperation {
  const std::string& orderedName() const override { return request.name; }
  const control::Meta& orderedMeta() const override { return request.meta; }
  TimePoint orderedSince() const override { return submitted; }
  // To be used for another operation, once done; keeps what memory it has.
  void renew();

  std::uint64_t handle = 0;  // 0: nobody but its caller knows of it
  std::int32_t set = 0;
  Request request;
  TimePoint submitted;
  // What all members agree on: the meta of its plan, set when its batch begins. It differs from the
  // request's meta where members may differ, as in the shape of a scatter, which is the root's.
  std::shared_ptr<const control::Meta> agreed;
  // Stands for an operation of the others in a batch, after this member has joined: nobody
  // submitted it here, and its contribution is neutral elements.
  bool neutral = false;
  // It needs no agreement; set when it is submitted.
  std::optional<collective::Exchange> exchange;
  Outcome outcome;
  std::atomic<bool> done{false};
};
using EntryPtr = std::shared_ptr<Entry>;

// For messages: the caller's name for it, or which one it was.
std::string nameOf(const Entry& entry);

// Noted in the entry's outcome, with its size and shape: that one, or with so many rows instead of
// its first dimension (a scalar then becomes a vector). An error if the caller's memory is
// smaller: the last guard, for what is the caller's mistake or another rank's has been refused
// before.
Result<void*> provideOutput(Entry& entry, const std::vector<std::int64_t>& shape,
                            std::optional<std::int64_t> rows = std::nullopt);

}  // namespace farandole::conductor
