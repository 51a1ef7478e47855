#include "collective/shm/layout.h"

#include <algorithm>

#include "base/rounding.h"
#include "collective/shm/shm_communicator.h"

namespace farandole::collective::shm {
namespace {

constexpr std::size_t kKibi = 1024;

// Few members: slots as large as streaming stores like them. Many: the area must stay small.
std::size_t contributionFor(std::size_t members) {
  if (members <= 2) return 256 * kKibi;
  if (members <= 8) return 384 * kKibi;
  if (members <= 32) return 256 * kKibi;
  return members <= 64 ? 112 * kKibi : 64 * kKibi;
}

std::size_t streamFor(std::size_t members) {
  if (members <= 4) return 64 * kKibi;
  if (members <= 16) return 16 * kKibi;
  return members <= 64 ? 4 * kKibi : kKibi;
}

// Slots of equal offsets in equal pages would fall into the same cache sets: shift them a little.
constexpr std::size_t kStagger = 5 * kLinePair;

}  // namespace

AreaLayout::AreaLayout(int members)
    : members_(static_cast<std::size_t>(members)),
      contribution_(contributionFor(members_)),
      part_(contribution_ / std::max<std::size_t>(1, members_ - 1) / 64 * 64),
      stream_(streamFor(members_)),
      contributionStride_(roundUp(contribution_, kLinePair) + kStagger),
      answerStride_(roundUp(part_, kLinePair) + kStagger) {
  slots_ = roundUp(sizeof(AreaHeader), 4096) + roundUp(members_ * sizeof(MemberFlags), 4096);
  perMember_ = roundUp(kRing * (contributionStride_ + answerStride_), 4096);
  channels_ = slots_ + members_ * perMember_;
  total_ = channels_ + members_ * members_ * (sizeof(Channel) + stream_);
}

std::size_t AreaLayout::flags(int member) const {
  return roundUp(sizeof(AreaHeader), 4096) + static_cast<std::size_t>(member) * sizeof(MemberFlags);
}

std::size_t AreaLayout::contribution(int member, std::uint64_t step) const {
  return slots_ + static_cast<std::size_t>(member) * perMember_ +
         static_cast<std::size_t>(step % kRing) * contributionStride_;
}

std::size_t AreaLayout::answer(int member, std::uint64_t step) const {
  return slots_ + static_cast<std::size_t>(member) * perMember_ + kRing * contributionStride_ +
         static_cast<std::size_t>(step % kRing) * answerStride_;
}

std::size_t AreaLayout::channel(int from, int to) const {
  return channels_ + (static_cast<std::size_t>(from) * members_ + static_cast<std::size_t>(to)) *
                         (sizeof(Channel) + stream_);
}

std::size_t shmCommunicatorBytes(int members) { return AreaLayout(members).bytes(); }

}  // namespace farandole::collective::shm
