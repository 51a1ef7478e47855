// Session: joining a job, and this rank's place in it.
#pragma once

#include <farandole.h>
#include <farandole/error.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace farandole {
inline namespace v1 {

// Joins the job in which this process was started (`farandole run`), or makes a job of one rank.
// Does nothing if the process has already joined. A timeout of 0 is the default,
// FARANDOLE_START_TIMEOUT.
inline void init(std::chrono::milliseconds timeout = std::chrono::milliseconds(0)) {
  farandole_init_options options = FARANDOLE_INIT_OPTIONS_INIT;
  options.timeout_ms = timeout.count();
  detail::check(farandole_init(&options));
}
// Leaves the job; see "Shutdown" in <farandole.h>. init() may be called again.
inline void shutdown() { detail::check(farandole_shutdown()); }
inline bool isInitialised() { return farandole_is_initialised() != 0; }

// -1 unless initialised. "local": among the ranks of this machine. "cross": among the ranks that
// have this local rank, one on each machine that has one.
inline int rank() { return farandole_rank(); }
inline int size() { return farandole_size(); }
inline int localRank() { return farandole_local_rank(); }
inline int localSize() { return farandole_local_size(); }
inline int crossRank() { return farandole_cross_rank(); }
inline int crossSize() { return farandole_cross_size(); }
// The number of the job's current membership; 0 before the first init().
inline std::uint64_t epoch() { return farandole_epoch(); }
inline std::string version() { return farandole_version(); }

// Calls init() now and shutdown() at the end of the scope. One thread should use it; main() is the
// best place.
class Session {
 public:
  explicit Session(std::chrono::milliseconds timeout = std::chrono::milliseconds(0)) {
    init(timeout);
  }
  ~Session() { farandole_shutdown(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const { return farandole_rank(); }
  int size() const { return farandole_size(); }
};

// One Chrome trace of all ranks of a machine, written while the job runs. Call it on all ranks.
inline void startTimeline(const std::string& path) {
  detail::check(farandole_start_timeline(path.c_str()));
}
inline void stopTimeline() { detail::check(farandole_stop_timeline()); }

// What this rank has done since init().
struct Counters {
  std::uint64_t operations = 0;     // completed
  std::uint64_t batches = 0;        // engine operations they needed; fusion makes this smaller
  std::uint64_t bytes = 0;          // of the tensors of completed operations
  std::uint64_t planHits = 0;       // submissions that were one short record
  std::uint64_t planMisses = 0;     // submissions that carried their whole description
  std::uint64_t zeroCopyBytes = 0;  // reduced in shared memory without a copy
};

inline Counters counters() {
  farandole_counters raw{};
  raw.struct_size = sizeof(raw);
  detail::check(farandole_get_counters(&raw));
  return {.operations = raw.operations,
          .batches = raw.batches,
          .bytes = raw.bytes,
          .planHits = raw.plan_hits,
          .planMisses = raw.plan_misses,
          .zeroCopyBytes = raw.zero_copy_bytes};
}

}  // namespace v1
}  // namespace farandole
