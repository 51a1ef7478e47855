#include "bootstrap/meeting_messages.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <thread>
#include <utility>

#include "base/fd_passing.h"
#include "base/limits.h"
#include "base/little_endian.h"
#include "base/posix.h"

namespace farandole::bootstrap::meeting {
namespace {

constexpr std::uint32_t kPresentationMagic = 0x50445246;  // "FRDP"
constexpr std::uint32_t kPartMagic = 0x54445246;          // "FRDT"
constexpr std::size_t kWords = 4;
using Words = std::array<std::uint32_t, kWords>;
using Packet = std::array<std::uint8_t, 4 * kWords>;

Packet pack(const Words& words) {
  Packet packet{};
  for (std::size_t i = 0; i < kWords; ++i) store(packet.data() + 4 * i, words[i]);
  return packet;
}

Words unpack(const Packet& packet) {
  Words words{};
  for (std::size_t i = 0; i < kWords; ++i) {
    words[i] = load<std::uint32_t>(packet.data() + 4 * i);
  }
  return words;
}

static_assert(2 * kRanksPerPart <= kMostPassedFds);

Status sendPacket(int fd, const Words& words, std::span<const int> fds, Deadline deadline) {
  const Packet packet = pack(words);
  for (;;) {
    const ssize_t sent = sendWithFds(fd, packet, fds);
    if (sent == static_cast<ssize_t>(packet.size())) return {};
    if (sent >= 0) return Status::internal("a packet was sent in part");
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (waitReady(fd, POLLOUT, deadline)) continue;
      return Status::timeout("the other side does not read");
    }
    // ETOOMANYREFS: the user's descriptors in flight reached its limit of open files; they become
    // fewer as the others read theirs, which nothing tells us.
    if (errno != ETOOMANYREFS) return Status::fromErrno("cannot pass descriptors", errno);
    if (deadline.passed()) return Status::timeout("too many descriptors in flight (ulimit -n)");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

struct Received {
  Words words{};
  std::vector<UniqueFd> fds;
};

Result<Received> receivePacket(int fd) {
  Packet packet{};
  Passed passed = receiveWithFds(fd, packet);
  if (passed.bytes < 0) return Status::fromErrno("cannot receive descriptors", errno);
  if (passed.bytes == 0) return Status::unavailable("the other side has left");
  if (passed.fdsLost) {
    return Status::unavailable("not all descriptors could be taken: " + describeFileLimit() +
                               ": raise it, for example: ulimit -n 1024");
  }
  if (passed.bytes != static_cast<ssize_t>(packet.size()) || passed.cut) {
    return Status::invalid("a packet that does not belong to a meeting");
  }
  return Received{unpack(packet), std::move(passed.fds)};
}

}  // namespace

Status sendPresentation(int fd, int rank, int pidfd, int arena, Deadline deadline) {
  const std::array<int, 2> fds{pidfd, arena};
  return sendPacket(fd, {kPresentationMagic, static_cast<std::uint32_t>(rank), 0, 0}, fds,
                    deadline);
}

Status sendPart(int fd, std::span<const Member> table, std::size_t first, std::size_t count,
                Deadline deadline) {
  std::vector<int> fds;
  for (const Member& member : table.subspan(first, count)) {
    fds.push_back(member.pidfd.get());
    fds.push_back(member.arena.get());
  }
  return sendPacket(fd,
                    {kPartMagic, static_cast<std::uint32_t>(first),
                     static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(table.size())},
                    fds, deadline);
}

Result<Member> receivePresentation(int fd, int rank) {
  FARANDOLE_ASSIGN_OR_RETURN(auto received, receivePacket(fd));
  if (received.words != Words{kPresentationMagic, static_cast<std::uint32_t>(rank), 0, 0} ||
      received.fds.size() != 2) {
    return Status::invalid("a presentation was expected");
  }
  return Member{std::move(received.fds[0]), std::move(received.fds[1])};
}

Result<Part> receivePart(int fd) {
  FARANDOLE_ASSIGN_OR_RETURN(auto received, receivePacket(fd));
  const auto [magic, first, count, total] = received.words;
  if (magic != kPartMagic || count == 0 || count > kRanksPerPart || first > total ||
      count > total - first || received.fds.size() != std::size_t{2} * count) {
    return Status::invalid("a part of the table was expected");
  }
  Part part;
  part.first = first;
  part.total = total;
  for (std::size_t i = 0; i < count; ++i) {
    part.members.push_back({std::move(received.fds[2 * i]), std::move(received.fds[2 * i + 1])});
  }
  return part;
}

}  // namespace farandole::bootstrap::meeting
