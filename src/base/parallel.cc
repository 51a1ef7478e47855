#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

#include "base/thread.h"

namespace farandole {

void inParallel(std::size_t count, std::size_t atOnce,
                const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  const auto worker = [&next, &work, count] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> threads;
  try {
    const SignalsBlocked blocked;
    for (std::size_t i = 1; i < std::min(count, atOnce); ++i) threads.emplace_back(worker);
  } catch (const std::system_error&) {
    // Fewer threads than wanted: it takes longer.
  }
  worker();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace farandole
