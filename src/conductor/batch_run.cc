#include "conductor/batch_run.h"

#include <utility>

#include "control/messages.h"

namespace farandole {

BatchRun::BatchRun(Communicator& communicator, std::vector<Execution::Part> parts, int joined,
                   TimePoint now) {
  // All members see the parts in the same order, and divide them alike.
  std::vector<Execution::Part> together;
  const auto add = [&] {
    steps_.push_back(std::unique_ptr<Step>(
        new Step{Execution(communicator, std::exchange(together, {}), joined), now}));
  };
  for (auto& part : parts) {
    const bool fits = together.empty() || (fusible(together.front().meta, part.meta) &&
                                           together.size() < kMaxBatchPlans);
    if (!fits) add();
    together.push_back(std::move(part));
  }
  add();
  settled_ = steps_.size() == 1;
}

Progress BatchRun::progress() {
  while (!settled_) {
    const Progress now = current().settle();
    if (now != Progress::kDone || current().tooSmall()) return now;
    settled_ = at_ + 1 == steps_.size();
    at_ = settled_ ? 0 : at_ + 1;
  }
  for (;;) {
    const Progress now = current().progress();
    if (now != Progress::kDone || at_ + 1 == steps_.size()) return now;
    steps_[++at_]->started = Clock::now();
  }
}

std::optional<BatchRun::Refusal> BatchRun::refusal() const {
  if (!current().tooSmall()) return std::nullopt;
  const EntryPtr& entry = current().parts().front().entry;
  const bool group = steps_.size() > 1 && entry;
  return Refusal{*current().tooSmall(), group ? entry->request.name : ""};
}

void BatchRun::forEach(const std::function<void(const Execution&, TimePoint started)>& call) const {
  for (const auto& step : steps_) call(step->execution, step->started);
}

}  // namespace farandole
