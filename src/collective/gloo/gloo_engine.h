// What libfarandole_gloo.so and the program that loads it know of each other, beside the table of
// collective/engine_plugin.h.
//
// The library holds Gloo's algorithms and no network: it reaches the other ranks through a GlooPort
// that the program gives it, because connections (and their TLS) belong to one copy of the code.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "transport/link_mesh.h"

namespace farandole::collective::gloo {

// As LinkMesh, which stands behind it.
class GlooPort {
 public:
  virtual ~GlooPort() = default;
  virtual transport::LinkHandle send(int peer, std::uint64_t slot,
                                     std::span<const std::uint8_t> bytes,
                                     transport::LinkCallback done) = 0;
  virtual transport::LinkHandle recv(int peer, std::uint64_t slot, std::span<std::uint8_t> memory,
                                     transport::LinkCallback done) = 0;
  virtual transport::LinkHandle recvAny(std::span<const int> peers, std::uint64_t slot,
                                        std::span<std::uint8_t> memory,
                                        transport::LinkMesh::AnyCallback done) = 0;
  virtual bool cancel(const transport::LinkHandle& handle) = 0;
  virtual void drop(int peer, Status why) = 0;
};

// Gloo's own: a ring (Patarasuk and Yuan, see link/operations.h), or exchanges within ever larger
// groups of members. kAny: Gloo decides.
enum class GlooAlgorithm { kAny, kRing, kBcube };

struct GlooOptions {
  std::shared_ptr<GlooPort> port;
  std::vector<std::int32_t> ranks;  // the global rank of each member
  int me = 0;                       // index in it
  std::uint32_t key = 0;            // the key of the set, 24 bits
  std::function<void()> wake;       // rings the driver; any thread
  // Does what Gloo cannot: uneven parts, Adasum, 16-bit floats, scaled integers, single messages.
  std::unique_ptr<Communicator> other;
  GlooAlgorithm algorithm = GlooAlgorithm::kAny;
  // The longest wait for a message of a rank that lives.
  std::chrono::milliseconds waitLimit = std::chrono::hours(1);
};

}  // namespace farandole::collective::gloo
