// BatchRun: a batch on its way through the engine: one execution, or those of a whole group.
//
// A group runs as a whole or not at all. If others decide how large the result of one of its
// operations is, its parts come as one batch: first all members learn whether every result fits
// everywhere, then the operations run one after another. If one does not fit, none runs, and all
// members know which. Owned and advanced by the driver.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "conductor/execution.h"

namespace farandole::conductor {

class BatchRun {
 public:
  // parts: fusible ones, or a whole group. joined: how many members bring neutral elements.
  BatchRun(collective::Communicator& communicator, std::vector<Execution::Part> parts, int joined,
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

  struct Step {
    Step(collective::Communicator& communicator, std::vector<Execution::Part> parts, int joined,
         TimePoint at)
        : execution(communicator, std::move(parts), joined), started(at) {}
    Execution execution;
    TimePoint started;
  };
  std::span<const Step> steps() const { return steps_; }

 private:
  Execution& current() { return steps_[at_].execution; }
  const Execution& current() const { return steps_[at_].execution; }

  std::vector<Step> steps_;
  std::size_t at_ = 0;
  bool settled_ = false;  // every result fits
};

}  // namespace farandole::conductor
