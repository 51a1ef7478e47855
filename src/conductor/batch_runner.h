// BatchRunner: the batches of the log on their way through the engine, one after another, and how
// far the log has been executed.
//
// The driver's alone.
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

// A batch on its way through the engine: one execution, or those of a whole group.
//
// A group runs as a whole or not at all. If others decide how large the result of one of its
// operations is, its operations come as one batch: first all members learn whether every result fits
// everywhere, then the operations run one after another. If one does not fit, none runs, and all
// members know which.
class BatchRun {
 public:
  // entries: fusible ones, or a whole group. joined: how many members bring neutral elements.
  BatchRun(collective::Communicator& communicator, std::vector<EntryPtr> entries, int joined,
           TimePoint now);

  collective::Progress progress();
  // As Operation::moved and Operation::nap.
  bool moved() const { return current().moved(); }
  Duration nap() const { return current().nap(); }
  // Why it failed.
  const Status& status() const { return current().status(); }

  // Set on all members alike, when progress() is kDone: no data has moved.
  struct Refusal {
    Execution::TooSmall output;
    std::string name;  // of the operation in whose group all this is; empty: it is alone
  };
  std::optional<Refusal> refusal() const;

  // Its engine operations, one after another.
  std::span<const Execution> executions() const { return executions_; }

 private:
  Execution& current() { return executions_[at_]; }
  const Execution& current() const { return executions_[at_]; }

  std::vector<Execution> executions_;
  std::size_t at_ = 0;
  bool settled_ = false;  // every result fits
};

class BatchRunner {
 public:
  struct Ended {
    BatchRun run;
    Status status;
    bool failed = false;  // the engine did: some of it may still be running
  };

  // The references outlive it.
  BatchRunner(collective::Communicator& communicator, const Members& members, Culprits& culprits)
      : communicator_(communicator), members_(members), culprits_(culprits) {}

  // While none runs. position: of the log, behind the batch.
  void start(std::vector<EntryPtr> entries, int joined, TimePoint now, std::uint64_t position) {
    running_.emplace(BatchRun(communicator_, std::move(entries), joined, now), now, position);
  }
  // An entry of the log up to there was none that runs.
  void executedUpTo(std::uint64_t position) { executed_ = position; }
  // Until the batch ends: nullopt.
  std::optional<Ended> advance(TimePoint now) REQUIRES(driverRole);
  // Forgets the batch that runs, if there is one.
  void giveUp() { running_.reset(); }

  bool runs() const { return running_.has_value(); }
  // Of the batch that runs: where the log goes on behind it, and when it began.
  std::optional<std::uint64_t> position() const {
    return running_ ? std::optional(running_->position) : std::nullopt;
  }
  std::optional<TimePoint> since() const {
    return running_ ? std::optional(running_->since) : std::nullopt;
  }
  // As Operation::moved, of the batch that runs.
  bool moved() const { return running_->run.moved(); }
  Duration nap() const { return running_ ? running_->run.nap() : Duration::max(); }

  // Everything in the log before this has been done.
  std::uint64_t executed() const { return executed_; }
  // How many batches have ended.
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
