#include "conductor/batch_runner.h"

#include <string>

namespace farandole::conductor {

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
