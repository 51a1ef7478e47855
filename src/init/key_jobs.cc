#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "init/keys.h"

namespace farandole::init {

Result<std::vector<KeyOutcome>> runKeyJobs(const KeyMaker& maker, const std::vector<KeyJob>& jobs) {
  std::vector<std::optional<Result<KeyOutcome>>> results(jobs.size());
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs.size() && !failed; i = next++) {
      const KeyJob& job = jobs[i];
      results[i] = job.source.empty() ? ensureKey(maker, job.privatePath, job.type, job.comment)
                                      : adoptKey(maker, job.source, job.privatePath, job.comment);
      if (!results[i]->ok()) failed = true;
    }
  };
  {
    std::vector<std::jthread> threads;
    const std::size_t count = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 16);
    for (std::size_t i = 0; i < std::min(count, jobs.size()); ++i) threads.emplace_back(work);
  }
  std::vector<KeyOutcome> outcomes;
  for (const auto& result : results) {
    if (result && !result->ok()) return result->status();
    if (result) outcomes.push_back(result->value());
  }
  return outcomes;
}

}  // namespace farandole::init
