// Traffic: the messages of one operation, and how many of them are still in flight.
//
// Every message is counted by one of the operation's counters; a counter that is clear again tells
// that all its messages are through. The driver's thread issues messages and looks; callbacks of
// the mesh, on any thread, count down, note a failure, and ring the bell. They share ownership: a
// Traffic and its scratch memory live as long as the mesh holds a message of it, even if the
// operation is long gone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/mutex.h"
#include "collective/link/context.h"

namespace farandole::collective::link {

class Traffic : public std::enable_shared_from_this<Traffic> {
 public:
  Traffic(Context& context, std::uint64_t slots, std::size_t counters);

  // The driver's.
  void send(int member, std::uint64_t step, std::span<const std::byte> bytes, std::size_t counter);
  void receive(int member, std::uint64_t step, std::span<std::byte> bytes, std::size_t counter);
  bool clear(std::size_t counter) const {
    return open_[counter].load(std::memory_order_acquire) == 0;
  }
  // Scratch memory of this operation; once. False if there is none. Memory that `stays` is never
  // given back to the context: messages may use it when the operation is done.
  bool reserve(std::size_t bytes, bool stays = false);
  std::byte* scratch() const { return scratch_.data(); }
  // Something else that must live as long as this.
  void keep(std::shared_ptr<void> memory) { kept_ = std::move(memory); }
  // When every counter is clear: the scratch memory goes back to the context.
  void retire();

  // Between enter and leave the bell is not rung: the driver looks at events() before it goes.
  void enter() { driving_.store(true, std::memory_order_relaxed); }
  void leave() { driving_.store(false, std::memory_order_seq_cst); }
  std::uint64_t events() const { return events_.load(std::memory_order_seq_cst); }

  bool failed() const { return failed_.load(std::memory_order_acquire); }
  Status failure() const;

 private:
  void finished(std::size_t counter, const Status& status);

  Context& context_;  // the driver's
  const std::uint64_t slots_;
  const std::shared_ptr<Bell> bell_;
  Scratch scratch_;  // the driver's; its memory is the messages'
  bool stays_ = false;
  std::shared_ptr<void> kept_;
  std::unique_ptr<std::atomic<std::int32_t>[]> open_;
  std::atomic<std::uint64_t> events_{0};
  std::atomic<bool> driving_{false};
  std::atomic<bool> failed_{false};
  mutable Mutex mutex_;
  Status failure_ GUARDED_BY(mutex_);
};

}  // namespace farandole::collective::link
