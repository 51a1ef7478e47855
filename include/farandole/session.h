// Joining a job, and one's place in it.
#pragma once

#include <farandole.h>
#include <farandole/error.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace farandole {
inline namespace v1 {

// Joins the job this process was started in (`farandole run`), or makes a job of one rank. No-op if
// already joined. timeout 0: the default.
inline void init(std::chrono::milliseconds timeout = std::chrono::milliseconds(0)) {
  farandole_init_options options = FARANDOLE_INIT_OPTIONS_INIT;
  options.timeout_ms = timeout.count();
  detail::check(farandole_init(&options));
}
inline void shutdown() { detail::check(farandole_shutdown()); }
inline bool isInitialised() { return farandole_is_initialised() != 0; }

// -1 unless initialised. "local": among the ranks of this machine; "cross": among the ranks with this
// local rank, one of each machine that has so many.
inline int rank() { return farandole_rank(); }
inline int size() { return farandole_size(); }
inline int localRank() { return farandole_local_rank(); }
inline int localSize() { return farandole_local_size(); }
inline int crossRank() { return farandole_cross_rank(); }
inline int crossSize() { return farandole_cross_size(); }
// Counts the job's memberships.
inline std::uint64_t epoch() { return farandole_epoch(); }
inline std::string version() { return farandole_version(); }

// init() now, shutdown() at the end of the scope. Lives in one thread, best in main().
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

// One Chrome trace of all ranks of a machine. Call on all ranks.
inline void startTimeline(const std::string& path) {
  detail::check(farandole_start_timeline(path.c_str()));
}
inline void stopTimeline() { detail::check(farandole_stop_timeline()); }

inline farandole_counters counters() {
  farandole_counters result{};
  result.struct_size = sizeof(result);
  detail::check(farandole_get_counters(&result));
  return result;
}

}  // namespace v1
}  // namespace farandole
