// Switchboard: brings the control messages of a mesh to the process sets they belong to.
//
// A message begins with its set's key. A set may be talked to before this rank has made it: such
// messages wait, within a limit. Thread-safe; handlers are called on the mesh's thread, or inside
// attach(), one at a time and in the order of arrival for each set, and must not call back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"

namespace farandole {

class LinkMesh;

class Switchboard {
 public:
  using Handler = std::function<void(int from, std::span<const std::byte> message)>;

  explicit Switchboard(LinkMesh& mesh) : mesh_(mesh) {}

  // Once per key; what has waited is delivered at once.
  void attach(std::uint32_t key, Handler handler);
  // After it no handler of that key runs; what comes for it later is dropped.
  void detach(std::uint32_t key);

  Status send(int rank, std::uint32_t key, std::span<const std::byte> message);
  // A message with room for the key in front: spares a copy.
  static constexpr std::size_t kFront = sizeof(std::uint32_t);
  Status sendFramed(int rank, std::uint32_t key, std::string message);

  // For LinkMesh::onControl. An error: the sender does not keep to the protocol.
  Status deliver(int from, std::string_view message);

 private:
  struct Held {
    int from = 0;
    std::vector<std::byte> message;
  };
  struct Set {
    Handler handler;
    std::vector<Held> held;
  };

  LinkMesh& mesh_;
  std::mutex mutex_;  // held while a handler runs: detach() waits for it
  // Guarded by mutex_.
  std::unordered_map<std::uint32_t, Set> sets_;
  std::unordered_set<std::uint32_t> gone_;
  std::size_t heldBytes_ = 0;
};

}  // namespace farandole
