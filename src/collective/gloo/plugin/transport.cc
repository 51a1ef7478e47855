#include "collective/gloo/plugin/transport.h"

#include <gloo/common/error.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collective/gloo/plugin/pair.h"

namespace farandole::collective::gloo::plugin {
namespace {

// Gloo's slots: a prefix per algorithm, a tag per operation, a number within it. The set's key has
// the upper 24 bits, so 4, 12 and 24 are left for them.
constexpr std::uint64_t kPrefix = std::uint64_t{0xf} << 56;
constexpr std::uint64_t kTagAndNumber = (std::uint64_t{1} << 36) - 1;

}  // namespace

Transport::Transport(std::shared_ptr<Shared> shared, int me, int members)
    : ::gloo::transport::Context(me, members), shared_(std::move(shared)) {
  pairs_.resize(static_cast<std::size_t>(members));
  for (int peer = 0; peer < members; ++peer) {
    if (peer != me) createPair(peer);
  }
}

std::unique_ptr<::gloo::transport::Pair>& Transport::createPair(int peer) {
  std::unique_ptr<::gloo::transport::Pair>& pair = pairs_.at(static_cast<std::size_t>(peer));
  pair = std::make_unique<Pair>(peer);
  return pair;
}

std::unique_ptr<::gloo::transport::UnboundBuffer> Transport::createUnboundBuffer(
    void* memory, std::size_t bytes) {
  return std::make_unique<Buffer>(shared_, memory, bytes);
}

Context::Context(const std::shared_ptr<Shared>& shared, int me, int members)
    : ::gloo::Context(me, members) {
  transportContext_ = std::make_shared<Transport>(shared, me, members);
  setTimeout(shared->waitLimit);
}

Buffer::Buffer(std::shared_ptr<Shared> shared, void* memory, std::size_t bytes)
    : ::gloo::transport::UnboundBuffer(memory, bytes),
      state_(std::make_shared<State>(std::move(shared))) {}

Buffer::~Buffer() {
  std::vector<std::shared_ptr<Pending>> pending;
  {
    const Deadline deadline = Deadline::after(state_->shared->waitLimit);
    const MutexLock lock(state_->shared->mutex);
    pending = state_->pending;
    // Without a failure nothing is given up.
    const auto allOver = [&] {
      return std::all_of(pending.begin(), pending.end(), [](const auto& one) { return one->over; });
    };
    while (state_->shared->failure.ok() && !allOver() && !deadline.passed()) {
      state_->shared->changed.wait(state_->shared->mutex, deadline);
    }
  }
  for (const auto& one : pending) {
    {
      const MutexLock lock(state_->shared->mutex);
      if (one->over) continue;
    }
    if (state_->shared->port->cancel(one->handle)) continue;
    // It has begun, and its memory is about to go: so must the connection.
    for (const std::int32_t rank : state_->shared->ranks) {
      if (one->peer == rank || one->peer < 0) {
        state_->shared->port->drop(rank,
                                   Status(Code::kCancelled, "an operation was given up half-way"));
      }
    }
  }
}

std::span<std::uint8_t> Buffer::part(std::size_t offset, std::size_t bytes) const {
  // Gloo asks for nothing behind the end when there are more members than elements.
  if (bytes == 0) return {static_cast<std::uint8_t*>(ptr), 0};
  if (offset > size) GLOO_THROW_INVALID_OPERATION_EXCEPTION("beyond the end of a buffer");
  if (bytes == kUnspecifiedByteCount) bytes = size - offset;
  if (bytes > size - offset) GLOO_THROW_INVALID_OPERATION_EXCEPTION("more than a buffer has");
  return {static_cast<std::uint8_t*>(ptr) + offset, bytes};
}

std::shared_ptr<Buffer::Pending> Buffer::begin() {
  auto pending = std::make_shared<Pending>();
  const MutexLock lock(state_->shared->mutex);
  std::erase_if(state_->pending, [](const auto& one) { return one->over; });
  state_->pending.push_back(pending);
  return pending;
}

std::function<void(const Status&, int)> Buffer::completion(
    Line State::*which, const std::shared_ptr<Pending>& pending) {
  return [state = state_, which, pending](const Status& status, int peer) {
    const MutexLock lock(state->shared->mutex);
    pending->over = true;
    if (status.ok()) {
      (state.get()->*which).finished.push_back(state->shared->memberOf(peer).value_or(-1));
    } else if (status.code() != Code::kCancelled && state->shared->failure.ok()) {
      state->shared->failure = status;
    }
    state->shared->changed.notifyAll();
  };
}

void Buffer::send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  const std::span<std::uint8_t> memory = part(offset, bytes);
  const int peer = state_->shared->ranks.at(static_cast<std::size_t>(to));
  const std::uint64_t where = state_->shared->slotOf(slot);
  const auto pending = begin();
  const auto done = completion(&State::sends, pending);
  const transport::LinkHandle handle = state_->shared->port->send(
      peer, where, memory, [done, peer](const Status& status) { done(status, peer); });
  const MutexLock lock(state_->shared->mutex);
  pending->handle = handle;
  pending->peer = peer;
}

void Buffer::recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  const std::span<std::uint8_t> memory = part(offset, bytes);
  const int peer = state_->shared->ranks.at(static_cast<std::size_t>(from));
  const std::uint64_t where = state_->shared->slotOf(slot);
  const auto pending = begin();
  const auto done = completion(&State::receives, pending);
  const transport::LinkHandle handle = state_->shared->port->recv(
      peer, where, memory, [done, peer](const Status& status) { done(status, peer); });
  const MutexLock lock(state_->shared->mutex);
  pending->handle = handle;
  pending->peer = peer;
}

void Buffer::recv(std::vector<int> from, std::uint64_t slot, std::size_t offset,
                  std::size_t bytes) {
  const std::span<std::uint8_t> memory = part(offset, bytes);
  std::vector<int> peers;
  for (const int member : from) {
    peers.push_back(state_->shared->ranks.at(static_cast<std::size_t>(member)));
  }
  const std::uint64_t where = state_->shared->slotOf(slot);
  const auto pending = begin();
  const transport::LinkHandle handle =
      state_->shared->port->recvAny(peers, where, memory, completion(&State::receives, pending));
  const MutexLock lock(state_->shared->mutex);
  pending->handle = handle;
}

bool Buffer::wait(Line State::*which, int* rank, std::chrono::milliseconds timeout,
                  const char* what) {
  const auto limit =
      timeout == ::gloo::transport::kUnsetTimeout ? state_->shared->waitLimit : timeout;
  const Deadline deadline = Deadline::after(limit);
  MutexLock lock(state_->shared->mutex);
  Line& line = (*state_).*which;
  while (line.finished.empty() && !line.aborted && state_->shared->failure.ok() &&
         !deadline.passed()) {
    state_->shared->changed.wait(state_->shared->mutex, deadline);
  }
  if (!line.finished.empty()) {
    if (rank != nullptr) *rank = line.finished.front();
    line.finished.pop_front();
    return true;
  }
  if (std::exchange(line.aborted, false)) return false;
  if (state_->shared->failure.ok()) {
    state_->shared->failure = Status::timeout(
        "no message came or went for " + std::to_string(limit.count() / 1000) + " s in " + what);
  }
  const std::string text = state_->shared->failure.message();
  lock.unlock();
  state_->shared->announce();
  GLOO_THROW_IO_EXCEPTION(text);
}

bool Buffer::waitRecv(int* rank, std::chrono::milliseconds timeout) {
  return wait(&State::receives, rank, timeout, "a receive");
}

bool Buffer::waitSend(int* rank, std::chrono::milliseconds timeout) {
  return wait(&State::sends, rank, timeout, "a send");
}

void Buffer::abort(Line State::*which) {
  const MutexLock lock(state_->shared->mutex);
  ((*state_).*which).aborted = true;
  state_->shared->changed.notifyAll();
}

void Buffer::abortWaitRecv() { abort(&State::receives); }

void Buffer::abortWaitSend() { abort(&State::sends); }

// ---- What the buffers of a communicator share: slots, and the failure that ends every wait.

void Shared::fail(const Status& why) {
  const MutexLock lock(mutex);
  if (failure.ok()) failure = why;
  changed.notifyAll();
}

std::optional<int> Shared::memberOf(int globalRank) const {
  const auto found = std::find(ranks.begin(), ranks.end(), globalRank);
  if (found == ranks.end()) return std::nullopt;
  return static_cast<int>(found - ranks.begin());
}

std::uint64_t Shared::slotOf(std::uint64_t glooSlot) const {
  if ((glooSlot & ~(kPrefix | kTagAndNumber)) != 0) {
    GLOO_THROW_INVALID_OPERATION_EXCEPTION("a slot that has no place: ", glooSlot);
  }
  return std::uint64_t{key} << 40 | (glooSlot & kPrefix) >> 20 | (glooSlot & kTagAndNumber);
}

std::uint64_t Shared::watchSlot() const { return std::uint64_t{key} << 40 | kPrefix >> 20; }

// A notice: code u8, rank i32, then the text.
void Shared::announce() {
  Status why;
  {
    const MutexLock lock(mutex);
    if (failure.ok() || std::exchange(announced_, true)) return;
    why = failure;
  }
  const auto notice = std::make_shared<Notice>();
  notice->fill(0);
  (*notice)[0] = static_cast<std::uint8_t>(why.code());
  const std::int32_t rank = why.rank();
  std::memcpy(notice->data() + 1, &rank, sizeof rank);
  const std::size_t room = notice->size() - 1 - sizeof rank - 1;
  std::memcpy(notice->data() + 1 + sizeof rank, why.message().data(),
              std::min(room, why.message().size()));
  for (const std::int32_t peer : ranks) {
    if (peer == ranks[static_cast<std::size_t>(me)]) continue;
    port->send(peer, watchSlot(), *notice, [notice](const Status&) {});
  }
}

void Shared::heard(const Notice& notice) {
  std::int32_t rank = -1;
  std::memcpy(&rank, notice.data() + 1, sizeof rank);
  const char* text = reinterpret_cast<const char*>(notice.data()) + 1 + sizeof rank;
  const std::size_t room = notice.size() - 1 - sizeof rank;
  const bool known = notice[0] > 0 && notice[0] <= static_cast<int>(Code::kInternal);
  Status why(known ? static_cast<Code>(notice[0]) : Code::kInternal,
             std::string(text, ::strnlen(text, room)));
  fail(why.withRank(rank));
}

void Shared::watch() {
  for (const std::int32_t peer : ranks) {
    if (peer == ranks[static_cast<std::size_t>(me)]) continue;
    const auto watch = std::make_shared<Watch>();
    const transport::LinkHandle handle = port->recv(
        peer, watchSlot(), watch->notice, [self = weak_from_this(), watch](const Status& status) {
          const auto shared = self.lock();
          // A member that left in good order matters only to those who still need it: their own
          // sends and receives fail.
          if (!shared || status.code() == Code::kCancelled || status.code() == Code::kShutdown) {
            return;
          }
          if (status.ok()) {
            shared->heard(watch->notice);
          } else {
            shared->fail(status);
          }
        });
    const MutexLock lock(mutex);
    watch->handle = handle;
    watches_.push_back(watch);
  }
}

void Shared::unwatch() {
  std::vector<std::shared_ptr<Watch>> watches;
  {
    const MutexLock lock(mutex);
    watches.swap(watches_);
  }
  // One that has begun ends by itself: its memory is its callback's.
  for (const auto& watch : watches) (void)port->cancel(watch->handle);
}

}  // namespace farandole::collective::gloo::plugin
