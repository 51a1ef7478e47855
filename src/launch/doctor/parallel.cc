#include "launch/doctor/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "bootstrap/unix_socket.h"

namespace farandole {

void inParallel(std::size_t count, std::size_t atOnce,
                const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  const auto worker = [&next, &work, count] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> threads;
  {
    SignalsBlocked blocked;
    for (std::size_t i = 0; i < std::min(count, atOnce); ++i) threads.emplace_back(worker);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace farandole
