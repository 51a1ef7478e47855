// LinkMesh::Core: the peers, their lanes and who dials whom. Included by link_mesh.cc and
// mesh_core.cc only.
//
// Who dials: the rank that needs the connection; the higher rank gives the lower one a head start.
// Only a rank that has said its hello can be accepted, so that is what decides when both dial: a
// rank accepts the other's hello and gives up its own attempt, unless it is the lower one and has
// said its own hello already. Then it refuses, and the other one accepts. A rank that was refused
// retries until its deadline; so one direction that works is enough.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "transport/link_dialer.h"
#include "transport/link_mesh.h"
#include "transport/teller.h"

namespace farandole::transport {

class LinkMesh::Core : public std::enable_shared_from_this<Core> {
 public:
  explicit Core(LinkMeshOptions options) : options_(std::move(options)) {}
  Status start();

  const std::string& card() const { return card_; }
  std::uint16_t port() const { return port_; }
  Status introduce(int peer, std::string_view card, const std::string& companions);
  // The connection for a slot, connecting if need be.
  Result<std::shared_ptr<LinkConnection>> use(int peer, std::uint64_t slot);
  void drop(int peer, const Status& why);
  void peerStopped(int peer, bool stopped);
  // Never 0.
  std::uint64_t nextId() { return lastId_.fetch_add(1, std::memory_order_relaxed) + 1; }
  bool poll() { return loop_->poll(); }
  void rest() { loop_->rest(); }
  std::uint64_t heldBytes();
  void stop();
  void closeAfterFork();

  void onControl(ControlCallback callback);
  void onPeerEnd(EndCallback callback);
  void onRecord(RecordCallback callback);

 private:
  enum class LaneState { kIdle, kDialling, kOpen };
  struct Lane {
    LaneState state = LaneState::kIdle;
    std::shared_ptr<LinkConnection> connection;
    std::shared_ptr<LinkDialer> dialer;  // used by the loop's thread only
  };
  struct Peer {
    bool introduced = false;
    LinkCard card;
    std::string companions;  // see LinkConnection::setCompanions
    std::vector<Lane> lanes;
    bool standsStill = false;
    Status end;  // not ok once it has ended
  };

  Lane& laneLocked(int peer, std::uint32_t lane) REQUIRES(mutex_);
  void dial(int peer, std::uint32_t lane);
  void dialled(int peer, std::uint32_t lane, Result<Established> result);
  LinkVerdict judge(const LinkHello& hello);
  LinkVerdict compare(const LinkHello& hello) const;
  void admitted(Established established);
  void peerEnded(int peer, Status why);
  void cancelDials(int peer);
  // Until no connection is being made, for a moment at most.
  void awaitDials();
  void leaveAll();
  void tellControl(int peer, std::string& message);
  void tellEnd(int peer, const Status& why);
  // Here if this thread may, else on the loop's.
  void tell();

  const LinkMeshOptions options_;
  std::shared_ptr<LinkLoop> loop_;
  std::unique_ptr<TlsContext> tls_;
  std::shared_ptr<LinkListener> listener_;
  std::uint16_t port_ = 0;
  std::string card_;

  Teller teller_;
  std::atomic<std::uint64_t> lastId_{0};

  Mutex mutex_;
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::vector<Peer> peers_ GUARDED_BY(mutex_);
  ControlCallback onControl_ GUARDED_BY(mutex_);
  EndCallback onPeerEnd_ GUARDED_BY(mutex_);
  // Set before there are connections, and never again.
  RecordCallback onRecord_;
};

}  // namespace farandole::transport
