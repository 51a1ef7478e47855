// LinkMesh::Core, the part that connects ranks.
#include <utility>

#include "base/log.h"
#include "transport/mesh_core.h"

namespace farandole::transport {
namespace {

constexpr Duration kHeadStartOfLowerRank = std::chrono::milliseconds(20);

}  // namespace

void LinkMesh::Core::dial(int peer, std::uint32_t number) {
  MutexLock lock(mutex_);
  Lane& lane = laneLocked(peer, number);
  // The other side may have been faster.
  if (stopped_ || lane.state != LaneState::kDialling || lane.dialer) return;
  LinkHello hello;
  hello.mode = options_.security;
  hello.from = static_cast<std::uint32_t>(options_.rank);
  hello.to = static_cast<std::uint32_t>(peer);
  hello.size = static_cast<std::uint32_t>(options_.size);
  hello.lane = number;
  hello.epoch = options_.epoch;
  hello.window = options_.limits.window;
  hello.host = options_.host;
  lane.dialer = std::make_shared<LinkDialer>(
      loop_, *tls_, peers_[static_cast<std::size_t>(peer)].card, hello, options_.limits.handshake,
      options_.limits.congestion, Deadline::after(options_.connectTime),
      [this, peer, number](Result<Established> result) {
        dialled(peer, number, std::move(result));
      });
  const Status begun =
      lane.dialer->start(options_.rank < peer ? Duration::zero() : kHeadStartOfLowerRank);
  lock.unlock();
  if (!begun.ok()) peerEnded(peer, begun);
}

void LinkMesh::Core::dialled(int peer, std::uint32_t number, Result<Established> result) {
  std::shared_ptr<LinkConnection> connection;
  {
    const MutexLock lock(mutex_);
    Lane& lane = laneLocked(peer, number);
    lane.dialer.reset();
    if (stopped_) return;
    // It does not answer because it stands still.
    if (!result.ok() && result.status().code() == Code::kUnavailable &&
        peers_[static_cast<std::size_t>(peer)].standsStill) {
      return loop_->post([this, peer, number] { dial(peer, number); });
    }
    lane.state = LaneState::kOpen;
    connection = lane.connection;
  }
  if (!result.ok()) return peerEnded(peer, result.status());
  logDebug("has connected with rank " + std::to_string(peer) + " at " + result->address +
           ", lane " + std::to_string(number));
  connection->attach(std::move(result).value());
}

LinkVerdict LinkMesh::Core::compare(const LinkHello& hello) const {
  const auto no = [](std::string text) { return LinkVerdict{Code::kMismatch, 0, text}; };
  const std::string from = std::to_string(hello.from);
  const std::string me = std::to_string(options_.rank);
  if (hello.mode != options_.security) {
    return no("rank " + from + " uses wire security " + std::string(wireSecurityName(hello.mode)) +
              ", rank " + me + " " + std::string(wireSecurityName(options_.security)) +
              ": give all ranks the same --wire-security");
  }
  if (hello.size != static_cast<std::uint32_t>(options_.size)) {
    return no("rank " + from + " believes in " + std::to_string(hello.size) + " ranks, rank " + me +
              " in " + std::to_string(options_.size));
  }
  if (hello.epoch != options_.epoch) {
    return no("rank " + from + " is in epoch " + std::to_string(hello.epoch) + ", rank " + me +
              " in epoch " + std::to_string(options_.epoch));
  }
  if (hello.to != static_cast<std::uint32_t>(options_.rank) ||
      hello.lane >= static_cast<std::uint32_t>(options_.lanes)) {
    return no("rank " + from + " asks for rank " + std::to_string(hello.to) + ", lane " +
              std::to_string(hello.lane) + ", which rank " + me + " is not or has not");
  }
  return {Code::kOk, options_.limits.window, ""};
}

LinkVerdict LinkMesh::Core::judge(const LinkHello& hello) {
  const int peer = static_cast<int>(hello.from);
  LinkVerdict verdict = compare(hello);
  if (verdict.code != Code::kOk) {
    // A straggler of another epoch is no fault of this one.
    if (hello.epoch == options_.epoch) {
      peerEnded(peer, Status(verdict.code, verdict.text).withRank(peer, hello.host));
    }
    return verdict;
  }
  const MutexLock lock(mutex_);
  if (stopped_) return {Code::kShutdown, 0, "it has shut down its connections"};
  Peer& entry = peers_[static_cast<std::size_t>(peer)];
  if (!entry.end.ok()) return {Code::kPeerLost, 0, "it has given up: " + entry.end.message()};
  Lane& lane = laneLocked(peer, hello.lane);
  const bool mineWins = lane.dialer && lane.dialer->saidHello() && options_.rank < peer;
  if (lane.state == LaneState::kOpen || mineWins) {
    return {
        Code::kDuplicateName, 0,
        "it has, or is making, a connection with this rank already; is this a child of the rank? "
        "Those must not call init: in Python put it under if __name__ == \"__main__\":"};
  }
  if (lane.dialer) lane.dialer->cancel();
  lane.dialer.reset();
  lane.state = LaneState::kOpen;
  return verdict;
}

void LinkMesh::Core::admitted(Established established) {
  std::shared_ptr<LinkConnection> connection;
  {
    const MutexLock lock(mutex_);
    if (stopped_) return;
    connection = laneLocked(established.peer, established.lane).connection;
  }
  logDebug("was connected with by rank " + std::to_string(established.peer) + " from " +
           established.address + ", lane " + std::to_string(established.lane));
  connection->attach(std::move(established));
}

}  // namespace farandole::transport
