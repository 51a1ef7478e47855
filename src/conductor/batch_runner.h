// BatchRunner: takes the batches of the log through the engine, one after another, and knows how
// far the log has been executed.
//
// Called by the driver only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "collective/communicator.h"
#include "conductor/culprits.h"
#include "conductor/execution.h"
#include "conductor/members.h"

namespace farandole::conductor {

// A batch while it runs: one execution, or those of a whole group.
//
// A group runs as a whole or not at all. If other members decide how large the result of one of its
// operations is, the group comes as one batch. First all members learn whether every result fits
// everywhere, then the operations run one after another. If one result does not fit, no operation
// runs, and all members know which one it was.
class BatchRun {
 public:
  // entries: fusible ones, or a whole group. joined: the number of members that contribute neutral
  // elements.
  BatchRun(collective::Communicator& communicator, std::vector<EntryPtr> entries, int joined,
           TimePoint now);

  collective::Progress progress();
  // The same as Operation::moved and Operation::nap.
  bool moved() const { return current().moved(); }
  Duration nap() const { return current().nap(); }
  // Says why it failed.
  const Status& status() const { return current().status(); }

  // Why nothing was run. All members have the same answer when progress() is kDone, and no data has
  // moved.
  struct Refusal {
    Execution::TooSmall output;
    // The name of the operation that does not fit, if it is one of a group; otherwise empty.
    std::string name;
  };
  std::optional<Refusal> refusal() const;

  // Its engine operations, one after another.
  std::span<const Execution> executions() const { return executions_; }

 private:
  Execution& current() { return executions_[at_]; }
  const Execution& current() const { return executions_[at_]; }

  std::vector<Execution> executions_;
  std::size_t at_ = 0;
  bool settled_ = false;  // it is known that every result fits
};

class BatchRunner {
 public:
  struct Ended {
    BatchRun run;
    Status status;
    bool failed = false;  // the engine failed: some of the batch may still be running
  };

  // The references outlive this object.
  BatchRunner(collective::Communicator& communicator, const Members& members, Culprits& culprits)
      : communicator_(communicator), members_(members), culprits_(culprits) {}

  // Called while no batch runs. position: where the log continues after the batch.
  void start(std::vector<EntryPtr> entries, int joined, TimePoint now, std::uint64_t position) {
    running_.emplace(BatchRun(communicator_, std::move(entries), joined, now), now, position);
  }
  // The log has been executed up to there, and its last entry was not a batch.
  void executedUpTo(std::uint64_t position) { executed_ = position; }
  // Returns nullopt until the batch has ended.
  std::optional<Ended> advance(TimePoint now) REQUIRES(driverRole);
  // Forgets the batch that runs, if there is one.
  void giveUp() { running_.reset(); }

  bool runs() const { return running_.has_value(); }
  // Where the log continues after the batch that runs, and when that batch began.
  std::optional<std::uint64_t> position() const {
    return running_ ? std::optional(running_->position) : std::nullopt;
  }
  std::optional<TimePoint> since() const {
    return running_ ? std::optional(running_->since) : std::nullopt;
  }
  // The same as Operation::moved, for the batch that runs.
  bool moved() const { return running_->run.moved(); }
  Duration nap() const { return running_ ? running_->run.nap() : Duration::max(); }

  // Everything in the log before this position has been executed.
  std::uint64_t executed() const { return executed_; }
  // The number of batches that have ended.
  std::uint64_t ended() const { return ended_; }

 private:
  struct Running {
    Running(BatchRun batch, TimePoint at, std::uint64_t behind)
        : run(std::move(batch)), since(at), position(behind) {}
    BatchRun run;
    TimePoint since;
    std::uint64_t position;
    TimePoint failedAt{};
  };
  Status refused(const BatchRun::Refusal& refusal) const;

  collective::Communicator& communicator_;
  const Members& members_;
  Culprits& culprits_;
  std::optional<Running> running_;
  std::uint64_t executed_ = 0;
  std::uint64_t ended_ = 0;
};

}  // namespace farandole::conductor
