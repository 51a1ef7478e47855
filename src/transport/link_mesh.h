// LinkMesh: the connections of one rank with the other ranks of its job.
//
//     auto mesh = LinkMesh::start(options);           // listens
//     bootstrap.put("e0/link/3", mesh->card(), …);    // every rank
//     mesh->introduce(r, bootstrap.get("e0/link/r")); // every other rank
//     mesh->send(r, slot, bytes, done);
//
// A pair of ranks is connected when either first uses it. Thread-safe. Callbacks are called on the
// loop's thread, inside poll(), or inside the call that completes or fails them; they must not
// block, and the caller must hold no lock that they take. After stop() none is called, unless one
// was blocking. In a fork child every call returns or reports kForked.
//
// A thread that waits for its messages gets them sooner if it does the work itself:
//
//     while (!done && spinning) mesh->poll();
//     mesh->rest();
//     … sleeps on something that its callbacks ring …
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "transport/link_connection.h"
#include "transport/link_listener.h"
#include "transport/wire_security.h"

namespace farandole::transport {

struct LinkMeshOptions {
  std::string job;
  std::string secretHex;
  int rank = 0;
  int size = 1;
  std::string host = "localhost";  // what the messages of other ranks say
  std::uint32_t epoch = 0;
  WireSecurity security = WireSecurity::kEncrypt;
  // Connections per peer; a slot always uses the same one. Control messages use the first.
  int lanes = 1;

  LinkPorts ports;
  std::vector<std::string> advertise;   // instead of what is found
  std::vector<std::string> interfaces;  // only these

  LinkLimits limits;
  Duration connectTime = std::chrono::seconds(30);
  std::size_t halfOpen = 64;  // handshakes in flight on the port
};

class AnyReceive;

// One send or receive, for LinkMesh::cancel().
struct LinkHandle {
  int peer = -1;
  std::uint64_t slot = 0;
  std::uint64_t id = 0;
  bool sends = false;
  std::shared_ptr<AnyReceive> any;
};

class LinkMesh {
 public:
  using AnyCallback = std::function<void(const Status&, int peer)>;
  using ControlCallback = std::function<void(int peer, std::string& message)>;
  using RecordCallback = std::function<Status(int peer, RawBytes& message)>;
  using EndCallback = std::function<void(int peer, const Status&)>;

  static Result<std::unique_ptr<LinkMesh>> start(const LinkMeshOptions& options);
  ~LinkMesh();
  LinkMesh(const LinkMesh&) = delete;
  LinkMesh& operator=(const LinkMesh&) = delete;

  std::uint16_t port() const;
  // What the others need to connect to this rank.
  std::string card() const;
  // companions: who else is lost if that rank's machine is, for people: "ranks 2, 3 run on that
  // host".
  Status introduce(int peer, std::string_view card, const std::string& companions = {});

  // The bytes must stay and not change until the callback. Messages of one slot arrive in order.
  LinkHandle send(int peer, std::uint64_t slot, std::span<const std::uint8_t> bytes,
                  LinkCallback done);
  // The n-th receive of a slot gets the n-th message of that slot, which must have this very size;
  // another size ends the connection (kMismatch).
  LinkHandle recv(int peer, std::uint64_t slot, std::span<std::uint8_t> memory, LinkCallback done);
  // The first message of that slot that any of these peers sends and that no other receive gets; it
  // must have this size. Fails with the first of these peers that has ended, even in good order.
  LinkHandle recvAny(std::span<const int> peers, std::uint64_t slot, std::span<std::uint8_t> memory,
                     AnyCallback done);
  // True: it had not begun, its callback was called with kCancelled (of recvAny: and rank -1), and
  // its memory is left alone. False: it goes on. A receive keeps its place, and the message that
  // belongs to it is thrown away; one from recvAny takes none. A send can be cancelled as long as
  // the other side knows nothing of it and no other send of its slot follows.
  bool cancel(const LinkHandle& handle);
  // Arrive in order, and overtake messages. At most kMaxControl bytes.
  Status sendControl(int peer, std::string message);

  // Ordered with the control messages. At most kMaxControl bytes together.
  Status sendRecord(int peer, std::string_view front, std::span<const std::byte> body);

  // Reads and writes whatever is ready, on this thread, and calls the callbacks of it here. Never
  // waits. True if something was ready. While it is called again and again the loop's thread leaves
  // the open connections to it, and does heartbeats, silence and connecting as ever; three
  // milliseconds without a call, and it takes over. One thread at a time: for a second one, and in
  // a callback, it does nothing.
  bool poll();
  // Polling is over for now: before the thread sleeps, or turns to something else. The loop's
  // thread takes over at once, also what is ready already.
  void rest();

  // What the calling thread sends between these two leaves together; see held_sends.h.
  static void hold();
  static void letGo();

  // These are called on the loop's thread or inside poll(), one at a time, those of a peer in
  // order. Set all before the first use, and before the other ranks get the card. The message may
  // be kept.
  void onControl(ControlCallback callback);
  // Called once per peer. kShutdown: it left in good order; kPeerLost: it did not; kMismatch: it is
  // of another kind, or what came was damaged; kUnavailable: it could not be reached.
  void onPeerEnd(EndCallback callback);
  // Not one at a time: those of two peers may come at once; see LinkConnection::Events.
  void onRecord(RecordCallback callback);

  // The process of that rank stands still, or continues, as another process has seen. Until it
  // continues it is not taken for lost because of its silence.
  void peerStopped(int peer, bool stopped);

  // Ends everything with this peer; afterwards no memory of its sends and receives is touched.
  void drop(int peer, Status why);
  // Bytes of messages that wait here for their receives.
  std::uint64_t heldBytes() const;

  // Says goodbye to everybody, and waits for at most two seconds until they have heard it. Returns
  // within three, whatever they and the callbacks here do.
  void stop();
  // Only in a fork child: closes the descriptors and forgets the rest without touching a lock that
  // the parent's threads may have held. Idempotent.
  void forgetAfterFork();

 private:
  class Core;
  // Null if there is none; then `done` was called with the reason.
  std::shared_ptr<LinkConnection> connectionFor(int peer, std::uint64_t slot,
                                                const LinkCallback& done);
  explicit LinkMesh(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
  unsigned owner_;  // the forkCount() of the process that made it
};

}  // namespace farandole::transport
