// A network that alters, repeats and reorders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <random>
#include <thread>

#include "transport/link_mesh.h"
#include "unit/transport/pair.h"
#include "unit/transport/proxy.h"

namespace farandole::transport {
namespace {

using std::chrono::milliseconds;
using test::Bytes;
using test::options;
using test::Outcome;
using test::Proxy;
using test::randomBytes;
using test::startMesh;

// Behind these many bytes of either direction everything is frames.
constexpr std::uint64_t kAfterHandshake = 1500;

// Rank 0 connects to rank 1 through the proxy.
struct ThroughProxy {
  std::unique_ptr<LinkMesh> a;
  std::unique_ptr<LinkMesh> b;
  Proxy proxy;
  Outcome arrived;  // the first control message at b
  Outcome endA;
  Outcome endB;
  std::mutex mutex;
  std::vector<std::string> heard;  // at b

  // connectTime: how long rank 0 tries.
  ThroughProxy(WireSecurity mode, Proxy::Tamper tamper, Duration connectTime = test::kWaitLimit)
      : a(startMesh(impatient(0, mode, connectTime))),
        b(startMesh(impatient(1, mode, connectTime))),
        proxy(b->port(), std::move(tamper)) {
    b->onControl([this, first = arrived.callback()](int, std::string_view message) {
      const std::lock_guard lock(mutex);
      if (heard.empty()) first({});
      heard.emplace_back(message);
    });
    a->onPeerEnd([end = endA.callback()](int, const Status& why) { end(why); });
    b->onPeerEnd([end = endB.callback()](int, const Status& why) { end(why); });
    EXPECT_TRUE(a->introduce(1, encodeLinkCard(test::cardAt("host1", {proxy.address()}))).ok());
  }
  ~ThroughProxy() {
    a->stop();
    b->stop();
  }
  static LinkMeshOptions impatient(int rank, WireSecurity mode, Duration connectTime) {
    LinkMeshOptions made = options(rank, 2, mode);
    made.limits.handshake = std::min<Duration>(connectTime, milliseconds(3000));
    made.limits.heartbeat = milliseconds(100);
    made.limits.silence = milliseconds(1500);
    made.connectTime = connectTime;
    return made;
  }
};

class Tampered : public ::testing::TestWithParam<WireSecurity> {};
INSTANTIATE_TEST_SUITE_P(Link, Tampered,
                         ::testing::Values(WireSecurity::kEncrypt, WireSecurity::kIntegrity),
                         [](const auto& mode) {
                           return std::string(wireSecurityName(mode.param));
                         });

// A length that grew makes the receiver wait for bytes that do not come: then it is silence.
const auto kNoticed = ::testing::AnyOf(Code::kMismatch, Code::kPeerLost);

// Exchanges two messages while one bit is flipped; never other bytes than were sent.
void flipOneBit(WireSecurity mode, bool forward, std::uint64_t position, int bit) {
  SCOPED_TRACE((forward ? "forward " : "backward ") + std::to_string(position));
  constexpr std::size_t kBytes = 200000;
  // They outlive the ranks, which may still send when there is nothing more to wait for.
  const Bytes fromA = randomBytes(kBytes, 1);
  const Bytes fromB = randomBytes(kBytes, 2);
  Bytes atA(kBytes);
  Bytes atB(kBytes);
  std::atomic<bool> flipped{false};
  // A handshake that is damaged may never end: nobody waits long for it.
  const bool early = position <= kAfterHandshake;
  ThroughProxy ranks(
      mode,
      [&](bool direction, std::uint64_t offset, Bytes& bytes) {
        if (direction != forward || position < offset || position >= offset + bytes.size()) return;
        if (!flipped.exchange(true)) {
          bytes[position - offset] ^= static_cast<std::uint8_t>(1 << bit);
        }
      },
      early ? milliseconds(1000) : Duration(test::kWaitLimit));
  Outcome sentA;
  Outcome gotA;
  Outcome sentB;
  Outcome gotB;
  if (!ranks.a->sendControl(1, "go").ok()) return;
  ranks.a->recv(1, 5, atA, gotA.callback());
  ranks.a->send(1, 5, fromA, sentA.callback());
  // Rank 1 does not know where rank 0 is: it can only use a connection that came.
  if (ranks.arrived.comesWithin(early ? milliseconds(2500) : Duration(test::kWaitLimit))) {
    ranks.b->recv(0, 5, atB, gotB.callback());
    ranks.b->send(0, 5, fromB, sentB.callback());
    const Status atBStatus = gotB.wait();
    EXPECT_TRUE(!atBStatus.ok() || atB == fromA);
    if (position > kAfterHandshake && forward) {
      EXPECT_THAT(atBStatus.code(), kNoticed) << atBStatus.message();
      EXPECT_EQ(ranks.endB.wait().rank(), 0);
    }
  }
  const Status atAStatus = gotA.wait();
  EXPECT_TRUE(!atAStatus.ok() || atA == fromB);
  if (position > kAfterHandshake && !forward) {
    EXPECT_TRUE(flipped);
    EXPECT_THAT(atAStatus.code(), kNoticed) << atAStatus.message();
  }
}

TEST_P(Tampered, AFlippedBitNeverBecomesWrongData) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::uint64_t> early(0, kAfterHandshake);
  std::uniform_int_distribution<std::uint64_t> late(kAfterHandshake + 1, 195000);
  // All at once: they mostly wait.
  std::vector<std::thread> attempts;
  for (int i = 0; i < 12; ++i) {
    const std::uint64_t position = i % 3 == 0 ? early(random) : late(random);
    attempts.emplace_back([i, position] { flipOneBit(GetParam(), i % 2 == 0, position, i % 8); });
  }
  for (std::thread& attempt : attempts) attempt.join();
}

bool isNumber(bool forward, std::uint64_t offset, const Bytes& bytes) {
  return forward && offset > 0 && bytes.size() > 1000 && bytes.size() < 1200;
}

// The control messages "0", "1", … each in a packet of its own; what the network makes of them.
std::vector<std::string> sendNumbers(WireSecurity mode, const Proxy::Tamper& tamper, Status& end) {
  std::atomic<int> passed{0};
  ThroughProxy ranks(mode, [&](bool forward, std::uint64_t offset, Bytes& bytes) {
    const bool number = isNumber(forward, offset, bytes);
    tamper(forward, offset, bytes);
    if (number) ++passed;
  });
  for (int i = 0; i < 8; ++i) {
    if (!ranks.a->sendControl(1, std::to_string(i) + std::string(999, 'x')).ok()) break;
    if (i == 0) {
      EXPECT_TRUE(ranks.arrived.wait().ok());
    }
    // The next one only when the proxy has passed this one on, or the connection is over.
    const Deadline deadline = Deadline::after(test::kWaitLimit);
    while (passed <= i && !ranks.endA.done() && !deadline.passed()) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  end = ranks.endB.wait();
  const std::lock_guard lock(ranks.mutex);
  std::vector<std::string> heard;
  for (const std::string& message : ranks.heard) heard.push_back(message.substr(0, 1));
  return heard;
}

TEST_P(Tampered, ARepeatedFrameEndsTheConnection) {
  int seen = 0;
  Status end;
  const auto heard = sendNumbers(
      GetParam(),
      [&](bool forward, std::uint64_t offset, Bytes& bytes) {
        if (!isNumber(forward, offset, bytes) || ++seen != 4) return;
        const Bytes copy = bytes;
        bytes.insert(bytes.end(), copy.begin(), copy.end());
      },
      end);
  EXPECT_EQ(end.code(), Code::kMismatch) << end.message();
  EXPECT_THAT(heard, ::testing::ElementsAre("0", "1", "2", "3"));
}

TEST_P(Tampered, SwappedFramesEndTheConnection) {
  int seen = 0;
  Bytes held;
  Status end;
  const auto heard = sendNumbers(
      GetParam(),
      [&](bool forward, std::uint64_t offset, Bytes& bytes) {
        if (!isNumber(forward, offset, bytes)) return;
        ++seen;
        if (seen == 4) held.swap(bytes);
        if (seen == 5) bytes.insert(bytes.end(), held.begin(), held.end());
      },
      end);
  EXPECT_EQ(end.code(), Code::kMismatch) << end.message();
  EXPECT_THAT(heard, ::testing::ElementsAre("0", "1", "2"));
}

TEST_P(Tampered, AMissingFrameEndsTheConnection) {
  int seen = 0;
  Status end;
  const auto heard = sendNumbers(
      GetParam(),
      [&](bool forward, std::uint64_t offset, Bytes& bytes) {
        if (isNumber(forward, offset, bytes) && ++seen == 4) bytes.clear();
      },
      end);
  EXPECT_EQ(end.code(), Code::kMismatch) << end.message();
  EXPECT_THAT(heard, ::testing::ElementsAre("0", "1", "2"));
}

class Replayed : public ::testing::TestWithParam<WireSecurity> {};
INSTANTIATE_TEST_SUITE_P(Link, Replayed,
                         ::testing::Values(WireSecurity::kEncrypt, WireSecurity::kIntegrity,
                                           WireSecurity::kHandshake),
                         [](const auto& mode) {
                           return std::string(wireSecurityName(mode.param));
                         });

TEST_P(Replayed, ACaptureIsWorthNothing) {
  Bytes capture;
  std::mutex mutex;
  {
    ThroughProxy ranks(GetParam(), [&](bool forward, std::uint64_t, Bytes& bytes) {
      const std::lock_guard lock(mutex);
      if (forward) capture.insert(capture.end(), bytes.begin(), bytes.end());
    });
    ASSERT_TRUE(ranks.a->sendControl(1, "pay 100").ok());
    ASSERT_TRUE(ranks.arrived.wait().ok());
  }
  // The same rank 1 again, with nobody connected.
  std::atomic<int> heard{0};
  std::atomic<int> ended{0};
  const auto b = startMesh(options(1, 2, GetParam()));
  b->onControl([&](int, std::string_view) { ++heard; });
  b->onPeerEnd([&](int, const Status&) { ++ended; });
  const UniqueFd fd = test::connectPlain(b->port());
  ASSERT_GT(capture.size(), 600u);
  ASSERT_EQ(::send(fd.get(), capture.data(), capture.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(capture.size()));
  EXPECT_TRUE(test::hungUp(fd.get(), 4000));
  EXPECT_EQ(heard, 0);
  EXPECT_EQ(ended, 0);
}

}  // namespace
}  // namespace farandole::transport
