// Measures, and claims nothing: run with --gtest_also_run_disabled_tests --gtest_filter='*Speed*'.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "link/link_mesh.h"
#include "unit/link/pair.h"

namespace farandole {
namespace {

using test::Bytes;
using test::Pair;

double microseconds(Duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

class LinkSpeed : public ::testing::TestWithParam<WireSecurity> {};
INSTANTIATE_TEST_SUITE_P(Link, LinkSpeed,
                         ::testing::Values(WireSecurity::kEncrypt, WireSecurity::kIntegrity,
                                           WireSecurity::kHandshake),
                         [](const auto& mode) {
                           return std::string(wireSecurityName(mode.param));
                         });

enum class Wait { kLoop, kPoll, kPollAndRest };

// Like the driver of a communicator.
void waitFor(LinkMesh& mesh, Wait how, const std::atomic<int>& count, int value) {
  while (count.load(std::memory_order_acquire) < value) {
    if (how == Wait::kLoop || !mesh.poll()) std::this_thread::yield();
  }
  if (how == Wait::kPollAndRest) mesh.rest();
}

void pingPong(WireSecurity mode, Wait how, std::size_t bytes, int rounds) {
  Pair pair(mode);
  const auto rank = [&](LinkMesh& mesh, int peer, bool first) {
    Bytes out(bytes, 1);
    Bytes in(bytes);
    std::atomic<int> received{0};
    for (int i = 0; i < rounds; ++i) {
      mesh.recv(peer, 1, in, [&](const Status&) { ++received; });
      if (first) mesh.send(peer, 1, out, [](const Status&) {});
      waitFor(mesh, how, received, i + 1);
      if (!first) mesh.send(peer, 1, out, [](const Status&) {});
    }
  };
  std::thread other([&] { rank(*pair.b, 0, false); });
  const TimePoint start = Clock::now();
  rank(*pair.a, 1, true);
  other.join();
  const char* name = how == Wait::kLoop ? "loop" : how == Wait::kPoll ? "poll" : "poll+rest";
  std::printf("  %-9s %-9s %7zu bytes: %8.1f us per round trip\n", wireSecurityName(mode).data(),
              name, bytes, microseconds(Clock::now() - start) / rounds);
}

TEST_P(LinkSpeed, DISABLED_PingPong) {
  for (const std::size_t bytes : {8u, 4096u, 65536u}) {
    for (const Wait how : {Wait::kLoop, Wait::kPoll, Wait::kPollAndRest}) {
      pingPong(GetParam(), how, bytes, 3000);
    }
  }
}

TEST_P(LinkSpeed, DISABLED_OneWay) {
  for (const std::size_t bytes :
       {std::size_t{256} << 10, std::size_t{1} << 20, std::size_t{16} << 20}) {
    Pair pair(GetParam());
    const Bytes data = test::randomBytes(bytes, 1);
    std::vector<Bytes> places(4, Bytes(bytes));
    const int count = static_cast<int>((std::size_t{1} << 30) / bytes);
    std::atomic<int> received{0};
    std::atomic<int> sent{0};
    TimePoint start;
    for (int i = 0; i < count + 8; ++i) {
      if (i == 8) start = Clock::now();
      pair.b->recv(0, 1, places[static_cast<std::size_t>(i) % 4],
                   [&](const Status&) { ++received; });
      pair.a->send(1, 1, data, [&](const Status&) { ++sent; });
      while (received < i - 2) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    while (received < count + 8 || sent < count + 8) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    const double time = microseconds(Clock::now() - start);
    std::printf("  %-9s %8zu bytes one way: %.2f GB/s\n", wireSecurityName(GetParam()).data(),
                bytes, static_cast<double>(bytes) * count / time / 1000);
  }
}

}  // namespace
}  // namespace farandole
