#include "collective/gloo/plugin/transport.h"

#include <gloo/common/error.h>

#include <algorithm>
#include <utility>

#include "collective/gloo/plugin/pair.h"

namespace farandole::collective::gloo::plugin {

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
    : ::gloo::transport::UnboundBuffer(memory, bytes), shared_(std::move(shared)) {}

Buffer::~Buffer() {
  std::vector<std::shared_ptr<Pending>> pending;
  {
    std::unique_lock lock(shared_->mutex);
    pending = state_->pending;
    // In good order nothing is given up.
    shared_->changed.wait_for(lock, shared_->waitLimit, [&] {
      return !shared_->failure.ok() ||
             std::all_of(pending.begin(), pending.end(), [](const auto& one) { return one->over; });
    });
  }
  for (const auto& one : pending) {
    {
      const std::lock_guard lock(shared_->mutex);
      if (one->over) continue;
    }
    if (shared_->port->cancel(one->handle)) continue;
    // It has begun, and its memory is about to go: so must the connection.
    for (const std::int32_t rank : shared_->ranks) {
      if (one->peer == rank || one->peer < 0) {
        shared_->port->drop(rank, Status(Code::kCancelled, "an operation was given up half-way"));
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
  const std::lock_guard lock(shared_->mutex);
  std::erase_if(state_->pending, [](const auto& one) { return one->over; });
  state_->pending.push_back(pending);
  return pending;
}

std::function<void(const Status&, int)> Buffer::completion(
    Line State::*line, const std::shared_ptr<Pending>& pending) {
  return [shared = shared_, state = state_, line, pending](const Status& status, int peer) {
    const std::lock_guard lock(shared->mutex);
    pending->over = true;
    if (status.ok()) {
      (state.get()->*line).finished.push_back(shared->memberOf(peer).value_or(-1));
    } else if (status.code() != Code::kCancelled && shared->failure.ok()) {
      shared->failure = status;
    }
    shared->changed.notify_all();
  };
}

void Buffer::send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  const std::span<std::uint8_t> memory = part(offset, bytes);
  const int peer = shared_->ranks.at(static_cast<std::size_t>(to));
  const std::uint64_t where = shared_->slotOf(slot);
  const auto pending = begin();
  const auto done = completion(&State::sends, pending);
  const transport::LinkHandle handle = shared_->port->send(
      peer, where, memory, [done, peer](const Status& status) { done(status, peer); });
  const std::lock_guard lock(shared_->mutex);
  pending->handle = handle;
  pending->peer = peer;
}

void Buffer::recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) {
  const std::span<std::uint8_t> memory = part(offset, bytes);
  const int peer = shared_->ranks.at(static_cast<std::size_t>(from));
  const std::uint64_t where = shared_->slotOf(slot);
  const auto pending = begin();
  const auto done = completion(&State::receives, pending);
  const transport::LinkHandle handle = shared_->port->recv(
      peer, where, memory, [done, peer](const Status& status) { done(status, peer); });
  const std::lock_guard lock(shared_->mutex);
  pending->handle = handle;
  pending->peer = peer;
}

void Buffer::recv(std::vector<int> from, std::uint64_t slot, std::size_t offset,
                  std::size_t bytes) {
  const std::span<std::uint8_t> memory = part(offset, bytes);
  std::vector<int> peers;
  for (const int member : from) {
    peers.push_back(shared_->ranks.at(static_cast<std::size_t>(member)));
  }
  const std::uint64_t where = shared_->slotOf(slot);
  const auto pending = begin();
  const transport::LinkHandle handle =
      shared_->port->recvAny(peers, where, memory, completion(&State::receives, pending));
  const std::lock_guard lock(shared_->mutex);
  pending->handle = handle;
}

bool Buffer::wait(Line& line, int* rank, std::chrono::milliseconds timeout, const char* what) {
  const auto limit = timeout == ::gloo::transport::kUnsetTimeout ? shared_->waitLimit : timeout;
  std::unique_lock lock(shared_->mutex);
  const bool came = shared_->changed.wait_for(lock, limit, [&] {
    return !line.finished.empty() || line.aborted || !shared_->failure.ok();
  });
  if (!line.finished.empty()) {
    if (rank != nullptr) *rank = line.finished.front();
    line.finished.pop_front();
    return true;
  }
  if (std::exchange(line.aborted, false)) return false;
  if (!came) {
    shared_->failure = Status::timeout("no message came or went for " +
                                       std::to_string(limit.count() / 1000) + " s in " + what);
  }
  const std::string text = shared_->failure.message();
  lock.unlock();
  shared_->announce();
  GLOO_THROW_IO_EXCEPTION(text);
}

bool Buffer::waitRecv(int* rank, std::chrono::milliseconds timeout) {
  return wait(state_->receives, rank, timeout, "a receive");
}

bool Buffer::waitSend(int* rank, std::chrono::milliseconds timeout) {
  return wait(state_->sends, rank, timeout, "a send");
}

void Buffer::abort(Line& line) {
  const std::lock_guard lock(shared_->mutex);
  line.aborted = true;
  shared_->changed.notify_all();
}

void Buffer::abortWaitRecv() { abort(state_->receives); }

void Buffer::abortWaitSend() { abort(state_->sends); }

}  // namespace farandole::collective::gloo::plugin
