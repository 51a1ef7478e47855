#include "collective/link/traffic.h"

#include "base/mutex.h"

namespace farandole::collective::link {

Traffic::Traffic(Context& context, std::uint64_t slots, std::size_t counters)
    : context_(context),
      slots_(slots),
      bell_(context.bell),
      open_(std::make_unique<std::atomic<std::int32_t>[]>(counters)) {}

void Traffic::send(int member, std::uint64_t step, std::span<const std::byte> bytes,
                   std::size_t counter) {
  open_[counter].fetch_add(1, std::memory_order_relaxed);
  context_.options.mesh->send(
      context_.rankOf(member), slots_ | step,
      std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()),
      [self = shared_from_this(), counter](const Status& status) {
        self->finished(counter, status);
      });
}

void Traffic::receive(int member, std::uint64_t step, std::span<std::byte> bytes,
                      std::size_t counter) {
  open_[counter].fetch_add(1, std::memory_order_relaxed);
  context_.options.mesh->recv(
      context_.rankOf(member), slots_ | step,
      std::span(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()),
      [self = shared_from_this(), counter](const Status& status) {
        self->finished(counter, status);
      });
}

bool Traffic::reserve(std::size_t bytes, bool stays) {
  stays_ = stays;
  scratch_ = stays ? Scratch::allocate(bytes) : context_.scratch.take(bytes);
  return static_cast<bool>(scratch_);
}

void Traffic::retire() {
  if (!stays_) context_.scratch.give(std::exchange(scratch_, {}));
}

Status Traffic::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

void Traffic::finished(std::size_t counter, const Status& status) {
  if (status.ok()) {
    // Release: a thread that finds the counter clear finds the bytes.
    if (open_[counter].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  } else {
    // The counter never clears.
    const MutexLock lock(mutex_);
    // A member that left in good order often did so because another one was lost.
    if (failure_.ok() || (failure_.code() == Code::kShutdown && status.code() != Code::kShutdown)) {
      failure_ = status;
    }
    failed_.store(true, std::memory_order_release);
  }
  // Sequentially consistent, as in leave(): either the driver sees the event, or this thread sees
  // that the driver has left.
  events_.fetch_add(1, std::memory_order_seq_cst);
  if (!driving_.load(std::memory_order_seq_cst)) bell_->ring();
}

std::string Context::nameOf(int member) const {
  const auto index = static_cast<std::size_t>(member);
  std::string name = "rank " + std::to_string(rankOf(member));
  if (index < options.hosts.size() && !options.hosts[index].empty()) {
    name += " on " + options.hosts[index];
  }
  return name;
}

}  // namespace farandole::collective::link
