#include "conductor/batch_run.h"

#include <iterator>
#include <utility>

#include "control/messages.h"

namespace farandole::conductor {
namespace {

// How many of them, from the first on, are one engine operation.
std::size_t countTogether(std::span<const Execution::Part> parts) {
  std::size_t count = 1;
  while (count < parts.size() && count < control::kMaxBatchPlans &&
         control::fusible(*parts.front().meta, *parts[count].meta)) {
    ++count;
  }
  return count;
}

}  // namespace

BatchRun::BatchRun(collective::Communicator& communicator, std::vector<Execution::Part> parts,
                   int joined, TimePoint now) {
  // All members see the parts in the same order, and divide them alike.
  const std::size_t all = parts.size();
  for (std::size_t at = 0; at < all;) {
    const auto first = parts.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = first + static_cast<std::ptrdiff_t>(countTogether({first, parts.end()}));
    at += static_cast<std::size_t>(end - first);
    std::vector<Execution::Part> together;
    if (end - first == static_cast<std::ptrdiff_t>(all)) {
      together = std::move(parts);
    } else {
      together.assign(std::move_iterator(first), std::move_iterator(end));
    }
    steps_.emplace_back(communicator, std::move(together), joined, now);
  }
  settled_ = steps_.size() == 1;
}

collective::Progress BatchRun::progress() {
  while (!settled_) {
    const collective::Progress now = current().settle();
    if (now != collective::Progress::kDone || current().tooSmall()) return now;
    settled_ = at_ + 1 == steps_.size();
    at_ = settled_ ? 0 : at_ + 1;
  }
  for (;;) {
    const collective::Progress now = current().progress();
    if (now != collective::Progress::kDone || at_ + 1 == steps_.size()) return now;
    steps_[++at_].started = Clock::now();
  }
}

std::optional<BatchRun::Refusal> BatchRun::refusal() const {
  if (!current().tooSmall()) return std::nullopt;
  const EntryPtr& entry = current().parts().front().entry;
  const bool group = steps_.size() > 1 && entry;
  return Refusal{*current().tooSmall(), group ? entry->request.name : ""};
}

}  // namespace farandole::conductor
