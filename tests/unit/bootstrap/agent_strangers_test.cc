// Those who should not be at the agent's socket, and ranks that go mad after they were let in.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "bootstrap/admission.h"
#include "bootstrap/agent_client.h"
#include "bootstrap/agent_server.h"
#include "bootstrap/unix_socket.h"
#include "bootstrap/wire.h"
#include "unit/bootstrap/children.h"

namespace farandole::bootstrap {
namespace agent_strangers_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Children;
using test::kJob;
using test::kSecret;
using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

Deadline soon() { return Deadline::after(seconds(20)); }

std::unique_ptr<AgentServer> serve(int size) {
  Result<std::unique_ptr<AgentServer>> server = AgentServer::start({kJob, kSecret, size, "alpha"});
  EXPECT_TRUE(server.ok()) << server.status().message();
  return std::move(server).value();
}

Result<std::unique_ptr<AgentClient>> join(const std::string& address, int rank, int size) {
  return AgentClient::connect(address, kJob, kSecret, rank, size, soon());
}

UniqueFd stranger(const std::string& address) {
  Result<UniqueFd> fd = connectAbstract(address.substr(1), SOCK_STREAM, soon());
  EXPECT_TRUE(fd.ok()) << fd.status().message();
  return std::move(fd).value();
}

// True once the other side has hung up.
bool hungUp(int fd) {
  char bytes[4096];
  while (waitReady(fd, POLLIN, soon())) {
    const ssize_t got = ::recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
  }
  return false;
}

TEST(AgentStrangers, GarbageIsHungUpOn) {
  const auto server = serve(1);
  std::mt19937 random(1);
  for (const std::size_t bytes : {88u, 100u, 100000u}) {
    const UniqueFd fd = stranger(server->address());
    std::string garbage(bytes, '\0');
    for (char& byte : garbage) byte = static_cast<char>(random());
    ::send(fd.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    EXPECT_TRUE(hungUp(fd.get())) << bytes;
  }
  EXPECT_TRUE(join(server->address(), 0, 1).ok());
}

TEST(AgentStrangers, AFloodCostsABoundedNumberOfDescriptorsAndDisturbsNoRank) {
  const auto server = serve(2);
  Result<std::unique_ptr<AgentClient>> a = join(server->address(), 0, 2);
  ASSERT_TRUE(a.ok());
  const int before = test::openDescriptors();
  std::atomic<bool> stop{false};
  std::atomic<int> floods{0};
  std::thread flood([&] {
    std::mt19937 random(2);
    while (!stop) {
      std::vector<UniqueFd> fds;
      for (int i = 0; i < 100 && !stop; ++i) {
        Result<UniqueFd> fd = connectAbstract(server->address().substr(1), SOCK_STREAM,
                                              Deadline::after(milliseconds(100)));
        if (!fd.ok()) continue;
        std::string garbage(random() % 200, '\0');
        for (char& byte : garbage) byte = static_cast<char>(random());
        ::send(fd->get(), garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        fds.push_back(std::move(fd).value());
      }
      ++floods;
    }
  });
  int wrong = 0;
  for (int i = 0; i < 200 || floods < 3; ++i) {
    wrong += !(*a)->put("k" + std::to_string(i), "v", soon()).ok();
    wrong += !(*a)->get("k" + std::to_string(i), soon()).ok();
    if (i % 20 == 0) wrong += !join(server->address(), 1, 2).ok();
  }
  stop = true;
  flood.join();
  EXPECT_EQ(wrong, 0);
  // 64 strangers and 2 ranks in the lobby at most, and the rank that came and went.
  EXPECT_LE(test::openDescriptors(), before + 64 + 2 + 1);
}

TEST(AgentStrangers, IdleStrangersDoNotKeepTheDoorShut) {
  const auto server = serve(1);
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 200; ++i) idle.push_back(stranger(server->address()));
  EXPECT_TRUE(join(server->address(), 0, 1).ok());
  EXPECT_TRUE(hungUp(idle.front().get())) << "displaced by later ones";
}

UniqueFd rawRank(const AgentServer& server, int rank, int size) {
  Result<crypto::JobKey> key = crypto::JobKey::make(kJob, kSecret);
  Result<Admission> admission =
      enter(server.address().substr(1), SOCK_STREAM, key.value(), crypto::Purpose::kAgent,
            {rank, size, 0}, "the agent", soon());
  EXPECT_TRUE(admission.ok()) << admission.status().message();
  return std::move(admission->fd);
}

void sendAll(int fd, const std::string& bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  EXPECT_TRUE(sendExactly(fd, {data, bytes.size()}, soon()).ok());
}

TEST(AgentStrangers, ARankThatGoesMadIsDroppedAlone) {
  const auto server = serve(2);
  Result<std::unique_ptr<AgentClient>> good = join(server->address(), 0, 2);
  ASSERT_TRUE(good.ok());
  const std::string cases[] = {
      std::string(100, 'x'),                                    // no frame
      wire::encodeAnswer(1, Status(), ""),                      // not for a rank to say
      wire::encodeRankEnd({0, "alpha", true, 9, ""}),           // nor this
      wire::encodeGet(1, std::string(wire::kMaxKey + 1, 'k')),  // too long
      wire::encodeGet(1, ""),                                   // no key
  };
  for (const std::string& bytes : cases) {
    const UniqueFd mad = rawRank(*server, 1, 2);
    sendAll(mad.get(), bytes);
    EXPECT_TRUE(hungUp(mad.get()));
  }
  EXPECT_TRUE((*good)->fence("alone", 1, soon()).ok());
  EXPECT_TRUE(join(server->address(), 1, 2).ok());
}

TEST(AgentStrangers, ARankThatNeverReadsDoesNotBlockTheOthers) {
  const auto server = serve(2);
  Result<std::unique_ptr<AgentClient>> good = join(server->address(), 0, 2);
  ASSERT_TRUE(good.ok());
  ASSERT_TRUE((*good)->put("big", std::string(wire::kMaxValue, 'v'), soon()).ok());
  const UniqueFd lazy = rawRank(*server, 1, 2);
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::string get = wire::encodeGet(i, "big");
    // The agent stops reading from it at some point; then the socket is full.
    if (::send(lazy.get(), get.data(), get.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
  }
  for (int i = 0; i < 50; ++i) ASSERT_TRUE((*good)->get("big", soon()).ok());
}

TEST(AgentStrangers, AnotherUsersProcessIsRefusedEvenWithTheSecret) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become someone else";
  Children children(1, [](int, const std::string& address) -> std::string {
    if (::setuid(kNobody) != 0) return "cannot become nobody";
    const Status status = join(address, 0, 1).status();
    if (status.ok()) return "was let in";
    // The client itself does not trust an agent of another user.
    if (status.message().find("belongs to user 0") == std::string::npos) return status.message();
    // And the agent hangs up before it has said anything.
    Result<UniqueFd> fd = connectAbstract(address.substr(1), SOCK_STREAM, soon());
    if (!fd.ok()) return fd.status().message();
    char byte = 0;
    if (!waitReady(fd->get(), POLLIN, soon())) return "was kept waiting";
    return ::recv(fd->get(), &byte, 1, MSG_DONTWAIT) == 0 ? "" : "was greeted";
  });
  const auto server = serve(1);
  children.go(server->address());
  EXPECT_EQ(test::failures(children.results(seconds(30))), "");
  EXPECT_FALSE(server->reports()[0].connected);
  EXPECT_TRUE(join(server->address(), 0, 1).ok());
}

TEST(AgentStrangers, AnotherUsersAgentIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become someone else";
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read(ends[0]);
  UniqueFd write(ends[1]);
  Children children(1, [&](int, const std::string&) -> std::string {
    if (::setuid(kNobody) != 0) return "cannot become nobody";
    const auto server = serve(1);
    const std::string address = server->address();
    [[maybe_unused]] const ssize_t written = ::write(write.get(), address.data(), address.size());
    ::sleep(60);
    return "was not ended";
  });
  children.go("now");
  char address[128] = {};
  const ssize_t length = ::read(read.get(), address, sizeof address);
  ASSERT_GT(length, 0);
  const Status status = join({address, static_cast<std::size_t>(length)}, 0, 1).status();
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_THAT(status.message(), HasSubstr("belongs to user 65534"));
}

}  // namespace agent_strangers_test
}  // namespace farandole::bootstrap
