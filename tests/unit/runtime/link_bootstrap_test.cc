// Ranks that another launcher has started exchange values and places through rank 0.
#include "runtime/link_bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "base/fd.h"
#include "runtime/topology.h"
#include "unit/runtime/listening.h"

namespace farandole::runtime {
namespace link_bootstrap_test {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kPatience{20};

Config configOf(int rank, int size, const std::string& job = "job-1") {
  Config config;
  config.rank = rank;
  config.size = size;
  config.machine = rank / 2;
  config.localRank = rank % 2;
  config.host = "host" + std::to_string(rank / 2);
  config.job = job;
  config.secret = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  config.bind = "127.0.0.1";
  return config;
}

Deadline soon() { return Deadline::after(kPatience); }

class MeetingTest : public ::testing::Test {
 protected:
  void meet(int size) {
    auto first = LinkBootstrap::start(configOf(0, size), {}, soon());
    ASSERT_TRUE(first.ok()) << first.status().message();
    ranks_.push_back(std::move(first).value());
    for (int rank = 1; rank < size; ++rank) {
      LinkBootstrap::StoreAddress store;
      store.card = ranks_[0]->card();
      auto joined = LinkBootstrap::start(configOf(rank, size), store, soon());
      ASSERT_TRUE(joined.ok()) << joined.status().message();
      ranks_.push_back(std::move(joined).value());
    }
  }
  LinkBootstrap& at(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

  std::vector<std::unique_ptr<LinkBootstrap>> ranks_;
};

TEST_F(MeetingTest, ValuesReachEverybodyBeforeAndAfter) {
  meet(3);
  std::thread waiting([&] {
    auto value = at(2).get("k", soon());
    ASSERT_TRUE(value.ok()) << value.status().message();
    EXPECT_EQ(*value, "v");
  });
  ASSERT_TRUE(at(1).put("k", "v", soon()).ok());
  waiting.join();
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(at(rank).get("k", soon()).value(), "v");
  EXPECT_THAT(at(2).put("k", "w", soon()).message(), HasSubstr("was already put by rank 1"));
  EXPECT_EQ(at(1).get("never", Deadline::after(std::chrono::milliseconds(50))).status().code(),
            Code::kTimeout);
}

TEST_F(MeetingTest, FenceWaitsForAll) {
  meet(3);
  std::atomic<int> through{0};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      EXPECT_TRUE(at(rank).fence("f", 3, soon()).ok());
      ++through;
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(through.load(), 0);
  EXPECT_TRUE(at(2).fence("f", 3, soon()).ok());
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(through.load(), 2);
}

// A rank that has given up waiting is not counted, not even if it asks again.
TEST_F(MeetingTest, FenceThatTimedOutDoesNotCount) {
  meet(3);
  const auto shortly = [] { return Deadline::after(std::chrono::milliseconds(30)); };
  for (int again = 0; again < 2; ++again) {
    for (const int rank : {0, 1}) {
      const Status status = at(rank).fence("f", 3, shortly());
      EXPECT_EQ(status.code(), Code::kTimeout) << rank;
      EXPECT_THAT(status.message(), HasSubstr("1 of 3 ranks have arrived")) << rank;
    }
  }
  std::thread first([&] { EXPECT_TRUE(at(0).fence("f", 3, soon()).ok()); });
  std::thread second([&] { EXPECT_TRUE(at(1).fence("f", 3, soon()).ok()); });
  EXPECT_TRUE(at(2).fence("f", 3, soon()).ok());
  first.join();
  second.join();
}

TEST_F(MeetingTest, RefusedValuesTakeNoRoom) {
  meet(2);
  const std::string large(256 << 10, 'x');
  ASSERT_TRUE(at(1).put("k", "v", soon()).ok());
  // Together they are more than there is room for.
  for (int i = 0; i < 300; ++i) ASSERT_FALSE(at(0).put("k", large, soon()).ok());
  EXPECT_TRUE(at(1).put("another", large, soon()).ok());
}

// Rank 0 listens at the given address. The others, to which no rank connects, listen on this
// machine only.
TEST_F(MeetingTest, NobodyListensWithoutNeed) {
  Config first = configOf(0, 2);
  first.bind = "127.0.0.3";
  auto zero = LinkBootstrap::start(first, {}, soon());
  ASSERT_TRUE(zero.ok()) << zero.status().message();
  Config second = configOf(1, 2);
  second.bind.clear();
  LinkBootstrap::StoreAddress store;
  store.card = (*zero)->card();
  auto one = LinkBootstrap::start(second, store, soon());
  ASSERT_TRUE(one.ok()) << one.status().message();
  std::vector<std::string> addresses;
  for (transport::LinkAddress address : test::listeningAddresses()) {
    address.port = 1;
    addresses.push_back(address.text());
  }
  EXPECT_THAT(addresses, ::testing::UnorderedElementsAre("127.0.0.3:1", "127.0.0.1:1"));
}

TEST_F(MeetingTest, EverybodyLearnsEverybodysPlace) {
  meet(4);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      auto topology =
          Topology::exchange(at(rank), configOf(rank, 4), 1, "card" + std::to_string(rank), soon());
      ASSERT_TRUE(topology.ok()) << topology.status().message();
      EXPECT_EQ(topology->at(3), (Place{1, 1, "host1", "card3"}));
      EXPECT_EQ(topology->ranksOn(1), (std::vector<std::int32_t>{2, 3}));
      EXPECT_TRUE(topology->sameMachine(0, 1));
      EXPECT_FALSE(topology->sameMachine(1, 2));
      const std::vector<std::int32_t> some{3, 0, 2};
      EXPECT_EQ(topology->machinesOf(some), (std::vector<int>{0, 1, 0}));
    });
  }
  for (auto& thread : threads) thread.join();
}

// There are two machines of two ranks, and one of one.
TEST_F(MeetingTest, RanksOfUnevenMachinesKnowTheirCounterparts) {
  meet(5);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 5; ++rank) {
    threads.emplace_back([&, rank] {
      auto topology = Topology::exchange(at(rank), configOf(rank, 5), 1, "", soon());
      ASSERT_TRUE(topology.ok()) << topology.status().message();
      using Cross = Topology::Cross;
      const Cross expected[] = {{0, 3}, {0, 2}, {1, 3}, {1, 2}, {2, 3}};
      for (int i = 0; i < 5; ++i) EXPECT_EQ(topology->crossOf(i), expected[i]) << i;
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(MeetingTest, AnotherJobIsNotLetIn) {
  meet(2);
  LinkBootstrap::StoreAddress store;
  store.card = at(0).card();
  Config stranger = configOf(1, 2, "job-2");
  auto joined = LinkBootstrap::start(stranger, store, Deadline::after(std::chrono::seconds(2)));
  if (joined.ok()) {
    EXPECT_FALSE((*joined)->put("x", "y", Deadline::after(std::chrono::seconds(2))).ok());
  }
  EXPECT_TRUE(at(1).put("x", "z", soon()).ok());
  EXPECT_EQ(at(0).get("x", soon()).value(), "z");
}

// A TCP socket of this machine, and its port.
struct Socket {
  Socket() : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    socklen_t length = sizeof address;
    EXPECT_EQ(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  }
  int port() const { return ntohs(address.sin_port); }

  UniqueFd fd;
  sockaddr_in address{};
};

TEST_F(MeetingTest, APortThatAConnectionHasIsPassedOver) {
  Socket server;
  ASSERT_EQ(::listen(server.fd.get(), 1), 0);
  Socket client;
  const auto* to = reinterpret_cast<sockaddr*>(&server.address);
  ASSERT_EQ(::connect(client.fd.get(), to, sizeof server.address), 0);
  const LinkBootstrap::StoreAddress store{"127.0.0.1", client.port(), 8};
  for (int rank = 0; rank < 2; ++rank) {
    auto started = LinkBootstrap::start(configOf(rank, 2), store, soon());
    ASSERT_TRUE(started.ok()) << started.status().message();
    ranks_.push_back(std::move(started).value());
  }
  EXPECT_TRUE(at(1).put("k", "v", soon()).ok());
  EXPECT_EQ(at(0).get("k", soon()).value(), "v");
}

// It may be rank 0 of the same job, whose child this is.
TEST_F(MeetingTest, APortThatAServerHasIsNot) {
  Socket server;
  ASSERT_EQ(::listen(server.fd.get(), 1), 0);
  const auto started =
      LinkBootstrap::start(configOf(0, 2), {"127.0.0.1", server.port(), 8}, soon());
  EXPECT_EQ(started.status().code(), Code::kUnavailable);
  EXPECT_THAT(started.status().message(),
              HasSubstr("cannot listen on port " + std::to_string(server.port())));
}

TEST(PlaceTest, NonsenseIsRefused) {
  const Place place{2, 1, "alpha", "card"};
  const std::string bytes = encodePlace(place);
  EXPECT_EQ(decodePlace(bytes).value(), place);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(decodePlace(bytes.substr(0, i)).ok()) << i;
  }
  EXPECT_FALSE(decodePlace(bytes + "x").ok());
}

}  // namespace link_bootstrap_test
}  // namespace farandole::runtime
