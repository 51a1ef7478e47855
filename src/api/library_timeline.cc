// The timeline as a job has it: one file per machine (FILE, FILE.machine1, …), which local rank 0
// makes before the others write and completes when they have stopped.
#include "api/library.h"

namespace farandole::api {
namespace {

// Local rank 0 waits so long for the others before it leaves the file as it is: viewers can read
// that too.
constexpr Duration kPatience = std::chrono::seconds(2);

}  // namespace

Status Library::startTimeline(const std::string& path, const Config& config) {
  const MutexLock lock(timelineMutex_);
  if (timeline_.enabled())
    return Status::invalid("a timeline is already being written to " + timelinePath_);
  timelineKey_ = "timeline/" + std::to_string(epoch()) + "/" + std::to_string(timelines_++) + "/" +
                 std::to_string(config.machine);
  // Machines may share a file system.
  timelinePath_ = config.machine == 0 ? path : path + ".machine" + std::to_string(config.machine);
  timelineConfig_ = config;
  const Deadline deadline = Deadline::after(config.startTimeout);
  Status made;
  if (config.localRank == 0) {
    made = observe::Timeline::createFile(timelinePath_);
    // The others learn of a failure too: nobody waits for a file that will not come.
    if (agent_)
      FARANDOLE_RETURN_IF_ERROR(
          agent_->put(timelineKey_, made.ok() ? "" : made.message(), deadline));
  } else {
    auto told = agent_->get(timelineKey_, deadline);
    FARANDOLE_RETURN_IF_ERROR(told.status());
    if (!told->empty()) made = Status::unavailable(*told);
  }
  FARANDOLE_RETURN_IF_ERROR(made);
  return timeline_.start(timelinePath_, config.rank, config.host,
                         static_cast<std::size_t>(config.timelineBytes));
}

Status Library::stopTimeline() {
  const MutexLock lock(timelineMutex_);
  if (!timeline_.enabled()) return {};
  FARANDOLE_RETURN_IF_ERROR(timeline_.stop());
  const Deadline deadline = Deadline::after(kPatience);
  if (timelineConfig_.localRank != 0) {
    return agent_->put(timelineKey_ + "/" + std::to_string(timelineConfig_.localRank), "",
                       deadline);
  }
  for (int i = 1; i < timelineConfig_.localSize; ++i) {
    if (!agent_->get(timelineKey_ + "/" + std::to_string(i), deadline).ok()) return {};
  }
  return observe::Timeline::closeFile(timelinePath_);
}

}  // namespace farandole::api
