#include "collective/mpi/operation.h"

#include <cstdlib>
#include <new>
#include <string>

#include "collective/mpi/idle_pump.h"
#include "collective/mpi/point_to_point.h"
#include "collective/mpi/process.h"

namespace farandole::mpi {
namespace {

constexpr std::size_t kAlignment = 64;
// More than an operation takes at once is not kept for the next.
constexpr std::size_t kPooled = 8;
constexpr std::size_t kLargestPooled = std::size_t{32} << 20;

class Ended final : public Operation {
 public:
  explicit Ended(Status status) : status_(std::move(status)) {}
  Progress progress() override { return status_.ok() ? Progress::kDone : Progress::kFailed; }
  bool moved() const override { return false; }
  const Status& status() const override { return status_; }

 private:
  Status status_;
};

}  // namespace

void Scratch::Free::operator()(std::byte* memory) const {
  ::operator delete(memory, std::align_val_t(kAlignment));
}

Result<Scratch> ScratchPool::take(std::size_t bytes) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->bytes() < bytes) continue;
    Scratch found = std::move(*it);
    free_.erase(it);
    return found;
  }
  // A larger one takes the place of one that is too small.
  if (!free_.empty()) free_.erase(free_.begin());
  Scratch fresh;
  void* const memory =
      ::operator new(std::max(bytes, kAlignment), std::align_val_t(kAlignment), std::nothrow);
  if (memory == nullptr) {
    return Status::outOfMemory("there is no room for " + std::to_string(bytes) +
                               " bytes of the mpi engine's working memory");
  }
  fresh.memory_.reset(static_cast<std::byte*>(memory));
  fresh.bytes_ = std::max(bytes, kAlignment);
  return fresh;
}

void ScratchPool::give(Scratch scratch) {
  if (scratch.data() == nullptr || scratch.bytes() > kLargestPooled || free_.size() >= kPooled) {
    return;
  }
  free_.push_back(std::move(scratch));
}

void MpiOperation::failForGood(const Status& status) {
  if (context_.failure.ok()) context_.failure = status;
  fail(status);
}

bool MpiOperation::check(const Status& status) {
  if (status.ok()) return true;
  const std::string text = std::string(name_) + " on member " + std::to_string(context_.rank) +
                           " of " + std::to_string(context_.size) + ": " + status.message();
  failForGood(Status(status.code(), text));
  return false;
}

void MpiOperation::abandon(Requests& requests, Scratch scratch) {
  if (requests.empty()) {
    context_.scratch.give(std::move(scratch));
    return;
  }
  context_.abandoned = true;
  if (context_.failure.ok()) {
    context_.failure = Status(Code::kCancelled, "an earlier " + std::string(name_) +
                                                    " of this set was given up before its end");
  }
  for (const MPI_Request request : requests.release()) static_cast<void>(request);
  static_cast<void>(new Scratch(std::move(scratch)));
}

MpiOperation::~MpiOperation() { abandon(announcement_, {}); }

Status MpiOperation::announce() {
  return mpiStatus(MPI_Ibarrier(comm(), announcement_.add()), "MPI_Ibarrier");
}

Progress MpiOperation::progress() {
  if (done_) return Progress::kDone;
  if (status_.ok() && !context_.failure.ok()) status_ = context_.failure;
  if (!status_.ok()) return Progress::kFailed;
  if (!MpiProcess::alive()) {
    failForGood(Status::unavailable("MPI has ended in this process (MPI_Finalize was called)"));
    return Progress::kFailed;
  }
  IdlePump::noteCall();
  const MpiProcess::Lock lock;
  // MPI's own arithmetic, too, must not depend on the mode of the thread that drives.
  const FpModeGuard guard;
  moved_ = context_.pointToPoint->pump();
  if (!announcement_.empty()) {
    const Result<bool> tested = announcement_.test(name_);
    moved_ |= check(tested.status()) && tested.value();
  }
  if (status_.ok() && context_.failure.ok() && !finished_) {
    const Advance result = advance();
    moved_ |= result != Advance::kNothing;
    finished_ = result == Advance::kDone;
  }
  if (moved_) context_.lastMoved = Clock::now();
  if (status_.ok() && !context_.failure.ok()) status_ = context_.failure;
  if (!status_.ok()) return Progress::kFailed;
  done_ = finished_ && announcement_.empty();
  return done_ ? Progress::kDone : Progress::kPending;
}

Duration MpiOperation::nap() const {
  return napAfter(Clock::now() - context_.lastMoved, underWay());
}

OperationPtr makeDone() { return std::make_unique<Ended>(Status()); }
OperationPtr makeFailed(Status status) { return std::make_unique<Ended>(std::move(status)); }

}  // namespace farandole::mpi
