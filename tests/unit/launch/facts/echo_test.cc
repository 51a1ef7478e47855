#include "launch/facts/echo.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "base/fd.h"
#include "bootstrap/unix_socket.h"
#include "launch/facts/echo_wire.h"
#include "launch/facts/tcp_probe.h"

namespace farandole::launch::facts {
namespace echo_test {

using testing::HasSubstr;

Deadline soon() { return Deadline::after(std::chrono::seconds(3)); }
Deadline verySoon() { return Deadline::after(std::chrono::milliseconds(150)); }

// A port that is bound but not listened on: connections to it are refused.
struct SilentPort {
  explicit SilentPort(bool listens) : fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size);
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
    if (listens) ::listen(fd.get(), 8);
    port = ntohs(address.sin_port);
  }
  UniqueFd fd;
  int port = 0;
};

class Echo : public testing::Test {
 protected:
  void SetUp() override {
    secret_ = std::move(makeEchoSecret()).value();
    auto listener = EchoListener::open(secret_, {});
    ASSERT_TRUE(listener.ok()) << listener.status().message();
    listener_ = std::move(*listener);
  }
  std::string secret_;
  std::unique_ptr<EchoListener> listener_;
};

TEST_F(Echo, SmallAndLargeMessagesComeBack) {
  auto times = echoTo("127.0.0.1", listener_->port(), secret_, kEchoMostBytes, soon());
  ASSERT_TRUE(times.ok()) << times.status().message();
  EXPECT_EQ(times->address, "127.0.0.1");
  EXPECT_GT(times->roundTripMicroseconds, 0);
  EXPECT_GT(times->largeMicroseconds, 0);
}

TEST_F(Echo, TellsWhomItIsThatWasReached) {
  auto other = EchoListener::open(secret_, {}, "7");
  ASSERT_TRUE(other.ok()) << other.status().message();
  auto times = echoTo("127.0.0.1", (*other)->port(), secret_, 1000, soon());
  ASSERT_TRUE(times.ok()) << times.status().message();
  EXPECT_EQ(times->who, "7");
}

TEST_F(Echo, AlsoOverIpv6) {
  if (probeTcp("::1", listener_->port(), soon()).state != TcpState::kOpen) {
    GTEST_SKIP() << "no IPv6 on this machine";
  }
  EXPECT_TRUE(echoTo("::1", listener_->port(), secret_, 1000, soon()).ok());
}

TEST_F(Echo, ManyAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      if (echoTo("127.0.0.1", listener_->port(), secret_, kEchoLargeBytes, soon()).ok()) ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 16);
}

TEST_F(Echo, AStrangerGetsNothing) {
  const std::string other = std::move(makeEchoSecret()).value();
  auto times = echoTo("127.0.0.1", listener_->port(), other, 1000, soon());
  ASSERT_FALSE(times.ok());
  EXPECT_THAT(times.status().message(), HasSubstr("somebody else"));
  EXPECT_TRUE(echoTo("127.0.0.1", listener_->port(), secret_, 1000, soon()).ok());
}

TEST_F(Echo, AVisitorThatSaysNothingDoesNotHoldUpOthers) {
  const TcpProbe silent = probeTcp("127.0.0.1", listener_->port(), soon());
  ASSERT_EQ(silent.state, TcpState::kOpen);
  EXPECT_TRUE(echoTo("127.0.0.1", listener_->port(), secret_, 1000, soon()).ok());
}

TEST_F(Echo, ALengthBeyondTheLimitEndsTheVisit) {
  const TcpProbe probe = probeTcp("127.0.0.1", listener_->port(), soon());
  auto key = crypto::JobKey::make(kEchoJob, secret_);
  ASSERT_TRUE(crypto::visit(probe.fd.get(), *key, kEchoPurpose, crypto::Claim{}, soon()).ok());
  const std::uint8_t huge[4] = {0xff, 0xff, 0xff, 0xff};
  ASSERT_TRUE(sendExactly(probe.fd.get(), huge, soon()).ok());
  std::uint8_t byte[1];
  EXPECT_EQ(receiveExactly(probe.fd.get(), byte, soon()).code(), Code::kUnavailable);
}

TEST_F(Echo, APortOfTheRangeIsUsedAndAFullRangeIsAnError) {
  const int port = listener_->port();
  auto taken = EchoListener::open(secret_, {port, port});
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.status().message(), HasSubstr(std::to_string(port) + "-"));
  listener_.reset();
  auto free = EchoListener::open(secret_, {port, port});
  ASSERT_TRUE(free.ok()) << free.status().message();
  EXPECT_EQ((*free)->port(), port);
}

TEST(EchoFailures, RefusedAndMuteAreToldApart) {
  const std::string secret = std::move(makeEchoSecret()).value();
  const SilentPort refusing(false);
  auto refused = echoTo("127.0.0.1", refusing.port, secret, 100, soon());
  EXPECT_EQ(refused.status().code(), Code::kUnavailable);
  EXPECT_THAT(refused.status().message(), HasSubstr("refused"));
  const SilentPort mute(true);
  auto silent = echoTo("127.0.0.1", mute.port, secret, 100, verySoon());
  EXPECT_EQ(silent.status().code(), Code::kTimeout);
}

// A server that knows the secret but lets large messages get lost, as a path with a smaller MTU.
TEST(EchoFailures, LargeMessagesThatGetLostAreTold) {
  const std::string secret = std::move(makeEchoSecret()).value();
  const SilentPort place(true);
  std::thread server([&] {
    UniqueFd fd(::accept4(place.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    auto key = crypto::JobKey::make(kEchoJob, secret);
    crypto::ListenerHandshake handshake(*key, kEchoPurpose);
    ASSERT_TRUE(handshake.greet(fd.get()).ok());
    for (;;) {
      auto known = handshake.listen(fd.get());
      if (!known.ok() || *known) break;
      waitReady(fd.get(), POLLIN, soon());
    }
    ASSERT_TRUE(handshake.conclude(fd.get(), Code::kOk, "").ok());
    std::uint8_t message[68];
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(receiveExactly(fd.get(), message, soon()).ok());
      ASSERT_TRUE(sendExactly(fd.get(), std::span(message).subspan(4), soon()).ok());
    }
    std::vector<std::uint8_t> rest(kEchoLargeBytes + 4);
    (void)receiveExactly(fd.get(), rest, soon());
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  });
  auto times = echoTo("127.0.0.1", place.port, secret, kEchoLargeBytes, verySoon());
  server.join();
  EXPECT_EQ(times.status().code(), Code::kTimeout);
  EXPECT_THAT(times.status().message(), HasSubstr("MTU"));
}

TEST(TcpProbe, TellsThePossibilitiesApart) {
  const SilentPort open(true);
  const SilentPort refusing(false);
  EXPECT_EQ(probeTcp("127.0.0.1", open.port, soon()).state, TcpState::kOpen);
  EXPECT_EQ(probeTcp("127.0.0.1", refusing.port, soon()).state, TcpState::kRefused);
  EXPECT_EQ(probeTcp("localhost", open.port, soon()).address, "127.0.0.1");
  EXPECT_EQ(probeTcp("no-such-host.invalid", 22, soon()).state, TcpState::kNameUnknown);
}

// Its queue is full: connect gets no answer, as behind a firewall that drops.
TEST(TcpProbe, NoAnswerIsFiltered) {
  const SilentPort full(false);
  ::listen(full.fd.get(), 0);
  std::vector<TcpProbe> held;
  for (int i = 0; i < 3; ++i) held.push_back(probeTcp("127.0.0.1", full.port, verySoon()));
  EXPECT_EQ(held.back().state, TcpState::kFiltered);
}

TEST(PortRange, Parsed) {
  EXPECT_EQ(parsePortRange("29400-29431")->last, 29431);
  EXPECT_EQ(parsePortRange("29400")->last, 29400);
  for (const char* text : {"", "-", "a-b", "2-1", "0-5", "1-65536", "1-2-3", "1 - 2"}) {
    EXPECT_FALSE(parsePortRange(text).ok()) << text;
  }
}

}  // namespace echo_test
}  // namespace farandole::launch::facts
