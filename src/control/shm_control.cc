#include "control/shm_control.h"

#include <algorithm>

namespace farandole::control {
namespace {

constexpr std::size_t kLogBytes = 256 << 10;
constexpr std::size_t kSubmissionBytes = 64 << 10;

}  // namespace

struct alignas(64) ShmControl::Member {
  // These are written by the member.
  std::atomic<std::uint64_t> submitted;  // head of its submission ring
  std::atomic<std::uint64_t> logRead;
  machine::SealedWord left;  // its last position
  // This is written by the sequencer.
  alignas(64) std::atomic<std::uint64_t> submissionsRead;
};

struct alignas(64) ShmControl::Header {
  std::atomic<std::uint64_t> logHead;
  // The number of threads that wait in any member. It is a hint, so relaxed.
  alignas(64) std::atomic<std::int32_t> waiting;
};

std::size_t ShmControl::bytesNeeded(int members) {
  const auto n = static_cast<std::size_t>(members);
  return sizeof(Header) + n * sizeof(Member) + kLogBytes + n * kSubmissionBytes;
}

ShmControl::ShmControl(machine::Neighbourhood& neighbourhood, void* area, std::vector<int> members,
                       int me)
    : neighbourhood_(neighbourhood),
      members_(std::move(members)),
      me_(me),
      header_(static_cast<Header*>(area)),
      left_(members_.size()) {
  const auto epoch = static_cast<std::uint32_t>(neighbourhood.epoch());
  auto* data = reinterpret_cast<std::byte*>(&member(static_cast<int>(members_.size())));
  log_ = RingReader(data, kLogBytes, &header_->logHead, epoch);
  logWriter_ = RingWriter(data, kLogBytes, &header_->logHead, epoch);
  data += kLogBytes;
  for (int i = 0; i < static_cast<int>(members_.size()); ++i, data += kSubmissionBytes) {
    submissions_.emplace_back(data, kSubmissionBytes, &member(i).submitted, epoch);
    if (i == me_)
      submissionWriter_ = RingWriter(data, kSubmissionBytes, &member(i).submitted, epoch);
  }
}

ShmControl::Member& ShmControl::member(int index) const {
  return reinterpret_cast<Member*>(header_ + 1)[index];
}

bool ShmControl::submit(std::span<const std::byte> record) {
  if (!submissionWriter_.write(record,
                               member(me_).submissionsRead.load(std::memory_order_acquire))) {
    return false;
  }
  if (me_ != 0) neighbourhood_.ring(members_[0]);
  return true;
}

RingRead ShmControl::nextEntry(std::vector<std::byte>& entry) {
  const RingRead result = log_.read(entry);
  // Release: the entry's bytes were copied before its room is used again.
  if (result == RingRead::kRecord) {
    member(me_).logRead.store(log_.position(), std::memory_order_release);
  }
  return result;
}

RingRead ShmControl::nextSubmission(int index, std::vector<std::byte>& record) {
  auto& reader = submissions_[static_cast<std::size_t>(index)];
  const RingRead result = reader.read(record);
  if (result == RingRead::kRecord) {
    member(index).submissionsRead.store(reader.position(), std::memory_order_release);
  }
  return result;
}

bool ShmControl::append(std::span<const std::byte> entry) {
  std::uint64_t least = UINT64_MAX;
  for (int i = 0; i < static_cast<int>(members_.size()); ++i) {
    // A member that has left reads no more and must not hold up the others.
    if (leftAt(i)) continue;
    least = std::min(least, member(i).logRead.load(std::memory_order_acquire));
  }
  if (least == UINT64_MAX) least = log_.position();
  if (!logWriter_.write(entry, least)) return false;
  for (int i = 0; i < static_cast<int>(members_.size()); ++i) {
    if (i != me_) neighbourhood_.ring(members_[static_cast<std::size_t>(i)]);
  }
  return true;
}

void ShmControl::setWaiting(int delta) {
  const auto before = header_->waiting.fetch_add(delta, std::memory_order_relaxed);
  // The first thread that waits may end the delay of a batch.
  if (before == 0 && delta > 0 && me_ != 0) neighbourhood_.ring(members_[0]);
}

bool ShmControl::anyoneWaits() const {
  return header_->waiting.load(std::memory_order_relaxed) > 0;
}

void ShmControl::leave(std::uint64_t executed) {
  auto& mine = left_[static_cast<std::size_t>(me_)];
  if (mine) return;
  mine = executed;
  member(me_).left.store(executed, neighbourhood_.epoch(), me_);
  for (int i = 0; i < static_cast<int>(members_.size()); ++i) {
    if (i != me_) neighbourhood_.ring(members_[static_cast<std::size_t>(i)]);
  }
}

std::optional<std::uint64_t> ShmControl::leftAt(int index) const {
  auto& known = left_[static_cast<std::size_t>(index)];
  if (known) return known;
  const auto said = member(index).left.load(neighbourhood_.epoch(), index);
  // The member has executed only what was in the log before it left, and the log only grows.
  if (said && *said <= header_->logHead.load(std::memory_order_acquire)) known = said;
  return known;
}

}  // namespace farandole::control
