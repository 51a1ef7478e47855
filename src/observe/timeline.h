// Timeline: what this rank did and when, as a Chrome trace (chrome://tracing, Perfetto).
//
// There is one file per machine: all its ranks append to the same JSON array, each in whole lines
// with single O_APPEND writes, so that no lock between processes is needed. Times are
// CLOCK_MONOTONIC, which they share. pid is the rank, and tid a track of it. Viewers accept an
// array that was not closed, so they can show the file of a job that failed.
//
// How a job uses it: one rank per machine calls createFile (it replaces what an earlier job left)
// before the others call start(). When all have called stop(), one of them may call closeFile.
// Without createFile the first start() creates the file, and an existing file is continued.
//
// Any thread may call anything at any time. While it is off, event() costs one relaxed load. While
// it is on, events are collected in memory, and the thread that fills the buffer writes it, 64 KiB
// at a time. In a fork child the timeline does nothing.
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

// For instance "bytes": 4096.
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

  // Begins to record into path, up to `limit` bytes; after that, one event says that the rest is
  // missing. host only labels the rank. After a failure (no such directory, no permission, already
  // started, or the file holds a finished timeline) it stays off.
  Status start(const std::string& path, int rank, std::string_view host = {},
               std::size_t limit = kDefaultLimit);
  // Writes what is left and stops. Ok if it was off. An error says why events are missing: this
  // write failed, or an earlier one did, which ended the recording.
  Status stop();

  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }

  // Records something that lasted from startNs to endNs (nowNanoseconds()). Events of one track
  // should nest or follow one another. Texts may contain anything; they are escaped.
  void event(std::string_view name, std::string_view category, std::int64_t startNs,
             std::int64_t endNs, std::span<const TimelineArgument> arguments = {},
             int track = kMainTrack) {
    if (enabled()) record(name, category, startNs, endNs, arguments, track);
  }
  // Records something that happened at one moment.
  void mark(std::string_view name, std::string_view category, std::int64_t atNs,
            int track = kMainTrack) {
    if (enabled()) recordMark(name, category, atNs, track);
  }
  // Sets what the viewer shows in front of a track.
  void nameTrack(int track, std::string_view name);

  // Writes what has been collected so far.
  void flush();

  // Creates an empty timeline at path, replacing any file there. No rank may be recording into it.
  static Status createFile(const std::string& path);
  // Completes the JSON array, when all ranks have stopped.
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
