#include "bench/processors.h"

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/clock.h"
#include "base/futex.h"
#include "bench/statistics.h"
#include "process/cpus.h"

namespace farandole::bench {
namespace {

constexpr int kBlocks = 15;
constexpr std::uint64_t kTripsPerBlock = 100;
// A peer that is not scheduled at all must not hang the bench.
constexpr auto kPeerTimeout = std::chrono::milliseconds(200);

struct alignas(64) Flag {
  std::atomic<std::uint64_t> value{0};
};

// Waits for value; false after the deadline. The clock is read rarely: reading it would be most of
// what is measured.
bool await(const Flag& flag, std::uint64_t value, const Deadline& deadline) {
  for (std::uint32_t turn = 1;; ++turn) {
    if (flag.value.load(std::memory_order_acquire) >= value) return true;
    if (turn % 4096 == 0 && deadline.passed()) return false;
    relax();
  }
}

}  // namespace

std::vector<int> allowedProcessors() {
  std::vector<int> processors = process::affinityCpuSet();
  if (processors.empty()) processors.push_back(0);
  return processors;
}

bool pinThisThread(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

double flagCrossing(int one, int other) {
  if (one == other) return 0;
  Flag there;
  Flag back;
  std::vector<double> crossings;
  const Deadline deadline = Deadline::after(kPeerTimeout);
  std::thread echo([&] {
    pinThisThread(other);
    for (std::uint64_t i = 1; i <= kBlocks * kTripsPerBlock; ++i) {
      if (!await(there, i, deadline)) return;
      back.value.store(i, std::memory_order_release);
    }
  });
  std::thread caller([&] {
    pinThisThread(one);
    std::uint64_t trip = 0;
    for (int block = 0; block < kBlocks; ++block) {
      const std::int64_t begin = nowNanoseconds();
      for (std::uint64_t i = 0; i < kTripsPerBlock; ++i) {
        there.value.store(++trip, std::memory_order_release);
        if (!await(back, trip, deadline)) return;
      }
      const auto nanoseconds = static_cast<double>(nowNanoseconds() - begin);
      crossings.push_back(nanoseconds * 1e-9 / (2.0 * kTripsPerBlock));
    }
  });
  caller.join();
  echo.join();
  return percentile(crossings, 0.5);
}

std::string_view name(Distance distance) {
  switch (distance) {
    case Distance::kNear: return "near";
    case Distance::kFar: return "far";
    case Distance::kMixed: return "mixed";
    case Distance::kSingle: return "single";
  }
  return "?";
}

Distance classify(double before, double after) {
  if (before == 0 || after == 0) return Distance::kSingle;
  const bool nearBefore = before < kNearSeconds;
  const bool nearAfter = after < kNearSeconds;
  if (nearBefore != nearAfter) return Distance::kMixed;
  return nearBefore ? Distance::kNear : Distance::kFar;
}

}  // namespace farandole::bench
