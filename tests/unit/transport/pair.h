// Meshes for tests: ranks of one job in this process, and waiting for what they do.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "transport/link_mesh.h"

namespace farandole::test {

inline constexpr char kSecret[] =
    "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
inline constexpr char kOtherSecret[] =
    "10112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
inline constexpr std::chrono::seconds kWaitLimit{20};

using Bytes = std::vector<std::uint8_t>;

inline Bytes randomBytes(std::size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; i += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + i, &word, std::min(sizeof word, count - i));
  }
  return bytes;
}

// A status that comes once.
class Outcome {
 public:
  transport::LinkCallback callback() {
    return [state = state_](const Status& status) {
      const std::lock_guard lock(state->mutex);
      EXPECT_FALSE(state->status.has_value()) << "called twice";
      state->status = status;
      state->came.notify_all();
    };
  }
  bool done() const {
    const std::lock_guard lock(state_->mutex);
    return state_->status.has_value();
  }
  // Whether it comes in that time.
  bool comesWithin(Duration limit) const {
    std::unique_lock lock(state_->mutex);
    return state_->came.wait_for(lock, limit, [&] { return state_->status.has_value(); });
  }
  // A test in which it does not come has failed.
  Status wait() const {
    const bool came = comesWithin(kWaitLimit);
    EXPECT_TRUE(came) << "no callback came";
    const std::lock_guard lock(state_->mutex);
    return state_->status.value_or(Status::internal("no callback came"));
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<Status> status;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

inline transport::LinkMeshOptions options(
    int rank, int size, transport::WireSecurity security = transport::WireSecurity::kEncrypt) {
  transport::LinkMeshOptions options;
  options.job = "job-1";
  options.secretHex = kSecret;
  options.rank = rank;
  options.size = size;
  options.host = "host" + std::to_string(rank);
  options.security = security;
  options.ports.bind = "127.0.0.1";
  return options;
}

inline std::unique_ptr<transport::LinkMesh> startMesh(const transport::LinkMeshOptions& options) {
  Result<std::unique_ptr<transport::LinkMesh>> mesh = transport::LinkMesh::start(options);
  EXPECT_TRUE(mesh.ok()) << mesh.status().message();
  return mesh.ok() ? std::move(mesh).value() : nullptr;
}

// Two ranks that know each other.
struct Pair {
  std::unique_ptr<transport::LinkMesh> a;
  std::unique_ptr<transport::LinkMesh> b;

  explicit Pair(transport::WireSecurity security = transport::WireSecurity::kEncrypt)
      : Pair(options(0, 2, security), options(1, 2, security)) {}
  Pair(const transport::LinkMeshOptions& first, const transport::LinkMeshOptions& second)
      : a(startMesh(first)), b(startMesh(second)) {
    EXPECT_TRUE(a->introduce(1, b->card()).ok());
    EXPECT_TRUE(b->introduce(0, a->card()).ok());
  }
};

inline transport::LinkCard cardAt(const std::string& host,
                                  const std::vector<std::string>& addresses) {
  transport::LinkCard card{host, {}};
  for (const std::string& text : addresses) {
    Result<transport::LinkAddress> address = transport::LinkAddress::parse(text);
    EXPECT_TRUE(address.ok()) << text;
    card.addresses.push_back(address.value());
  }
  return card;
}

// One message from a to b; the first error of the two.
inline Status exchange(transport::LinkMesh& from, int fromRank, transport::LinkMesh& to, int toRank,
                       std::uint64_t slot, std::size_t bytes) {
  const Bytes data = randomBytes(bytes, static_cast<unsigned>(slot + bytes));
  Bytes received(bytes);
  Outcome sent;
  Outcome got;
  to.recv(fromRank, slot, received, got.callback());
  from.send(toRank, slot, data, sent.callback());
  const Status first = sent.wait();
  const Status second = got.wait();
  if (second.ok() && received != data) return Status::internal("other bytes came");
  return first.ok() ? second : first;
}

}  // namespace farandole::test
