// Entry: one submitted operation, from its submission until its handle is released.
//
// The table of handles, the process set that runs the operation and the threads that wait for it
// share the entry. The driver owns the outcome until `done` is set. After that (stored with
// release, loaded with acquire) the outcome never changes.
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

// The room in an output that the library or the caller's allocator provides.
inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// A request after it was checked: what api/ makes of a farandole_request.
struct Request {
  std::string name;    // empty: named by call order
  control::Meta meta;  // root is a member index; for send and recv the peer (or kAnyMember)
  const void* input = nullptr;
  void* output = nullptr;
  // The room in the output. Nothing is written beyond it, whatever other ranks say.
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
  // Prepares a finished entry for another operation. It keeps the memory that it has.
  void renew();

  std::uint64_t handle = 0;  // 0: only its caller knows the entry
  std::int32_t set = 0;
  Request request;
  TimePoint submitted;
  // What all members have agreed on: the meta of its plan, set when its batch begins. It may differ
  // from the request's meta where members may differ; the shape of a scatter, for instance, is the
  // root's.
  std::shared_ptr<const control::Meta> agreed;
  // True for an entry that stands for an operation of the other members after this one has joined.
  // It was not submitted here, and its contribution is neutral elements.
  bool neutral = false;
  // Set at submission for an operation that needs no agreement.
  std::optional<collective::Exchange> exchange;
  Outcome outcome;
  std::atomic<bool> done{false};
};
using EntryPtr = std::shared_ptr<Entry>;

// What messages call it: the caller's name, or its number among the ordered operations.
std::string nameOf(const Entry& entry);

// Provides the memory that the result goes into: the caller's, what the caller's allocator returns,
// or memory that the library owns. It is noted in the entry's outcome, with its size and shape.
// rows replaces the first dimension of the shape (a scalar then becomes a vector). An error if the
// caller's memory is too small. That is the last guard: mistakes of the caller or of another rank
// have been refused before.
Result<void*> provideOutput(Entry& entry, const std::vector<std::int64_t>& shape,
                            std::optional<std::int64_t> rows = std::nullopt);

}  // namespace farandole::conductor
