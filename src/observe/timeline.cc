#include "observe/timeline.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "observe/timeline_file.h"

namespace farandole::observe {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{64} << 10;
constexpr auto kOpenTimeout = std::chrono::seconds(5);

// Quoted and escaped; bytes that are no UTF-8 become U+FFFD.
void appendText(std::string& line, std::string_view text) {
  using Json = nlohmann::json;
  line += Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void appendField(std::string& line, std::string_view key, std::string_view text) {
  appendText(line += ',', key);
  appendText(line += ':', text);
}

void appendField(std::string& line, std::string_view key, std::int64_t number) {
  appendText(line += ',', key);
  (line += ':') += std::to_string(number);
}

// Traces count microseconds. to_chars, because printf would obey the locale's decimal comma.
void appendTime(std::string& line, std::string_view key, std::int64_t nanoseconds) {
  char digits[64];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, static_cast<double>(nanoseconds) / 1000,
                    std::chars_format::fixed, 3);
  ((line += ",\"") += key) += "\":";
  line.append(digits, end.ptr);
}

// Not yet closed by a brace.
std::string beginEvent(std::string_view name, char phase, int rank, int track) {
  std::string line = "{\"name\":";
  appendText(line, name);
  appendField(line, "ph", std::string_view(&phase, 1));
  appendField(line, "pid", rank);
  appendField(line, "tid", track);
  return line;
}

std::string metadata(std::string_view what, int rank, int track, std::string_view name) {
  std::string line = beginEvent(what, 'M', rank, track) + ",\"args\":{\"name\":";
  appendText(line, name);
  return line + "}}";
}

std::string label(int rank, std::string_view host) {
  std::string text = "rank " + std::to_string(rank);
  if (!host.empty()) ((text += " (") += host) += ')';
  return text;
}

void appendArguments(std::string& line, std::span<const TimelineArgument> arguments) {
  line += ",\"args\":{";
  const char* separator = "";
  for (const TimelineArgument& argument : arguments) {
    appendText(line += separator, argument.key);
    line += ':';
    if (const auto* number = std::get_if<std::int64_t>(&argument.value)) {
      line += std::to_string(*number);
    } else {
      appendText(line, std::get<std::string_view>(argument.value));
    }
    separator = ",";
  }
  line += '}';
}

}  // namespace

Timeline::~Timeline() { (void)stop(); }

Status Timeline::start(const std::string& path, int rank, std::string_view host,
                       std::size_t limit) {
  if (path.empty()) return Status::invalid("a timeline needs a file name");
  const MutexLock lock(mutex_);
  if (file_) return Status::invalid("the timeline is already being written to " + path_);
  FARANDOLE_ASSIGN_OR_RETURN(file_, openTimelineFile(path, Deadline::after(kOpenTimeout)));
  path_ = path;
  limit_ = limit;
  collected_ = 0;
  buffer_.clear();
  failure_ = Status();
  rank_.store(rank, std::memory_order_relaxed);
  owner_.store(::getpid(), std::memory_order_relaxed);
  enabled_.store(true, std::memory_order_relaxed);
  appendLocked(metadata("process_name", rank, kMainTrack, label(rank, host)));
  appendLocked(beginEvent("process_sort_index", 'M', rank, kMainTrack) +
               ",\"args\":{\"sort_index\":" + std::to_string(rank) + "}}");
  logDebug("records a timeline into " + path);
  return {};
}

Status Timeline::stop() {
  // In a fork child the mutex may be held by a thread that does not exist here.
  if (owner_.load(std::memory_order_relaxed) != ::getpid()) return {};
  const MutexLock lock(mutex_);
  enabled_.store(false, std::memory_order_relaxed);
  if (!file_) return {};
  flushLocked();
  file_.reset();
  return std::exchange(failure_, Status());
}

void Timeline::record(std::string_view name, std::string_view category, std::int64_t startNs,
                      std::int64_t endNs, std::span<const TimelineArgument> arguments, int track) {
  if (owner_.load(std::memory_order_relaxed) != ::getpid()) return;
  std::string line = beginEvent(name, 'X', rank_.load(std::memory_order_relaxed), track);
  appendField(line, "cat", category);
  appendTime(line, "ts", startNs);
  appendTime(line, "dur", std::max<std::int64_t>(endNs - startNs, 0));
  if (!arguments.empty()) appendArguments(line, arguments);
  line += '}';
  const MutexLock lock(mutex_);
  appendLocked(std::move(line));
}

void Timeline::recordMark(std::string_view name, std::string_view category, std::int64_t atNs,
                          int track) {
  if (owner_.load(std::memory_order_relaxed) != ::getpid()) return;
  std::string line = beginEvent(name, 'i', rank_.load(std::memory_order_relaxed), track);
  appendField(line, "cat", category);
  appendTime(line, "ts", atNs);
  line += ",\"s\":\"t\"}";
  const MutexLock lock(mutex_);
  appendLocked(std::move(line));
}

void Timeline::nameTrack(int track, std::string_view name) {
  if (!enabled() || owner_.load(std::memory_order_relaxed) != ::getpid()) return;
  std::string line = metadata("thread_name", rank_.load(std::memory_order_relaxed), track, name);
  const MutexLock lock(mutex_);
  appendLocked(std::move(line));
}

void Timeline::flush() {
  if (owner_.load(std::memory_order_relaxed) != ::getpid()) return;
  const MutexLock lock(mutex_);
  flushLocked();
}

void Timeline::appendLocked(std::string line) {
  if (!enabled()) return;  // stopped, or at the limit, since the caller looked
  line += ",\n";
  if (collected_ + line.size() > limit_) return truncateLocked();
  collected_ += line.size();
  buffer_ += line;
  if (buffer_.size() >= kFlushBytes) flushLocked();
}

void Timeline::flushLocked() {
  if (buffer_.empty() || !file_) return;
  if (Status status = appendToTimelineFile(file_.get(), buffer_, path_); !status.ok()) {
    enabled_.store(false, std::memory_order_relaxed);
    if (failure_.ok()) failure_ = std::move(status);
  }
  buffer_.clear();
}

void Timeline::truncateLocked() {
  enabled_.store(false, std::memory_order_relaxed);
  const int rank = rank_.load(std::memory_order_relaxed);
  std::string line = beginEvent("timeline truncated", 'i', rank, kMainTrack);
  appendField(line, "cat", "timeline");
  appendTime(line, "ts", nowNanoseconds());
  line += ",\"s\":\"p\",\"args\":{\"limit_bytes\":" + std::to_string(limit_) + "}},\n";
  buffer_ += line;
  flushLocked();
}

Status Timeline::createFile(const std::string& path) { return createTimelineFile(path); }

Status Timeline::closeFile(const std::string& path) {
  FARANDOLE_ASSIGN_OR_RETURN(auto file, openTimelineFile(path, Deadline::after(kOpenTimeout)));
  // JSON allows no comma after the last element: this is the last.
  return appendToTimelineFile(
      file.get(), beginEvent("timeline closed", 'M', 0, kMainTrack) + ",\"args\":{}}\n]\n", path);
}

}  // namespace farandole::observe
