// What the operations of one MPI communicator share, and what all of them have in common.
//
// An operation is a state machine whose advance() posts and tests MPI requests and never waits. MPI
// is called inside progress() only (and in destructors), under MpiProcess::Lock.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "collective/communicator.h"
#include "collective/mpi/headers.h"
#include "collective/mpi/requests.h"

namespace farandole::mpi {

class PointToPoint;

// What is done to the elements; op is never kAverage (a sum with a divisor).
struct Reduction {
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  Scale scale;
};

// Tags of our communicators' messages.
enum MpiTag : int {
  kTagEnvelope = 1,
  kTagVerdict = 2,
  kTagData = 3,
  kTagCollective = 4,
  // The second phase of a step: whether it comes before the next step's first depends on the
  // member.
  kTagShare = 5,
};

// Memory that goes back to its pool when it is no longer used.
class Scratch {
 public:
  Scratch() = default;
  std::byte* data() const { return memory_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  friend class ScratchPool;
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_ = 0;
};

class ScratchPool {
 public:
  // At least so many bytes; kOutOfMemory.
  Result<Scratch> take(std::size_t bytes);
  void give(Scratch scratch);

 private:
  std::vector<Scratch> free_;
};

struct MpiContext {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  int nativeFrom = 0;  // members from which on MPI reduces what it can; 0: never
  Status failure;      // once something failed for good
  // Given up while MPI still reads or writes it: kept for ever.
  bool abandoned = false;
  TimePoint lastMoved = Clock::now();
  ScratchPool scratch;
  PointToPoint* pointToPoint = nullptr;
};

enum class Advance { kNothing, kSomething, kDone };

class MpiOperation : public Operation {
 public:
  MpiOperation(MpiContext& context, std::string_view name) : context_(context), name_(name) {}
  MpiOperation(const MpiOperation&) = delete;
  MpiOperation& operator=(const MpiOperation&) = delete;
  ~MpiOperation() override;

  Progress progress() final;
  bool moved() const final { return moved_; }
  Duration nap() const final;
  const Status& status() const final { return status_; }

 protected:
  // Sets status with fail or failForGood if it cannot go on.
  virtual Advance advance() = 0;
  // Bytes that MPI has been given and not completed.
  virtual std::size_t underWay() const { return 0; }

  // Tells the others that this member has come, beside what it posts next: when all have, that is a
  // movement, so that nobody sleeps through the transfer because it had to wait for its beginning.
  // All members call it or none does.
  Status announce();
  // For which that is worth it.
  static constexpr std::size_t kAnnouncedFrom = std::size_t{128} << 10;

  // Ends this operation; the communicator stays usable.
  void fail(Status status) { status_ = std::move(status); }
  // Ends this operation and every later one: the members no longer agree.
  void failForGood(const Status& status);
  // The same unless it is ok; true if it is.
  bool check(const Status& status);

  // For destructors: MPI may still use the memory, so that it is not freed, and the communicator is
  // of no use any more.
  void abandon(Requests& requests, Scratch scratch);

  MpiContext& context() { return context_; }
  MPI_Comm comm() const { return context_.comm; }
  int me() const { return context_.rank; }
  int members() const { return context_.size; }
  std::string_view name() const { return name_; }

 private:
  MpiContext& context_;
  const std::string_view name_;
  bool finished_ = false;  // but for the announcement
  bool done_ = false;
  bool moved_ = false;
  Requests announcement_;
  Status status_;
};

// At once done, or at once failed.
OperationPtr makeDone();
OperationPtr makeFailed(Status status);

}  // namespace farandole::mpi
