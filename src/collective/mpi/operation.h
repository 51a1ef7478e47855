// What the operations of one MPI communicator share, and what all of them have in common.
//
// advance() posts and tests MPI requests and never waits (collective/operation.h says what the
// operations of all engines do). MPI is called inside progress() only (and in destructors), under
// MpiProcess::Lock.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "collective/mpi/headers.h"
#include "collective/mpi/requests.h"
#include "collective/operation.h"
#include "collective/scratch.h"

namespace farandole::collective::mpi {

class PointToPoint;

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

struct MpiContext {
  MPI_Comm comm = MPI_COMM_NULL;
  int me = 0;  // the index of this member
  int size = 1;
  int nativeFrom = 0;  // members from which on MPI reduces what it can; 0: never
  Status failure;      // once something failed for good
  // Given up while MPI still reads or writes it: kept for ever.
  bool abandoned = false;
  TimePoint lastMoved = Clock::now();
  // More than an operation takes at once.
  ScratchPool scratch{8};
  PointToPoint* pointToPoint = nullptr;
};

class MpiOperation : public EngineOperation<MpiOperation, MpiContext> {
 public:
  ~MpiOperation() override;
  Duration nap() const final;

 protected:
  MpiOperation(MpiContext& context, std::string_view name)
      : EngineOperation(context), name_(name) {}

  // Does what it can, charging the bytes it moves to the budget, and stops when that is used up.
  virtual Advance advance(Budget& budget) = 0;
  // Bytes that MPI has been given and not completed.
  virtual std::size_t underWay() const { return 0; }

  // Announces this member to the others, beside what it posts next. When all have done so, that
  // counts as movement, so that no member sleeps through the transfer because it had to wait for
  // its beginning. All members call it or none does.
  Status announce();
  // The size from which that is worth it.
  static constexpr std::size_t kAnnouncedFrom = std::size_t{128} << 10;

  // Fails for good, with the operation and the member in the text, unless it is ok; true if it is.
  bool check(const Status& status);

  // From the pool; the operation has failed for good if there is none.
  Scratch takeScratch(std::size_t bytes);
  // For destructors: MPI may still use the memory, so that it is not freed, and the communicator is
  // of no use any more.
  void abandon(Requests& requests, Scratch scratch);

  MPI_Comm comm() const { return context().comm; }
  int me() const { return context().me; }
  int members() const { return context().size; }
  std::string_view name() const { return name_; }

 private:
  friend EngineOperation;
  Advance turn();

  const std::string_view name_;
  bool finished_ = false;  // but for the announcement
  Requests announcement_;
};

}  // namespace farandole::collective::mpi
