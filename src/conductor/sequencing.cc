#include "conductor/sequencing.h"

namespace farandole::conductor {
namespace {

// One member must not keep the sequencer from the others. This is more than a ring holds.
constexpr int kSubmissionsPerStep = 4096;
// While so many decisions wait for room in the log, no more submissions are read.
constexpr std::size_t kMostUnappended = 4096;

}  // namespace

bool Sequencing::step(TimePoint now, std::uint64_t executed) {
  bool moved = false;
  // Reading adds nothing to the backlog.
  const bool mayRead = unappended_.empty() || unappended_.size() < kMostUnappended;
  for (int member = 0; mayRead && member < members_.size(); ++member) {
    for (int i = 0; i < kSubmissionsPerStep; ++i) {
      const control::RingRead read = control_.nextSubmission(member, record_);
      if (read == control::RingRead::kEmpty) break;
      moved = true;
      if (trouble_ = take(member, read, now); !trouble_.ok()) return true;
    }
  }
  if (sequencer_->undecided()) {
    sequencer_->decide({batches_ == executed, control_.anyoneWaits(), now}, decided_);
    for (const auto& entry : decided_) {
      if (std::holds_alternative<control::Batch>(entry)) ++batches_;
      append(entry);
      moved = true;
    }
    decided_.clear();
  }
  return moved || (!unappended_.empty() && flush());
}

Status Sequencing::take(int member, control::RingRead read, TimePoint now) {
  if (read == control::RingRead::kTooMuch) {
    return Status::internal(members_.name(member) +
                            " sends more submissions than it was allowed to");
  }
  if (read != control::RingRead::kRecord ||
      !control::decode(record_, members_.size(), submission_)) {
    return Status::internal("a submission of " + members_.name(member) + " makes no sense");
  }
  return sequencer_->submit(member, std::move(submission_), now);
}

void Sequencing::append(const control::LogEntry& entry) {
  control::encode(entry, entry_);
  const auto record = entry_.bytes();
  if (!unappended_.empty()) flush();
  if (!unappended_.empty() || !control_.append(record)) {
    unappended_.emplace_back(record.begin(), record.end());
  }
}

bool Sequencing::flush() {
  bool moved = false;
  while (!unappended_.empty() && control_.append(unappended_.front())) {
    unappended_.pop_front();
    moved = true;
  }
  return moved;
}

}  // namespace farandole::conductor
