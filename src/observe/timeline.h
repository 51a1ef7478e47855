// Timeline: what this rank did when, as a Chrome trace (chrome://tracing, Perfetto).
//
// One file per machine: all its ranks append to the same JSON array, each in whole lines with
// single O_APPEND writes, so nobody needs a lock across processes; times are CLOCK_MONOTONIC, which
// they share. pid is the rank, tid a track within it. Viewers accept an array that was not closed,
// so the file of a job that died can be looked at too.
//
// How a job uses it: one rank per machine calls createFile (it replaces what an earlier run left)
// before the others start(); after all have stop()ped one of them may closeFile. Without createFile
// the first to start() creates the file, and a file that is already there is continued.
//
// Any thread may call anything at any time. While off, event() costs one relaxed load. While on,
// events are collected in memory and written, by whichever thread fills the buffer, 64 KiB at a
// time. Whoever records owns the Timeline; a fork child's copy does nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/status.h"

namespace farandole::observe {

// "bytes": 4096
struct TimelineArgument {
  std::string_view key;
  std::variant<std::int64_t, std::string_view> value;
};

class Timeline {
 public:
  static constexpr std::size_t kDefaultLimit = std::size_t{64} << 20;
  static constexpr int kMainTrack = 0;

  Timeline() = default;
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // Begins to record into path, up to `limit` bytes; then one event says that the rest is missing.
  // host only labels the rank. On failure (no such directory, no permission, already started, the
  // file holds a finished timeline) it stays off.
  Status start(const std::string& path, int rank, std::string_view host = {},
               std::size_t limit = kDefaultLimit);
  // Writes what is left and stops; nothing to do is ok. An error tells why events are missing: from
  // now, or from a write that failed earlier (recording ended there).
  Status stop();

  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  // Something that lasted from startNs to endNs (nowNanoseconds()). Events of one track should nest
  // or follow one another. Texts may hold anything; they are escaped.
  void event(std::string_view name, std::string_view category, std::int64_t startNs,
             std::int64_t endNs, std::span<const TimelineArgument> arguments = {},
             int track = kMainTrack) {
    if (enabled()) record(name, category, startNs, endNs, arguments, track);
  }
  // Something that happened at one moment.
  void mark(std::string_view name, std::string_view category, std::int64_t atNs,
            int track = kMainTrack) {
    if (enabled()) recordMark(name, category, atNs, track);
  }
  // What the viewer shows in front of a track.
  void nameTrack(int track, std::string_view name);

  // Writes what has been collected so far.
  void flush();

  // An empty timeline at path, replacing any file there. Nobody may be recording into it.
  static Status createFile(const std::string& path);
  // Completes the JSON array, once everybody has stopped.
  static Status closeFile(const std::string& path);

 private:
  void record(std::string_view name, std::string_view category, std::int64_t startNs,
              std::int64_t endNs, std::span<const TimelineArgument> arguments, int track);
  void recordMark(std::string_view name, std::string_view category, std::int64_t atNs, int track);
  // line: a JSON object.
  void appendLocked(std::string line) REQUIRES(mutex_);
  void flushLocked() REQUIRES(mutex_);
  void truncateLocked() REQUIRES(mutex_);

  std::atomic<bool> enabled_{false};
  std::atomic<int> owner_{-1};  // process that started it
  std::atomic<int> rank_{-1};

  Mutex mutex_;
  UniqueFd file_ GUARDED_BY(mutex_);
  std::string path_ GUARDED_BY(mutex_);
  std::string buffer_ GUARDED_BY(mutex_);  // whole lines
  std::size_t limit_ GUARDED_BY(mutex_) = 0;
  std::size_t collected_ GUARDED_BY(mutex_) = 0;  // bytes written and in buffer_
  Status failure_ GUARDED_BY(mutex_);
};

}  // namespace farandole::observe
