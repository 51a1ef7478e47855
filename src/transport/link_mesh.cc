#include "transport/link_mesh.h"

#include <pthread.h>

#include <atomic>
#include <utility>

#include "transport/any_receive.h"
#include "transport/held_sends.h"
#include "transport/mesh_core.h"

namespace farandole::transport {
namespace {

std::atomic<unsigned> forks{0};

// How often this process and its ancestors have forked since the first call: a mesh belongs to the
// process that made it, and a child does not touch it. It costs a load, where getpid() is a system
// call.
unsigned forkCount() {
  [[maybe_unused]] static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return forks.load(std::memory_order_relaxed);
}

constexpr int kMaxLanes = 64;

Status forked() {
  return Status(Code::kForked, "this is a forked child of a rank: it cannot use its connections");
}

Status check(const LinkMeshOptions& options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    return Status::invalid("rank " + std::to_string(options.rank) + " of " +
                           std::to_string(options.size) + " ranks does not exist");
  }
  if (options.lanes < 1 || options.lanes > kMaxLanes) {
    return Status::invalid("connections per peer: expected 1 to " + std::to_string(kMaxLanes) +
                           ", not " + std::to_string(options.lanes));
  }
  FARANDOLE_RETURN_IF_ERROR(checkCongestion(options.limits.congestion));
  // A quarter of the window may be owed; the rest must hold the largest message that goes unasked.
  if (options.limits.window < 4 * kEagerBytes) {
    return Status::invalid("the window of a connection has at least " +
                           std::to_string(4 * kEagerBytes) + " bytes");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<LinkMesh>> LinkMesh::start(const LinkMeshOptions& options) {
  FARANDOLE_RETURN_IF_ERROR(check(options));
  const auto core = std::make_shared<Core>(options);
  if (Status status = core->start(); !status.ok()) {
    core->stop();
    return status;
  }
  return std::unique_ptr<LinkMesh>(new LinkMesh(core));
}

LinkMesh::LinkMesh(std::shared_ptr<Core> core) : core_(std::move(core)), owner_(forkCount()) {}

LinkMesh::~LinkMesh() {
  if (forkCount() != owner_) {
    forgetAfterFork();
  } else if (core_) {
    stop();
  }
}

void LinkMesh::forgetAfterFork() {
  if (!core_) return;
  core_->closeAfterFork();
  // Not destroyed: its locks and maps may be in any state. Reachable, so that leak checkers see
  // that this is meant.
  static std::atomic<std::shared_ptr<Core>*> letGo{nullptr};
  letGo.store(new std::shared_ptr<Core>(std::move(core_)));
}

std::uint16_t LinkMesh::port() const { return core_ ? core_->port() : 0; }

std::string LinkMesh::card() const { return core_ ? core_->card() : std::string(); }

Status LinkMesh::introduce(int peer, std::string_view card, const std::string& companions) {
  return forkCount() != owner_ ? forked() : core_->introduce(peer, card, companions);
}

std::shared_ptr<LinkConnection> LinkMesh::connectionFor(int peer, std::uint64_t slot,
                                                        const LinkCallback& done) {
  if (forkCount() != owner_) {
    done(forked());
    return nullptr;
  }
  Result<std::shared_ptr<LinkConnection>> connection = core_->use(peer, slot);
  if (!connection.ok()) {
    done(connection.status());
    return nullptr;
  }
  return std::move(connection).value();
}

LinkHandle LinkMesh::send(int peer, std::uint64_t slot, std::span<const std::uint8_t> bytes,
                          LinkCallback done) {
  const auto connection = connectionFor(peer, slot, done);
  if (!connection) return {};
  const LinkHandle handle{peer, slot, core_->nextId(), true, nullptr};
  connection->send(slot, bytes, std::move(done), handle.id);
  return handle;
}

LinkHandle LinkMesh::recv(int peer, std::uint64_t slot, std::span<std::uint8_t> memory,
                          LinkCallback done) {
  const auto connection = connectionFor(peer, slot, done);
  if (!connection) return {};
  const LinkHandle handle{peer, slot, core_->nextId(), false, nullptr};
  connection->recv(slot, memory, std::move(done), handle.id);
  return handle;
}

LinkHandle LinkMesh::recvAny(std::span<const int> peers, std::uint64_t slot,
                             std::span<std::uint8_t> memory, AnyCallback done) {
  const auto refuse = [&done](const Status& why, int peer) {
    done(why, peer);
    return LinkHandle{};
  };
  if (forkCount() != owner_) return refuse(forked(), -1);
  if (peers.empty()) return refuse(Status::invalid("a receive from nobody"), -1);
  AnyReceive::Peers connections;
  for (const int peer : peers) {
    Result<std::shared_ptr<LinkConnection>> connection = core_->use(peer, slot);
    if (!connection.ok()) return refuse(connection.status(), peer);
    connections.emplace_back(peer, std::move(connection).value());
  }
  LinkHandle handle{-1, slot, core_->nextId(), false, nullptr};
  handle.any = std::make_shared<AnyReceive>(slot, handle.id, memory, std::move(done));
  handle.any->start(std::move(connections));
  return handle;
}

bool LinkMesh::cancel(const LinkHandle& handle) {
  if (forkCount() != owner_) return false;
  if (handle.any) return handle.any->cancel();
  if (handle.id == 0) return false;
  Result<std::shared_ptr<LinkConnection>> connection = core_->use(handle.peer, handle.slot);
  if (!connection.ok()) return false;
  return handle.sends ? (*connection)->cancelSend(handle.slot, handle.id)
                      : (*connection)->cancelRecv(handle.slot, handle.id);
}

Status LinkMesh::sendControl(int peer, std::string message) {
  if (forkCount() != owner_) return forked();
  Result<std::shared_ptr<LinkConnection>> connection = core_->use(peer, 0);
  if (!connection.ok()) return connection.status();
  return (*connection)->control(std::move(message));
}

Status LinkMesh::sendRecord(int peer, std::string_view front, std::span<const std::byte> body) {
  if (forkCount() != owner_) return forked();
  Result<std::shared_ptr<LinkConnection>> connection = core_->use(peer, 0);
  if (!connection.ok()) return connection.status();
  return (*connection)->record(front, body);
}

void LinkMesh::onControl(ControlCallback callback) {
  if (forkCount() == owner_) core_->onControl(std::move(callback));
}

void LinkMesh::onPeerEnd(EndCallback callback) {
  if (forkCount() == owner_) core_->onPeerEnd(std::move(callback));
}

void LinkMesh::onRecord(RecordCallback callback) {
  if (forkCount() == owner_) core_->onRecord(std::move(callback));
}

void LinkMesh::peerStopped(int peer, bool stopped) {
  if (forkCount() == owner_) core_->peerStopped(peer, stopped);
}

void LinkMesh::drop(int peer, Status why) {
  if (forkCount() == owner_) core_->drop(peer, why);
}

bool LinkMesh::poll() { return forkCount() == owner_ && core_->poll(); }

void LinkMesh::hold() { HeldSends::begin(); }

void LinkMesh::letGo() { HeldSends::end(); }

void LinkMesh::rest() {
  if (forkCount() == owner_) core_->rest();
}

std::uint64_t LinkMesh::heldBytes() const { return forkCount() == owner_ ? core_->heldBytes() : 0; }

void LinkMesh::stop() {
  if (forkCount() == owner_) core_->stop();
}

}  // namespace farandole::transport
