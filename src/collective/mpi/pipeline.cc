#include "collective/mpi/pipeline.h"

namespace farandole::collective::mpi {
namespace {

constexpr std::size_t kDepth = 2;

}  // namespace

Pipeline::~Pipeline() {
  for (Step& step : active_) abandon(step.requests, std::move(step.scratch));
}

bool Pipeline::takeScratch(Step& step, std::size_t bytes) {
  step.scratch = MpiOperation::takeScratch(bytes);
  return static_cast<bool>(step.scratch);
}

std::size_t Pipeline::underWay() const {
  return active_.empty() ? 0 : allBytes() / steps() * active_.size();
}

Advance Pipeline::advance(Budget& budget) {
  if (begun_ == 0 && members() > 1 && allBytes() >= kAnnouncedFrom && !check(announce())) {
    return Advance::kSomething;
  }
  Advance result = Advance::kNothing;
  for (;;) {
    bool something = false;
    while (begun_ < steps() && active_.size() < kDepth && !budget.spent()) {
      Step& step = active_.emplace_back();
      step.index = begun_++;
      budget.charge(begin(step));
      if (!ok()) return Advance::kSomething;
      something = true;
    }
    int allowed = 1 << 30;  // a younger step never overtakes an older one
    for (auto it = active_.begin(); it != active_.end();) {
      if (!it->requests.empty()) {
        const Result<bool> tested = it->requests.test(name());
        if (!check(tested.status())) return Advance::kSomething;
        something |= tested.value();
      }
      if (it->requests.empty() && it->phase < allowed && !budget.spent()) {
        something = true;
        const bool ended = next(*it, budget);
        if (!ok()) return Advance::kSomething;
        if (ended) {
          context().scratch.give(std::move(it->scratch));
          it = active_.erase(it);
          continue;
        }
        ++it->phase;
      }
      allowed = it->phase;
      ++it;
    }
    if (active_.empty() && begun_ == steps()) {
      finish();
      return Advance::kDone;
    }
    if (!something) return result;
    result = Advance::kSomething;
    if (budget.spent()) return result;
  }
}

}  // namespace farandole::collective::mpi
