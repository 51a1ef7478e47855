// What is exchanged at a meeting after a guest was admitted: packets with descriptors attached
// (SOCK_SEQPACKET: a packet comes whole or not at all).
//
//     guest → host   presentation  magic, rank;                 fds: own pidfd, own arena
//     host  → guest  part of table magic, first, count, total;  fds: (pidfd, arena) × count
//
// All integers are u32, little-endian. The kernel passes at most 253 descriptors in one packet.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/status.h"

namespace farandole::bootstrap::meeting {

inline constexpr int kRanksPerPart = 120;

// One rank's descriptors.
struct Member {
  UniqueFd pidfd;
  UniqueFd arena;
};

// Entries first … first + members.size() - 1 of a table of `total` ranks.
struct Part {
  std::uint32_t first = 0;
  std::uint32_t total = 0;
  std::vector<Member> members;
};

// A room with no space, or too many descriptors in flight, is waited for until the deadline.
Status sendPresentation(int fd, int rank, int pidfd, int arena, Deadline deadline);
Status sendPart(int fd, std::span<const Member> table, std::size_t first, std::size_t count,
                Deadline deadline);

// Without waiting: for a descriptor that is readable. kUnavailable: the other side has left;
// kInvalidArgument: it said something else. Descriptors that were passed are owned in any case.
Result<Member> receivePresentation(int fd, int rank);
Result<Part> receivePart(int fd);

}  // namespace farandole::bootstrap::meeting
