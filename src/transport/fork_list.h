// ForkList: the descriptors that a fork child has to close, readable there without a lock.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

namespace farandole::transport {

class ForkList {
 public:
  // A list that is full forgets. The child then keeps a copy that it does not use. That does no
  // harm, because an open socket is not taken for a sign of life.
  void add(int fd) {
    for (std::size_t i = 0; i < kCapacity; ++i) {
      std::atomic<int>& slot = (*slots_)[(static_cast<std::size_t>(fd) + i) % kCapacity];
      int empty = 0;
      if (slot.compare_exchange_strong(empty, fd + 1)) return;
    }
  }
  void remove(int fd) {
    for (std::size_t i = 0; i < kCapacity; ++i) {
      std::atomic<int>& slot = (*slots_)[(static_cast<std::size_t>(fd) + i) % kCapacity];
      int expected = fd + 1;
      if (slot.compare_exchange_strong(expected, 0)) return;
    }
  }
  void clear() {
    for (std::atomic<int>& slot : *slots_) slot = 0;
  }
  void closeAll() {
    for (std::atomic<int>& slot : *slots_) {
      if (const int fd = slot.exchange(0); fd > 0) ::close(fd - 1);
    }
  }

 private:
  static constexpr std::size_t kCapacity = 16384;
  using Slots = std::array<std::atomic<int>, kCapacity>;
  std::unique_ptr<Slots> slots_ = std::make_unique<Slots>();
};

}  // namespace farandole::transport
