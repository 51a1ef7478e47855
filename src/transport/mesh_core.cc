#include "transport/mesh_core.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/log.h"
#include "transport/congestion.h"

namespace farandole::transport {
namespace {

// The others take a rank that ends without a goodbye for lost; on a machine with far more work than
// processors they may be slow to read it.
constexpr Duration kGoodbyeTime = std::chrono::milliseconds(2000);
constexpr Duration kStopTime = std::chrono::milliseconds(2500);
// The limit for connections that are being made when this rank leaves.
constexpr Duration kDialTime = std::chrono::milliseconds(250);

Status shutDown() { return Status(Code::kShutdown, "this rank has shut down its connections"); }

// Consecutive slots spread over all lanes, whatever their stride.
std::uint32_t laneOf(std::uint64_t slot, int lanes) {
  return static_cast<std::uint32_t>((slot * 0x9e3779b97f4a7c15ULL >> 32) %
                                    static_cast<std::uint64_t>(lanes));
}

constexpr Duration kHeadStartOfLowerRank = std::chrono::milliseconds(20);

}  // namespace

Status LinkMesh::Core::start() {
  FARANDOLE_ASSIGN_OR_RETURN(auto key, LinkKey::make(options_.job, options_.secretHex));
  FARANDOLE_ASSIGN_OR_RETURN(auto socket, openLinkPort(options_.ports));
  chooseCongestion(socket.fd.get(), options_.limits.congestion);
  port_ = socket.port;
  FARANDOLE_ASSIGN_OR_RETURN(
      auto addresses,
      advertisedAddresses(options_.ports, port_, options_.advertise, options_.interfaces));
  card_ = encodeLinkCard({options_.host, std::move(addresses)});
  FARANDOLE_ASSIGN_OR_RETURN(tls_, TlsContext::make(std::move(key), options_.rank, options_.size));
  {
    const MutexLock lock(mutex_);
    peers_.resize(static_cast<std::size_t>(options_.size));
    for (Peer& peer : peers_) peer.lanes.resize(static_cast<std::size_t>(options_.lanes));
  }
  FARANDOLE_ASSIGN_OR_RETURN(loop_, LinkLoop::start());
  listener_ = std::make_shared<LinkListener>(
      loop_, *tls_, std::move(socket), options_.halfOpen, options_.limits.handshake,
      LinkListener::Events{[this](const LinkHello& hello) { return judge(hello); },
                           [this](Established result) { admitted(std::move(result)); },
                           [this](const LinkHello& hello, const Status& why) {
                             peerEnded(static_cast<int>(hello.from),
                                       Status(Code::kPeerLost, why.message()));
                           }});
  FARANDOLE_RETURN_IF_ERROR(listener_->start());
  logDebug("listens for other ranks on port " + std::to_string(port_) + ", wire security " +
           std::string(wireSecurityName(options_.security)));
  return {};
}

Status LinkMesh::Core::introduce(int peer, std::string_view card, const std::string& companions) {
  if (peer < 0 || peer >= options_.size || peer == options_.rank) {
    return Status::invalid("rank " + std::to_string(peer) + " is no peer of rank " +
                           std::to_string(options_.rank) + " of " + std::to_string(options_.size));
  }
  Result<LinkCard> decoded = decodeLinkCard(card);
  if (!decoded.ok()) return decoded.status().withRank(peer);
  const MutexLock lock(mutex_);
  Peer& entry = peers_[static_cast<std::size_t>(peer)];
  entry.card = std::move(decoded).value();
  entry.introduced = true;
  entry.companions = companions;
  // It may have been the first to connect.
  for (Lane& lane : entry.lanes) {
    if (lane.connection) lane.connection->setCompanions(companions);
  }
  return {};
}

LinkMesh::Core::Lane& LinkMesh::Core::laneLocked(int peer, std::uint32_t lane) {
  Lane& entry = peers_[static_cast<std::size_t>(peer)].lanes[lane];
  if (!entry.connection) {
    // The loop's thread ends before this object does, so plain pointers do.
    entry.connection = std::make_shared<LinkConnection>(
        loop_, peer, options_.epoch, options_.security, options_.limits,
        LinkConnection::Events{[this, peer](std::string message) {
                                 teller_.note([this, peer, text = std::move(message)]() mutable {
                                   tellControl(peer, text);
                                 });
                               },
                               [this, peer](RawBytes& message) {
                                 return onRecord_ ? onRecord_(peer, message) : Status();
                               },
                               [this, peer](const Status& why) {
                                 teller_.note([this, peer, why] { peerEnded(peer, why); });
                               },
                               [this] { tell(); }});
    entry.connection->setCompanions(peers_[static_cast<std::size_t>(peer)].companions);
    if (peers_[static_cast<std::size_t>(peer)].standsStill) entry.connection->peerStopped(true);
  }
  return entry;
}

Result<std::shared_ptr<LinkConnection>> LinkMesh::Core::use(int peer, std::uint64_t slot) {
  if (peer < 0 || peer >= options_.size || peer == options_.rank) {
    return Status::invalid("rank " + std::to_string(peer) + " is no peer of rank " +
                           std::to_string(options_.rank) + " of " + std::to_string(options_.size));
  }
  const MutexLock lock(mutex_);
  if (stopped_) return shutDown();
  Peer& entry = peers_[static_cast<std::size_t>(peer)];
  const std::uint32_t number = laneOf(slot, options_.lanes);
  // Also after the end: the connection knows what came before it.
  if (!entry.end.ok() && !entry.lanes[number].connection) return entry.end;
  Lane& lane = laneLocked(peer, number);
  if (lane.state == LaneState::kIdle && entry.end.ok()) {
    if (!entry.introduced) {
      return Status(Code::kNotInitialised,
                    "the addresses of rank " + std::to_string(peer) + " are not known yet")
          .withRank(peer);
    }
    lane.state = LaneState::kDialling;
    loop_->post([this, peer, number] { dial(peer, number); });
  }
  return lane.connection;
}

void LinkMesh::Core::peerEnded(int peer, Status why) {
  std::vector<std::shared_ptr<LinkConnection>> connections;
  {
    const MutexLock lock(mutex_);
    Peer& entry = peers_[static_cast<std::size_t>(peer)];
    if (!entry.end.ok()) return;
    if (why.rank() < 0) {
      const std::string who = "rank " + std::to_string(peer) + " on " + entry.card.host;
      why = Status(why.code(), who + ": " + why.message()).withRank(peer, entry.card.host);
    }
    entry.end = why;
    for (Lane& lane : entry.lanes) {
      // After a goodbye on one connection the others hear their own, behind what was sent on them.
      const bool hearsItself = why.code() == Code::kShutdown && lane.state == LaneState::kOpen;
      if (lane.connection && !hearsItself) connections.push_back(lane.connection);
    }
  }
  logDebug("the connection with rank " + std::to_string(peer) + " has ended: " + why.message());
  loop_->post([this, peer] { cancelDials(peer); });
  for (const auto& connection : connections) connection->fail(why);
  teller_.note([this, peer, why] { tellEnd(peer, why); });
  tell();
}

void LinkMesh::Core::tellControl(int peer, std::string& message) {
  ControlCallback callback;
  {
    const MutexLock lock(mutex_);
    if (!stopped_) callback = onControl_;
  }
  if (callback) callback(peer, message);
}

void LinkMesh::Core::tellEnd(int peer, const Status& why) {
  EndCallback callback;
  {
    const MutexLock lock(mutex_);
    if (!stopped_) callback = onPeerEnd_;
  }
  if (callback) callback(peer, why);
}

void LinkMesh::Core::tell() {
  if (loop_->drives()) return teller_.tell();
  loop_->post([this] { teller_.tell(); });
}

void LinkMesh::Core::cancelDials(int peer) {
  const MutexLock lock(mutex_);
  for (Lane& lane : peers_[static_cast<std::size_t>(peer)].lanes) {
    if (lane.dialer) std::exchange(lane.dialer, nullptr)->cancel();
  }
}

void LinkMesh::Core::drop(int peer, const Status& why) {
  if (peer < 0 || peer >= options_.size) return;
  peerEnded(peer, why);
}

void LinkMesh::Core::peerStopped(int peer, bool stopped) {
  if (peer < 0 || peer >= options_.size) return;
  const MutexLock lock(mutex_);
  Peer& entry = peers_[static_cast<std::size_t>(peer)];
  entry.standsStill = stopped;
  for (Lane& lane : entry.lanes) {
    if (lane.connection) lane.connection->peerStopped(stopped);
  }
}

std::uint64_t LinkMesh::Core::heldBytes() {
  const MutexLock lock(mutex_);
  std::uint64_t held = 0;
  for (const Peer& peer : peers_) {
    for (const Lane& lane : peer.lanes) {
      if (lane.connection) held += lane.connection->heldBytes();
    }
  }
  return held;
}

void LinkMesh::Core::onControl(ControlCallback callback) {
  const MutexLock lock(mutex_);
  onControl_ = std::move(callback);
}

void LinkMesh::Core::onPeerEnd(EndCallback callback) {
  const MutexLock lock(mutex_);
  onPeerEnd_ = std::move(callback);
}

void LinkMesh::Core::onRecord(RecordCallback callback) {
  const MutexLock lock(mutex_);
  onRecord_ = std::move(callback);
}

void LinkMesh::Core::leaveAll() {
  std::vector<std::shared_ptr<LinkConnection>> connections;
  {
    const MutexLock lock(mutex_);
    for (Peer& peer : peers_) {
      for (Lane& lane : peer.lanes) {
        if (lane.connection) connections.push_back(lane.connection);
      }
    }
  }
  for (const auto& connection : connections) connection->leave();
  const Deadline deadline = Deadline::after(kGoodbyeTime);
  for (const auto& connection : connections) {
    while (!connection->ended() && !deadline.passed()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    connection->fail(shutDown());
  }
}

void LinkMesh::Core::awaitDials() {
  const auto dialling = [this] {
    const MutexLock lock(mutex_);
    return !stopped_ && std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
      return std::any_of(peer.lanes.begin(), peer.lanes.end(),
                         [](const Lane& lane) { return lane.state == LaneState::kDialling; });
    });
  };
  for (const Deadline deadline = Deadline::after(kDialTime); dialling() && !deadline.passed();) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void LinkMesh::Core::stop() {
  // One that ends before its goodbye is taken for the end of this rank.
  awaitDials();
  const Deadline deadline = Deadline::after(kStopTime);
  {
    const MutexLock lock(mutex_);
    if (std::exchange(stopped_, true)) return;
  }
  if (!loop_) return;
  logDebug("says goodbye to the ranks it is connected with");
  loop_->post([self = shared_from_this()] {
    if (self->listener_) self->listener_->close();
    for (int peer = 0; peer < self->options_.size; ++peer) self->cancelDials(peer);
  });
  leaveAll();
  teller_.close();
  if (loop_->stop(deadline)) return;
  // A callback still runs there: what it may use must outlive it.
  static Mutex mutex;
  static std::vector<std::shared_ptr<Core>>& leftBehind = *new std::vector<std::shared_ptr<Core>>();
  const MutexLock lock(mutex);
  leftBehind.push_back(shared_from_this());
}

void LinkMesh::Core::closeAfterFork() {
  if (loop_) loop_->closeAfterFork();
}

// ---- Connecting ranks.

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
