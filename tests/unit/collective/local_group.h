// LocalGroup: a test's ranks as real processes of this machine.
//
// run() makes the arenas, forks the ranks, gives each a Neighbourhood, and waits for them with a
// deadline. Expectations may be used inside a rank: a rank with a failed one ends with an error,
// which fails the test in the parent. A rank's watch thread tells its Neighbourhood when another
// rank ends before it was done.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "collective/shm/shm_communicator.h"
#include "machine/neighbourhood.h"

namespace farandole::testing {

struct GroupBoard;  // in memory shared by parent and ranks

class GroupMember {
 public:
  GroupMember(GroupBoard& board, machine::Neighbourhood& neighbourhood)
      : board_(board), neighbourhood_(neighbourhood) {}

  int rank() const { return neighbourhood_.rank(); }
  int size() const { return neighbourhood_.size(); }
  machine::Neighbourhood& neighbourhood() { return neighbourhood_; }
  // Collective over the members; every communicator of a run has a key of its own (0 … 15).
  std::unique_ptr<collective::Communicator> communicator(std::vector<int> members, int key);
  std::unique_ptr<collective::Communicator> world(int key = 0);

  // Drives an operation to its end: spins a little, then sleeps on the doorbell.
  Status wait(collective::Operation& operation,
              std::chrono::milliseconds limit = std::chrono::milliseconds(60'000));
  Status wait(const collective::OperationPtr& operation) { return wait(*operation); }
  // Memory in this rank's arena, or ordinary memory; freed with the process.
  void* memory(std::size_t bytes, bool shared);

  void markDone();  // from here on this rank may end without being missed
  int pidOf(int rank) const;

 private:
  GroupBoard& board_;
  machine::Neighbourhood& neighbourhood_;
};

struct GroupOptions {
  std::chrono::seconds limit{100};
  std::size_t arenaBytes = std::size_t{512} << 20;
  std::vector<int> mayBeKilled;  // ranks whose death is part of the test
};

void runGroup(int ranks, const std::function<void(GroupMember&)>& body,
              const GroupOptions& options = {});

}  // namespace farandole::testing
