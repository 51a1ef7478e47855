#include "collective/shm/board.h"

#include <algorithm>
#include <cstring>

namespace farandole::collective::shm {

Board::Board(machine::Neighbourhood& neighbourhood, void* area, std::vector<int> members, int me)
    : neighbourhood_(neighbourhood),
      area_(static_cast<std::byte*>(area)),
      members_(std::move(members)),
      me_(me),
      layout_(static_cast<int>(members_.size())),
      seen_(members_.size()) {
  for (int member = 0; member < size(); ++member) {
    flags_.push_back(reinterpret_cast<MemberFlags*>(area_ + layout_.flags(member)));
    const int rank = localRank(member);
    if (member != me_) othersMask_[static_cast<std::size_t>(rank / 64)] |= 1ULL << (rank % 64);
  }
  // Seen by the others with the first counter that is published after it (release).
  flags(me_).epoch.store(neighbourhood_.epoch() + 1, std::memory_order_relaxed);
}

SharedChoices& Board::choices() { return reinterpret_cast<AreaHeader*>(area_)->choices; }

std::byte* Board::contribution(int member, std::uint64_t step) const {
  return area_ + layout_.contribution(member, step);
}

std::byte* Board::answer(int member, std::uint64_t step) const {
  return area_ + layout_.answer(member, step);
}

Channel& Board::channel(int from, int to) const {
  return *reinterpret_cast<Channel*>(area_ + layout_.channel(from, to));
}

std::byte* Board::stream(int from, int to) const {
  return area_ + layout_.channel(from, to) + AreaLayout::streamInChannel();
}

void Board::finish(std::uint64_t end) {
  MemberFlags& mine = flags(me_);
  // Release: a member that sees these counters may overwrite what this member has read.
  if (contributed_ < end) mine.contributed.store(contributed_ = end, std::memory_order_release);
  if (answered_ < end) mine.answered.store(answered_ = end, std::memory_order_release);
  if (consumed_ < end) mine.consumed.store(consumed_ = end, std::memory_order_release);
  base_ = end;
  ringOthers();
}

void Board::contribute(std::uint64_t below) {
  flags(me_).contributed.store(contributed_ = below, std::memory_order_release);
  ringOthers();
}

void Board::answerUpTo(std::uint64_t below) {
  flags(me_).answered.store(answered_ = below, std::memory_order_release);
  ringOthers();
}

void Board::consume(std::uint64_t below) {
  flags(me_).consumed.store(consumed_ = below, std::memory_order_release);
  ringOthers();
}

void Board::noteContributionsRead(std::uint64_t below) {
  contributionsRead_ = std::max(contributionsRead_, below);
}

void Board::noteAnswersRead(std::uint64_t below) { answersRead_ = std::max(answersRead_, below); }

bool Board::refresh(std::uint64_t step) {
  std::uint64_t least = ~std::uint64_t{0};
  for (int member = 0; member < size(); ++member) {
    if (member == me_) continue;
    const bool gone = isGone(member);
    // Acquire: their reads of our slots happened before our next writes.
    least = std::min(least, flags(member).consumed.load(std::memory_order_acquire));
    if (least + kRing <= step) {
      if (gone) missed_ = member;
      return false;
    }
  }
  noteContributionsRead(least);
  noteAnswersRead(least);
  return true;
}

void Board::check(int member) {
  Seen& seen = seen_[static_cast<std::size_t>(member)];
  if (seen.checked) return;
  seen.checked = true;
  if (flags(member).epoch.load(std::memory_order_relaxed) != neighbourhood_.epoch() + 1) {
    stranger_ = member;
  }
}

bool Board::contributed(int member, std::uint64_t step) {
  Seen& seen = seen_[static_cast<std::size_t>(member)];
  if (member == me_ || seen.contributed > step) return true;
  const bool gone = isGone(member);
  seen.contributed = flags(member).contributed.load(std::memory_order_acquire);
  if (seen.contributed <= step) {
    if (gone) missed_ = member;
    return false;
  }
  check(member);
  return true;
}

bool Board::answered(int member, std::uint64_t step) {
  Seen& seen = seen_[static_cast<std::size_t>(member)];
  if (member == me_ || seen.answered > step) return true;
  const bool gone = isGone(member);
  seen.answered = flags(member).answered.load(std::memory_order_acquire);
  if (seen.answered <= step && gone) missed_ = member;
  return seen.answered > step;
}

bool Board::allContributed(std::uint64_t step) {
  if (allContributed_ > step) return true;
  if (contributionSearch_.step != step) contributionSearch_ = {step, 0};
  for (int& member = contributionSearch_.member; member < size(); ++member) {
    if (!contributed(member, step)) return false;
  }
  allContributed_ = step + 1;
  noteAllBegun();
  return true;
}

bool Board::allAnswered(std::uint64_t step) {
  if (allAnswered_ > step) return true;
  if (answerSearch_.step != step) answerSearch_ = {step, 0};
  for (int& member = answerSearch_.member; member < size(); ++member) {
    if (!answered(member, step)) return false;
  }
  allAnswered_ = step + 1;
  return true;
}

void Board::writeTiny(std::uint64_t number, std::span<const std::byte> payload) {
  TinyLine& line = flags(me_).tiny[number % 2];
  // Reuse of the line is safe without asking: this member is done with operation number-1, so
  // everybody has begun it, so everybody is done with number-2, the line's former content.
  std::memcpy(line.payload, payload.data(), std::min(payload.size(), sizeof(line.payload)));
  line.sequence.store(number + 1, std::memory_order_release);
  ringOthers();
}

const std::byte* Board::readTiny(int member, std::uint64_t number) {
  const TinyLine& line = flags(member).tiny[number % 2];
  const bool gone = isGone(member);
  if (line.sequence.load(std::memory_order_acquire) != number + 1) {
    if (gone) missed_ = member;
    return nullptr;
  }
  check(member);
  return line.payload;
}

void Board::noteAllBegun() {
  noteContributionsRead(base_);
  noteAnswersRead(base_);
}

}  // namespace farandole::collective::shm
