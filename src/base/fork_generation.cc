#include "base/fork_generation.h"

#include <pthread.h>

#include <atomic>

namespace farandole {
namespace {

std::atomic<unsigned> generation{0};

}  // namespace

unsigned forkGeneration() {
  [[maybe_unused]] static const int registered = ::pthread_atfork(
      nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  return generation.load(std::memory_order_relaxed);
}

}  // namespace farandole
