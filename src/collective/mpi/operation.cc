#include "collective/mpi/operation.h"

#include <string>

#include "collective/mpi/idle_pump.h"
#include "collective/mpi/point_to_point.h"
#include "collective/mpi/process.h"

namespace farandole::collective::mpi {

bool MpiOperation::check(const Status& status) {
  if (status.ok()) return true;
  const std::string text = std::string(name_) + " on member " + std::to_string(context().me) +
                           " of " + std::to_string(context().size) + ": " + status.message();
  failForGood(Status(status.code(), text));
  return false;
}

Scratch MpiOperation::takeScratch(std::size_t bytes) {
  Scratch scratch = context().scratch.take(bytes);
  if (!scratch) {
    failForGood(Status::outOfMemory("there is no room for " + std::to_string(bytes) +
                                    " bytes of the mpi engine's working memory"));
  }
  return scratch;
}

void MpiOperation::abandon(Requests& requests, Scratch scratch) {
  if (requests.empty()) {
    context().scratch.give(std::move(scratch));
    return;
  }
  context().abandoned = true;
  if (context().failure.ok()) {
    context().failure = Status(Code::kCancelled, "an earlier " + std::string(name_) +
                                                     " of this set was given up before its end");
  }
  for (const MPI_Request request : requests.release()) static_cast<void>(request);
  static_cast<void>(new Scratch(std::move(scratch)));
}

MpiOperation::~MpiOperation() { abandon(announcement_, {}); }

Status MpiOperation::announce() {
  return mpiStatus(MPI_Ibarrier(comm(), announcement_.add()), "MPI_Ibarrier");
}

Advance MpiOperation::turn() {
  if (!MpiProcess::alive()) {
    failForGood(Status::unavailable("MPI has ended in this process (MPI_Finalize was called)"));
    return Advance::kNothing;
  }
  IdlePump::noteCall();
  const MpiProcess::Lock lock;
  // MPI's own arithmetic, too, must not depend on the mode of the thread that drives.
  const FpModeGuard guard;
  bool something = context().pointToPoint->pump();
  if (!announcement_.empty()) {
    const Result<bool> tested = announcement_.test(name_);
    something |= check(tested.status()) && tested.value();
  }
  if (status().ok() && context().failure.ok() && !finished_) {
    Budget budget;
    const Advance result = advance(budget);
    something |= result != Advance::kNothing;
    finished_ = result == Advance::kDone;
  }
  if (something) context().lastMoved = Clock::now();
  // The pump may have found what ends this operation, too.
  if (!context().failure.ok()) fail(context().failure);
  if (finished_ && announcement_.empty()) return Advance::kDone;
  return something ? Advance::kSomething : Advance::kNothing;
}

Duration MpiOperation::nap() const {
  return napAfter(Clock::now() - context().lastMoved, underWay());
}

}  // namespace farandole::collective::mpi
