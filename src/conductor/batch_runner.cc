#include "conductor/batch_runner.h"

#include <iterator>
#include <string>
#include <utility>

#include "control/messages.h"

namespace farandole::conductor {
namespace {

// How many of them, from the first on, are one engine operation.
std::size_t countTogether(std::span<const EntryPtr> entries) {
  std::size_t count = 1;
  while (count < entries.size() && count < control::kMaxBatchPlans &&
         control::fusible(*entries.front()->agreed, *entries[count]->agreed)) {
    ++count;
  }
  return count;
}

}  // namespace

BatchRun::BatchRun(collective::Communicator& communicator, std::vector<EntryPtr> entries,
                   int joined, TimePoint now) {
  // All members see the entries in the same order, and divide them alike.
  const std::size_t all = entries.size();
  for (std::size_t at = 0; at < all;) {
    const auto first = entries.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = first + static_cast<std::ptrdiff_t>(countTogether({first, entries.end()}));
    at += static_cast<std::size_t>(end - first);
    std::vector<EntryPtr> together;
    if (end - first == static_cast<std::ptrdiff_t>(all)) {
      together = std::move(entries);
    } else {
      together.assign(std::move_iterator(first), std::move_iterator(end));
    }
    executions_.emplace_back(communicator, std::move(together), joined, now);
  }
  settled_ = executions_.size() == 1;
}

collective::Progress BatchRun::progress() {
  while (!settled_) {
    const collective::Progress now = current().settle();
    if (now != collective::Progress::kDone || current().tooSmall()) return now;
    settled_ = at_ + 1 == executions_.size();
    at_ = settled_ ? 0 : at_ + 1;
  }
  for (;;) {
    const collective::Progress now = current().progress();
    if (now != collective::Progress::kDone || at_ + 1 == executions_.size()) return now;
    executions_[++at_].begins(Clock::now());
  }
}

std::optional<BatchRun::Refusal> BatchRun::refusal() const {
  if (!current().tooSmall()) return std::nullopt;
  const bool group = executions_.size() > 1;
  return Refusal{*current().tooSmall(), group ? current().entries().front()->request.name : ""};
}

std::optional<BatchRunner::Ended> BatchRunner::advance(TimePoint now) {
  const collective::Progress progress = running_->run.progress();
  if (progress == collective::Progress::kPending) return std::nullopt;
  Status status = running_->run.status();
  const bool failed = progress == collective::Progress::kFailed;
  if (failed && !culprits_.find(status, running_->failedAt, now)) return std::nullopt;
  std::optional<Ended> ended(Ended{std::move(running_->run), std::move(status), failed});
  executed_ = running_->position;
  running_.reset();
  ++ended_;
  if (const auto refusal = ended->run.refusal()) ended->status = refused(*refusal);
  return ended;
}

Status BatchRunner::refused(const BatchRun::Refusal& refusal) const {
  const Execution::TooSmall& output = refusal.output;
  const std::string of =
      refusal.name.empty() ? "" : "'" + refusal.name + "' of this group cannot run: ";
  return members_.fault(Code::kMismatch,
                        of + "the output of " + members_.name(output.member) + " has room for " +
                            std::to_string(output.room) + " bytes, but " +
                            std::to_string(output.needed) +
                            " are to be received there: nothing was written anywhere",
                        output.member);
}

}  // namespace farandole::conductor
