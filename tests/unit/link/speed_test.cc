// Measures, and claims nothing: run with --gtest_also_run_disabled_tests --gtest_filter='*Speed*'.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
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
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
      const TimePoint start = Clock::now();
      mesh.recv(peer, 1, in, [&](const Status&) { ++received; });
      if (first) mesh.send(peer, 1, out, [](const Status&) {});
      waitFor(mesh, how, received, i + 1);
      if (!first) mesh.send(peer, 1, out, [](const Status&) {});
      times.push_back(microseconds(Clock::now() - start));
    }
    return times;
  };
  std::thread other([&] { rank(*pair.b, 0, false); });
  std::vector<double> times = rank(*pair.a, 1, true);
  other.join();
  // Of a machine that others use as well the lower quantiles say most.
  std::sort(times.begin(), times.end());
  const auto quantile = [&](double part) {
    return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
  };
  const char* name = how == Wait::kLoop ? "loop" : how == Wait::kPoll ? "poll" : "poll+rest";
  std::printf("  %-9s %-9s %7zu bytes: %7.1f us (tenth), %7.1f us (median) per round trip\n",
              wireSecurityName(mode).data(), name, bytes, quantile(0.1), quantile(0.5));
}

TEST_P(LinkSpeed, DISABLED_PingPong) {
  for (const std::size_t bytes : {8u, 4096u, 65536u}) {
    for (const Wait how : {Wait::kLoop, Wait::kPoll, Wait::kPollAndRest}) {
      pingPong(GetParam(), how, bytes, 3000);
    }
  }
}

// Of all threads of this process, which are both sides.
double processorSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
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
    double processor = 0;
    for (int i = 0; i < count + 8; ++i) {
      if (i == 8) {
        start = Clock::now();
        processor = processorSeconds();
      }
      pair.b->recv(0, 1, places[static_cast<std::size_t>(i) % 4], [&](const Status&) {
        ++received;
        received.notify_one();
      });
      pair.a->send(1, 1, data, [&](const Status&) { ++sent; });
      for (int had = received; had < i - 2; had = received) received.wait(had);
    }
    for (int had = received; had < count + 8; had = received) received.wait(had);
    while (sent < count + 8) std::this_thread::yield();
    const double time = microseconds(Clock::now() - start);
    const double gigabytes = static_cast<double>(bytes) * count / 1e9;
    std::printf("  %-9s %8zu bytes one way: %.2f GB/s, %.2f processor seconds per GB\n",
                wireSecurityName(GetParam()).data(), bytes, gigabytes / (time / 1e6),
                (processorSeconds() - processor) / gigabytes);
  }
}

}  // namespace
}  // namespace farandole
