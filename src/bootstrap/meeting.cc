#include "bootstrap/meeting.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "base/limits.h"
#include "base/log.h"
#include "bootstrap/admission.h"
#include "bootstrap/meeting_host.h"
#include "bootstrap/meeting_messages.h"
#include "bootstrap/unix_socket.h"

namespace farandole::bootstrap {
namespace {

using meeting::Member;
using meeting::Part;
using meeting::Terms;

constexpr int kMaxLocalSize = 1024;
constexpr Duration kLongestMeetingTurn = std::chrono::milliseconds(100);
constexpr Duration kHearWhy = std::chrono::milliseconds(200);

Status explained(const Terms& terms, Status seen) {
  return meeting::explained(terms, std::move(seen), kHearWhy);
}

Status hostLost() {
  return Status(Code::kPeerLost, "local rank 0 ended before the meeting was over");
}

// Takes one part into the table.
Status fill(std::vector<Member>& table, Part part, std::size_t& have) {
  if (part.total != table.size() || part.first != have) {
    return Status::invalid("the table's parts do not fit together");
  }
  for (Member& member : part.members) table[have++] = std::move(member);
  return {};
}

Result<std::vector<Member>> awaitTable(const Terms& terms, const Admission& room) {
  std::vector<Member> table(static_cast<std::size_t>(terms.size));
  std::size_t have = 0;
  TimePoint asked = Clock::now();
  while (have < table.size()) {
    if (terms.deadline.passed()) {
      return explained(terms, Status::timeout("the meeting of " + std::to_string(terms.size) +
                                              " local ranks was not complete within " +
                                              describeSeconds(Clock::now() - terms.start)));
    }
    FARANDOLE_RETURN_IF_ERROR(meeting::stillWorthWaiting(terms, asked));
    std::array<pollfd, 2> entries{{{room.fd.get(), POLLIN, 0}, {room.host.get(), POLLIN, 0}}};
    const int ready = ::poll(entries.data(), entries.size(),
                             pollMilliseconds(terms.deadline, kLongestMeetingTurn));
    if (ready <= 0) continue;
    if (entries[0].revents == 0) return explained(terms, hostLost());
    Result<Part> part = meeting::receivePart(room.fd.get());
    if (!part.ok()) {
      return explained(
          terms, Status(Code::kPeerLost, "the meeting was broken off: " + part.status().message()));
    }
    FARANDOLE_RETURN_IF_ERROR(fill(table, std::move(part).value(), have));
  }
  return table;
}

Result<std::vector<Member>> beGuest(const Terms& terms, const Member& own) {
  Result<std::string> address = terms.bootstrap.get(terms.roomKey(), terms.deadline);
  if (!address.ok()) {
    const Status why = address.status();
    if (why.code() != Code::kTimeout) return why;
    return Status::timeout("local rank 0 did not open the meeting: " + why.message()).withRank(0);
  }
  FARANDOLE_RETURN_IF_ERROR(meeting::whyThereIsNoRoom(address.value()));
  FARANDOLE_ASSIGN_OR_RETURN(auto name, parseAbstractAddress(address.value()));
  const crypto::Claim claim{terms.rank, terms.size, terms.epoch};
  Result<Admission> room = enter(name, SOCK_SEQPACKET, terms.key, crypto::Purpose::kMeeting, claim,
                                 "the meeting of the local ranks", terms.deadline);
  if (!room.ok()) {
    return room.status().code() == Code::kMismatch ? room.status()
                                                   : explained(terms, room.status());
  }
  const Status presented = meeting::sendPresentation(room->fd.get(), terms.rank, own.pidfd.get(),
                                                     own.arena.get(), terms.deadline);
  if (!presented.ok()) return explained(terms, presented);
  return awaitTable(terms, room.value());
}

Result<Member> self(int arenaFd) {
  Member own;
  own.arena = UniqueFd(::fcntl(arenaFd, F_DUPFD_CLOEXEC, 0));
  if (!own.arena) return Status::fromErrno("cannot duplicate the arena's descriptor", errno);
  FARANDOLE_ASSIGN_OR_RETURN(own.pidfd, openPidfd(::getpid()));
  return own;
}

// Found out before they are passed: a descriptor for which there is no room is simply missing.
Status enoughDescriptors(const Terms& terms) {
  if (terms.size == 1) return {};
  // Two of everybody's. Besides: two copies of its own, a socket and the host's process, or at the
  // host the door and a socket for each guest; and one or two for a look into /proc.
  const auto size = static_cast<std::size_t>(terms.size);
  const std::size_t needed = terms.rank == 0 ? 3 * size + 4 : 2 * size + 6;
  if (canOpen(needed)) return {};
  return Status::unavailable("local rank " + std::to_string(terms.rank) + " needs " +
                             std::to_string(needed) + " more open files to meet the others of " +
                             std::to_string(size) + ", and " + describeFileLimit() +
                             ": raise it, for example: ulimit -n 1024");
}

Met arrange(std::vector<Member> table, int me) {
  Met met;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const bool mine = i == static_cast<std::size_t>(me);
    const Result<pid_t> pid = pidOfPidfd(table[i].pidfd.get());
    met.pids.push_back(mine ? ::getpid() : pid.ok() ? pid.value() : 0);
    met.arenas.push_back(std::move(table[i].arena));
    met.pidfds.push_back(std::move(table[i].pidfd));
  }
  return met;
}

}  // namespace

Result<Met> meet(Bootstrap& bootstrap, std::string_view job, std::string_view secretHex,
                 std::uint64_t epoch, int localRank, int localSize, std::string_view keyPrefix,
                 int arenaFd, Deadline deadline) {
  if (localSize < 1 || localSize > kMaxLocalSize || localRank < 0 || localRank >= localSize) {
    return Status::invalid("local rank " + std::to_string(localRank) + " of " +
                           std::to_string(localSize) + " cannot meet the others");
  }
  FARANDOLE_ASSIGN_OR_RETURN(auto key, crypto::JobKey::make(job, secretHex));
  Terms terms{bootstrap, std::move(key),         epoch,        localRank,
              localSize, std::string(keyPrefix), Clock::now(), deadline};
  if (const Status enough = enoughDescriptors(terms); !enough.ok()) {
    localRank == 0 ? meeting::sayWhyThereIsNoRoom(terms, enough) : meeting::sayWhy(terms, enough);
    return enough;
  }
  FARANDOLE_ASSIGN_OR_RETURN(auto own, self(arenaFd));
  if (localSize == 1) {
    std::vector<Member> alone;
    alone.push_back(std::move(own));
    return arrange(std::move(alone), 0);
  }
  FARANDOLE_ASSIGN_OR_RETURN(
      auto table, localRank == 0 ? meeting::MeetingHost(std::move(terms), std::move(own)).run()
                                 : beGuest(terms, own));
  logDebug("met all " + std::to_string(localSize) + " ranks of this machine" +
           (localRank == 0 ? ", as their host" : ""));
  return arrange(std::move(table), localRank);
}

}  // namespace farandole::bootstrap
