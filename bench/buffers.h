// Buffers: a rank's benchmark memory, ordinary and shared, kept between commands and grown when
// needed. Single-threaded.
#pragma once

#include <cstddef>
#include <functional>

#include "base/status.h"
#include "bench/job.h"

namespace farandole::bench {

class Buffers {
 public:
  struct Shared {
    std::function<Result<void*>(std::size_t bytes)> allocate;
    std::function<void(void* memory)> free;
  };
  enum Use { kIn, kOut, kUses };

  explicit Buffers(Shared shared) : shared_(std::move(shared)) {}
  ~Buffers();
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  // Page-aligned, zeroed when new (so that its pages exist), at least one byte. Stays where it is
  // until more is asked for.
  Result<void*> get(Memory memory, Use use, std::size_t bytes);

 private:
  struct Buffer {
    void* data = nullptr;
    std::size_t bytes = 0;
  };
  void release(Memory memory, Buffer& buffer);

  Shared shared_;
  Buffer buffers_[2][kUses];
};

}  // namespace farandole::bench
