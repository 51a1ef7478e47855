// A control channel that returns what a test has put in, and keeps what was sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/control_channel.h"
#include "control/messages.h"

namespace farandole::test {

class FakeControl final : public control::ControlChannel {
 public:
  std::deque<std::vector<std::byte>> log;  // what is read of it
  control::RingRead afterTheLog =
      control::RingRead::kEmpty;  // what the log says when all of it has been read
  std::map<int, std::deque<std::vector<std::byte>>> records;  // submissions, by member
  std::map<int, control::RingRead>
      submissions;                    // what reading those of a member says when there are none
  std::map<int, std::uint64_t> left;  // by member: up to where it has executed the log
  std::vector<std::vector<std::byte>> submitted;
  std::vector<std::vector<std::byte>> appended;
  std::size_t submissionRoom = SIZE_MAX;  // so many more find room
  std::size_t logRoom = SIZE_MAX;
  bool waits = false;
  std::optional<std::uint64_t> leftHere;

  bool submit(std::span<const std::byte> record) override {
    return keep(record, submissionRoom, submitted);
  }
  control::RingRead nextEntry(std::vector<std::byte>& entry) override {
    if (log.empty()) return afterTheLog;
    entry = std::move(log.front());
    log.pop_front();
    ++read_;
    return control::RingRead::kRecord;
  }
  std::uint64_t position() const override { return read_; }
  control::RingRead nextSubmission(int member, std::vector<std::byte>& record) override {
    auto& waiting = records[member];
    if (waiting.empty()) {
      const auto found = submissions.find(member);
      return found == submissions.end() ? control::RingRead::kEmpty : found->second;
    }
    record = std::move(waiting.front());
    waiting.pop_front();
    return control::RingRead::kRecord;
  }
  bool append(std::span<const std::byte> entry) override { return keep(entry, logRoom, appended); }
  void setWaiting(int) override {}
  bool anyoneWaits() const override { return waits; }
  void leave(std::uint64_t executed) override { leftHere = executed; }
  std::optional<std::uint64_t> leftAt(int member) const override {
    const auto found = left.find(member);
    if (found == left.end()) return std::nullopt;
    return found->second;
  }

 private:
  static bool keep(std::span<const std::byte> bytes, std::size_t& room,
                   std::vector<std::vector<std::byte>>& kept) {
    if (room == 0) return false;
    if (room != SIZE_MAX) --room;
    kept.emplace_back(bytes.begin(), bytes.end());
    return true;
  }

  std::uint64_t read_ = 0;
};

// What was submitted or appended, in words: "announce a", "repeat 3.1", "batch 0.1 2.1".
std::vector<std::string> told(const FakeControl& control, int members);
std::vector<std::string> logged(const FakeControl& control, int members);

}  // namespace farandole::test
