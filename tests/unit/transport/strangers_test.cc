// Those who should not be at a rank's port, and ranks that do not fit together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "transport/link_mesh.h"
#include "unit/transport/pair.h"
#include "unit/transport/proxy.h"

namespace farandole::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Bytes;
using test::exchange;
using test::options;
using test::Outcome;
using test::Pair;
using test::randomBytes;
using test::startMesh;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// What rank 0 of `first` hears when it sends to rank 1, which is `second`.
Status sendFails(const LinkMeshOptions& first, const LinkMeshOptions& second,
                 Outcome* atSecond = nullptr) {
  const auto a = startMesh(first);
  const auto b = startMesh(second);
  Outcome ended;
  if (atSecond != nullptr) {
    b->onPeerEnd([callback = ended.callback()](int, const Status& why) { callback(why); });
    *atSecond = ended;
  }
  EXPECT_TRUE(a->introduce(1, b->card()).ok());
  const Bytes data(8);
  Outcome sent;
  a->send(1, 1, data, sent.callback());
  const Status status = sent.wait();
  if (atSecond != nullptr) {
    EXPECT_FALSE(ended.wait().ok());
  }
  return status;
}

TEST(LinkStrangers, AnotherSecretIsRefused) {
  LinkMeshOptions other = options(1, 2);
  other.secretHex = test::kOtherSecret;
  const Status status = sendFails(options(0, 2), other);
  EXPECT_EQ(status.code(), Code::kMismatch) << status.message();
  EXPECT_EQ(status.rank(), 1);
  EXPECT_EQ(status.host(), "host1");
  EXPECT_THAT(status.message(), HasSubstr("cannot connect to rank 1 on host1: 127.0.0.1:"));
  EXPECT_THAT(status.message(), HasSubstr("another job's secret"));
}

TEST(LinkStrangers, AnotherJobWithTheSameSecretIsRefused) {
  LinkMeshOptions other = options(1, 2);
  other.job = "job-2";
  EXPECT_EQ(sendFails(options(0, 2), other).code(), Code::kMismatch);
}

TEST(LinkStrangers, AnotherRankThanTheOneThatWasMeantIsRefused) {
  const Status status = sendFails(options(0, 3), options(2, 3));
  EXPECT_EQ(status.code(), Code::kMismatch) << status.message();
}

TEST(LinkStrangers, ARankThatPretendsToBeItsPeerIsRefused) {
  // Rank 1 connects to rank 1.
  const auto a = startMesh(options(0, 2));
  const auto impostor = startMesh(options(1, 2));
  const auto b = startMesh(options(1, 2));
  ASSERT_TRUE(impostor->introduce(0, b->card()).ok());
  const Bytes data(8);
  Outcome sent;
  impostor->send(0, 1, data, sent.callback());
  EXPECT_EQ(sent.wait().code(), Code::kMismatch);
}

TEST(LinkStrangers, AnotherWireSecurityIsAClearErrorOnBothSides) {
  Outcome atSecond;
  const Status status = sendFails(options(0, 2, WireSecurity::kEncrypt),
                                  options(1, 2, WireSecurity::kIntegrity), &atSecond);
  for (const Status& side : {status, atSecond.wait()}) {
    EXPECT_EQ(side.code(), Code::kMismatch);
    EXPECT_THAT(side.message(), HasSubstr("rank 0 uses wire security encrypt, rank 1 integrity"));
    EXPECT_THAT(side.message(), HasSubstr("--wire-security"));
  }
  EXPECT_EQ(status.rank(), 1);
  EXPECT_EQ(atSecond.wait().rank(), 0);
}

TEST(LinkStrangers, AnotherSizeIsAClearErrorOnBothSides) {
  Outcome atSecond;
  const Status status = sendFails(options(0, 2), options(1, 3), &atSecond);
  EXPECT_THAT(status.message(), HasSubstr("rank 0 believes in 2 ranks, rank 1 in 3"));
  EXPECT_EQ(atSecond.wait().code(), Code::kMismatch);
}

TEST(LinkStrangers, AnOldEpochIsRefusedAndDoesNotHarmTheNewOne) {
  LinkMeshOptions straggler = options(0, 2);
  straggler.epoch = 1;
  LinkMeshOptions survivor = options(1, 2);
  survivor.epoch = 2;
  const auto old = startMesh(straggler);
  straggler.epoch = 2;
  Pair pair(straggler, survivor);
  ASSERT_TRUE(old->introduce(1, pair.b->card()).ok());
  const Bytes data(8);
  Outcome sent;
  old->send(1, 1, data, sent.callback());
  EXPECT_THAT(sent.wait().message(), HasSubstr("rank 0 is in epoch 1, rank 1 in epoch 2"));
  EXPECT_EQ(sent.wait().code(), Code::kMismatch);
  EXPECT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 1000).ok());
}

TEST(LinkStrangers, GarbageIsHungUpOn) {
  Pair pair;
  for (const std::size_t bytes : {1u, 5u, 100u, 100000u}) {
    const UniqueFd fd = test::connectPlain(pair.b->port());
    Bytes garbage = randomBytes(bytes, static_cast<unsigned>(bytes));
    garbage[0] = 'G';
    [[maybe_unused]] const ssize_t sent =
        ::send(fd.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    if (bytes < 5) continue;  // might still become a record
    EXPECT_TRUE(test::hungUp(fd.get(), 4000)) << bytes;
  }
  EXPECT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 1000).ok());
}

TEST(LinkStrangers, AHalfHandshakeEndsAtItsDeadline) {
  LinkMeshOptions impatient = options(1, 2);
  impatient.limits.handshake = milliseconds(1000);
  Pair pair(options(0, 2), impatient);
  // A record header that promises a ClientHello that never comes; and nothing at all.
  const UniqueFd half = test::connectPlain(pair.b->port());
  const std::uint8_t header[] = {0x16, 0x03, 0x01, 0x01, 0x00, 0x01};
  ASSERT_EQ(::send(half.get(), header, sizeof header, MSG_NOSIGNAL), ssize_t{sizeof header});
  const UniqueFd silent = test::connectPlain(pair.b->port());
  EXPECT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 1000).ok());
  EXPECT_FALSE(test::hungUp(half.get(), 600));
  EXPECT_TRUE(test::hungUp(half.get(), 4000));
  EXPECT_TRUE(test::hungUp(silent.get(), 1000));
}

TEST(LinkStrangers, AThousandSilentConnectionsCostLittleAndDisturbNobody) {
  test::allowDescriptors(4096);
  Pair pair(options(0, 3), options(1, 3));
  ASSERT_TRUE(exchange(*pair.a, 0, *pair.b, 1, 1, 1000).ok());
  const int descriptors = test::openDescriptors();
  const long memory = test::residentKiB();
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  Status trouble;
  std::thread talk([&] {
    for (std::uint64_t slot = 100; !stop && trouble.ok(); ++slot) {
      trouble = exchange(*pair.a, 0, *pair.b, 1, slot, 100000);
      ++rounds;
    }
  });
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 1000; ++i) {
    strangers.push_back(test::connectPlain(pair.b->port()));
    ASSERT_TRUE(strangers.back()) << i;
  }
  // The others' ends are in this process too.
  for (int i = 0; i < 100 && test::openDescriptors() > descriptors + 1000 + 70; ++i) {
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_LE(test::openDescriptors(), descriptors + 1000 + 70);
  // The talk goes on beside them.
  const int before = rounds;
  const Deadline deadline = Deadline::after(test::kWaitLimit);
  while (rounds < before + 5 && !deadline.passed()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_LT(test::residentKiB(), memory + 8192);
  stop = true;
  talk.join();
  EXPECT_TRUE(trouble.ok()) << trouble.message();
  EXPECT_GE(rounds.load(), before + 5);
  // And a newcomer gets in while they are still there.
  const auto late = startMesh(options(2, 3));
  ASSERT_TRUE(late->introduce(1, pair.b->card()).ok());
  ASSERT_TRUE(pair.b->introduce(2, late->card()).ok());
  EXPECT_TRUE(exchange(*late, 2, *pair.b, 1, 1, 10).ok());
}

}  // namespace
}  // namespace farandole::transport
