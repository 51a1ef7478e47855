#include "bootstrap/meeting_host.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/posix.h"

namespace farandole::bootstrap::meeting {
namespace {

constexpr std::size_t kStrangers = 64;
constexpr Duration kAskEvery = std::chrono::milliseconds(200);
constexpr Duration kLongestHostTurn = std::chrono::milliseconds(100);
constexpr Duration kSayWhy = std::chrono::milliseconds(500);
constexpr Duration kHearWhy = std::chrono::milliseconds(200);

// A status as a value of bootstrap: its code in decimal, a space, its message.
std::string encodeFailure(const Status& status) {
  return std::to_string(static_cast<int>(status.code())) + " " + status.message();
}

Status decodeFailure(std::string_view value) {
  int code = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), code);
  const bool known = error == std::errc() && code > static_cast<int>(Code::kOk) &&
                     code <= static_cast<int>(Code::kInternal);
  if (!known) return Status::unavailable("the meeting of the local ranks failed");
  value.remove_prefix(std::min(static_cast<std::size_t>(end - value.data()) + 1, value.size()));
  return Status(static_cast<Code>(code), std::string(value));
}

std::string localRank(int rank) { return "local rank " + std::to_string(rank); }

}  // namespace

// If it cannot be said, they find out by the closed socket or their deadline.
void sayWhy(const Terms& terms, const Status& status) {
  [[maybe_unused]] const Status said =
      terms.bootstrap.put(terms.failureKey(), encodeFailure(status), Deadline::after(kSayWhy));
}

void sayWhyThereIsNoRoom(const Terms& terms, const Status& status) {
  sayWhy(terms, status);
  [[maybe_unused]] const Status said =
      terms.bootstrap.put(terms.roomKey(), encodeFailure(status), Deadline::after(kSayWhy));
}

Status whyThereIsNoRoom(std::string_view room) {
  return room.starts_with('@') ? Status() : decodeFailure(room);
}

Status stillWorthWaiting(const Terms& terms, TimePoint& last) {
  const TimePoint now = Clock::now();
  if (now - last < kAskEvery) return {};
  last = now;
  return explained(terms, {}, Duration::zero());
}

Status explained(const Terms& terms, Status seen, Duration timeout) {
  // The key is put only after a failure, so the answer is "not yet" unless something has happened.
  Result<std::string> failure = terms.bootstrap.get(terms.failureKey(), Deadline::after(timeout));
  if (failure.ok()) return decodeFailure(failure.value());
  const Status& why = failure.status();
  return why.code() == Code::kTimeout ? seen : why;
}

MeetingHost::MeetingHost(Terms terms, Member own)
    : terms_(std::move(terms)), table_(static_cast<std::size_t>(terms_.size)) {
  table_[0] = std::move(own);
}

Result<std::vector<Member>> MeetingHost::run() {
  Result<std::unique_ptr<Doorkeeper>> doorkeeper =
      Doorkeeper::open(SOCK_SEQPACKET, terms_.key, crypto::Purpose::kMeeting,
                       kStrangers + static_cast<std::size_t>(terms_.size));
  if (!doorkeeper.ok()) {
    sayWhyThereIsNoRoom(terms_, doorkeeper.status());
    return doorkeeper.status();
  }
  doorkeeper_ = std::move(doorkeeper).value();
  FARANDOLE_RETURN_IF_ERROR(
      terms_.bootstrap.put(terms_.roomKey(), "@" + doorkeeper_->name(), terms_.deadline));
  Status status = gather();
  if (status.ok()) status = handOut();
  if (status.ok()) return std::move(table_);
  if (status.code() == Code::kPeerLost) status = explained(terms_, status, kHearWhy);
  // For those who wait for the table or have yet to come: unless the agent tells them itself.
  if (status.code() != Code::kPeerLost || status.rank() < 0) sayWhy(terms_, status);
  return status;
}

bool MeetingHost::complete() const {
  return std::all_of(table_.begin(), table_.end(),
                     [](const Member& member) { return static_cast<bool>(member.pidfd); });
}

Status MeetingHost::gather() {
  TimePoint asked = Clock::now();
  while (!complete()) {
    if (terms_.deadline.passed()) return notAllCame();
    FARANDOLE_RETURN_IF_ERROR(stillWorthWaiting(terms_, asked));
    std::vector<pollfd> entries{{doorkeeper_->fd(), POLLIN, 0}};
    std::vector<int> ranks;
    for (const auto& [rank, guest] : guests_) {
      entries.push_back({guest.fd.get(), POLLIN, 0});
      // The forked children of a guest that has ended may keep its socket open, so its process is
      // what counts.
      entries.push_back({table_[static_cast<std::size_t>(rank)].pidfd.get(), POLLIN, 0});
      ranks.push_back(rank);
    }
    const int limit = std::min(pollMilliseconds(terms_.deadline, kLongestHostTurn),
                               pollMilliseconds(doorkeeper_->nextCall(), kLongestHostTurn));
    if (::poll(entries.data(), entries.size(), limit) < 0) continue;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (entries[1 + 2 * i].revents != 0) {
        FARANDOLE_RETURN_IF_ERROR(hear(ranks[i], guests_.at(ranks[i])));
      } else if (entries[2 + 2 * i].revents != 0) {
        return Status(Code::kPeerLost, localRank(ranks[i]) + " ended during the meeting");
      }
    }
    for (Visitor& visitor : doorkeeper_->serve()) welcome(std::move(visitor));
  }
  return {};
}

void MeetingHost::welcome(Visitor visitor) {
  const crypto::Claim claim = visitor.claim();
  std::string refusal;
  Code code = Code::kMismatch;
  if (claim.epoch != terms_.epoch) {
    refusal = "it is in epoch " + std::to_string(claim.epoch) + ", this meeting is of epoch " +
              std::to_string(terms_.epoch);
  } else if (claim.size != terms_.size) {
    refusal = "it expects " + std::to_string(claim.size) +
              " ranks on this machine, this meeting has " + std::to_string(terms_.size);
  } else if (claim.rank < 1 || claim.rank >= terms_.size) {
    refusal = "no such local rank among " + std::to_string(terms_.size);
  } else if (const auto found = guests_.find(claim.rank);
             found != guests_.end() && found->second.presented) {
    refusal = "a process with this local rank is here already";
    code = Code::kDuplicateName;
  }
  if (!refusal.empty()) {
    if (refusals_.size() < static_cast<std::size_t>(terms_.size)) refusals_[claim.rank] = refusal;
    [[maybe_unused]] const Status told =
        visitor.refuse(code, localRank(claim.rank) + " was refused: " + refusal);
    return;
  }
  if (!visitor.accept({}).ok()) return;
  guests_[claim.rank] = Guest{std::move(visitor.fd), visitor.pid, false};
}

Status MeetingHost::hear(int rank, Guest& guest) {
  if (guest.presented) {
    return Status(Code::kPeerLost, localRank(rank) + " left the meeting before it was over");
  }
  Result<Member> member = receivePresentation(guest.fd.get(), rank);
  Result<pid_t> pid = member.ok() ? pidOfPidfd(member->pidfd.get()) : member.status();
  // Unknown (no /proc, other namespaces) is not a contradiction; something that is no pidfd, or
  // one of another process, is: it would make everybody watch the wrong one.
  const bool wrong = !member.ok() || (!pid.ok() && pid.status().code() == Code::kInvalidArgument) ||
                     (pid.ok() && pid.value() > 0 && guest.pid > 0 && pid.value() != guest.pid);
  if (wrong) {
    refusals_[rank] =
        member.ok() ? "it did not pass a descriptor of its own process" : member.status().message();
    guests_.erase(rank);
    return {};
  }
  guest.presented = true;
  table_[static_cast<std::size_t>(rank)] = std::move(member).value();
  return {};
}

Status MeetingHost::handOut() {
  for (const auto& [rank, guest] : guests_) {
    for (std::size_t first = 0; first < table_.size(); first += kRanksPerPart) {
      const std::size_t count = std::min<std::size_t>(kRanksPerPart, table_.size() - first);
      const Status sent = sendPart(guest.fd.get(), table_, first, count, terms_.deadline);
      if (!sent.ok()) {
        return Status(sent.code() == Code::kTimeout ? Code::kTimeout : Code::kPeerLost,
                      localRank(rank) + " did not take the table: " + sent.message());
      }
    }
  }
  return {};
}

Status MeetingHost::notAllCame() const {
  std::string ranks;
  std::string reasons;
  int first = -1;
  for (int rank = 1; rank < terms_.size; ++rank) {
    if (table_[static_cast<std::size_t>(rank)].pidfd) continue;
    if (first < 0) first = rank;
    ranks += (ranks.empty() ? "" : ",") + std::to_string(rank);
  }
  for (const auto& [rank, reason] : refusals_) {
    reasons += "; " + localRank(rank) + " was refused: " + reason;
  }
  return Status::timeout("local rank(s) " + ranks + " did not arrive within " +
                         describeSeconds(Clock::now() - terms_.start) + reasons)
      .withRank(first);
}

}  // namespace farandole::bootstrap::meeting
