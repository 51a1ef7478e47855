// Communicator: collectives among the members of one process set; the interface that every engine
// implements.
//
// Nothing here knows tensor names, and nothing blocks: starting an operation returns an Operation
// that its owner advances with progress() until it is done or failed.
//
// Members.  They are named by their indices, 0 … size()-1 within the set, which are not ranks.
//
// Order.    All members start the collectives of a communicator in the same order, and a member
//           starts the next only when its previous one is done (so members may be one operation
//           apart). send and receive are matched by peer and tag; any number may be in flight
//           beside a collective, and none of them needs the peer to be in a collective.
//
// Threads.  One thread at a time uses a communicator and its operations: the driver, see
//           docs/threads.md.
//
// Failure.  A failed operation leaves in-place buffers undefined and the input of out-of-place
//           calls intact; the communicator then fails every later operation with the same status.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/clock.h"
#include "base/reduce.h"
#include "base/status.h"
#include "base/types.h"

namespace farandole::collective {

enum class Progress { kPending, kDone, kFailed };

class Operation {
 public:
  virtual ~Operation() = default;
  // Does what can be done now without waiting. Bounded: returns kPending after a few milliseconds
  // of copying at the latest, so that other sets, deadlines and signals get their turn. After kDone
  // or kFailed: same answer.
  virtual Progress progress() = 0;
  // After kPending: true if that call moved something, so that the next may at once; false if it
  // found nothing to do and the caller may sleep.
  virtual bool moved() const = 0;
  // After kPending without movement: how long the caller may sleep before it must call again. An
  // engine that rings when there is something to do sets no limit; one that cannot (MPI) asks to be
  // polled, ever more rarely the longer nothing has moved. Zero: at once, or after a yield.
  virtual Duration nap() const { return Duration::max(); }
  // Why it failed; ok otherwise.
  virtual const Status& status() const = 0;
};
using OperationPtr = std::unique_ptr<Operation>;

// One tensor of a fused reduction or broadcast: in may equal out; otherwise they do not overlap.
struct Piece {
  const void* in = nullptr;
  void* out = nullptr;
  std::int64_t count = 0;
};

inline constexpr int kAnyMember = -1;

struct Received {
  int source = -1;
  std::size_t bytes = 0;
};

// What an engine has done so far; for counters and benchmarks.
struct Statistics {
  std::uint64_t zeroCopyBytes = 0;  // reduced in shared memory without a copy
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  // The index of this member, 0 … size()-1.
  virtual int member() const = 0;
  virtual int size() const = 0;

  // Arguments are checked by the caller (conductor); counts are elements. Spans are copied before
  // return, the memory they describe must live until the operation ends. kAverage divides by
  // size().

  // All pieces as if they were one array: one operation, no packing. The pieces' counts agree on
  // all members.
  virtual OperationPtr allreduce(std::span<const Piece> pieces, DType dtype, ReduceOp op,
                                 Scale scale) = 0;
  // Member i contributes counts[i]; output is their concatenation.
  virtual OperationPtr allgather(const void* in, void* out, std::span<const std::int64_t> counts,
                                 DType dtype) = 0;
  // As one array, too, and the pieces' counts agree on all members, wherever their memory is: how
  // bytes are cut into messages follows from the counts.
  virtual OperationPtr broadcast(std::span<const Piece> pieces, DType dtype, int root) = 0;
  virtual OperationPtr alltoall(const void* in, std::span<const std::int64_t> sendCounts, void* out,
                                std::span<const std::int64_t> receiveCounts, DType dtype) = 0;
  // The input is the concatenation of parts of counts[i] elements; member i receives part i
  // reduced.
  virtual OperationPtr reducescatter(const void* in, void* out,
                                     std::span<const std::int64_t> counts, DType dtype, ReduceOp op,
                                     Scale scale) = 0;
  virtual OperationPtr reduce(const void* in, void* out, std::int64_t count, DType dtype,
                              ReduceOp op, Scale scale, int root) = 0;
  // counts as in allgather; only root's out is written. All members pass all counts.
  virtual OperationPtr gather(const void* in, void* out, std::span<const std::int64_t> counts,
                              DType dtype, int root) = 0;
  // root's in is the concatenation of parts of counts[i]; member i receives part i.
  virtual OperationPtr scatter(const void* in, void* out, std::span<const std::int64_t> counts,
                               DType dtype, int root) = 0;
  virtual OperationPtr barrier() = 0;

  // Completes when the data has been taken (in may then be reused). tag >= 0.
  virtual OperationPtr send(const void* in, std::size_t bytes, int to, int tag) = 0;
  // from may be kAnyMember. capacity smaller than the message: both sides fail with both sizes
  // named, and the communicator stays usable. *received is written before kDone.
  virtual OperationPtr receive(void* out, std::size_t capacity, int from, int tag,
                               Received* received) = 0;

  virtual Statistics statistics() const { return {}; }
};

}  // namespace farandole::collective
