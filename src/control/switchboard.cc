#include "control/switchboard.h"

#include <cstring>

#include "link/link_mesh.h"

namespace farandole {
namespace {

// Far more than all windows of the sets that a rank may be late for.
constexpr std::size_t kMostHeld = std::size_t{64} << 20;

}  // namespace

void Switchboard::attach(std::uint32_t key, Handler handler) {
  const std::lock_guard lock(mutex_);
  Set& set = sets_[key];
  for (const Held& held : set.held) {
    handler(held.from, held.message);
    heldBytes_ -= held.message.size();
  }
  set.held.clear();
  set.handler = std::move(handler);
}

void Switchboard::detach(std::uint32_t key) {
  const std::lock_guard lock(mutex_);
  sets_.erase(key);
  gone_.insert(key);
}

Status Switchboard::send(int rank, std::uint32_t key, std::span<const std::byte> message) {
  std::string bytes(kFront, '\0');
  bytes.append(reinterpret_cast<const char*>(message.data()), message.size());
  return sendFramed(rank, key, std::move(bytes));
}

Status Switchboard::sendFramed(int rank, std::uint32_t key, std::string message) {
  std::memcpy(message.data(), &key, sizeof key);
  return mesh_.sendControl(rank, std::move(message));
}

Status Switchboard::deliver(int from, std::string_view message) {
  std::uint32_t key = 0;
  if (message.size() < sizeof key) {
    return Status(Code::kMismatch,
                  "rank " + std::to_string(from) + " sent a control message without a set");
  }
  std::memcpy(&key, message.data(), sizeof key);
  const std::span<const std::byte> rest =
      std::as_bytes(std::span(message.data(), message.size())).subspan(sizeof key);
  const std::lock_guard lock(mutex_);
  if (gone_.contains(key)) return {};
  Set& set = sets_[key];
  if (set.handler) {
    set.handler(from, rest);
    return {};
  }
  if (heldBytes_ + rest.size() > kMostHeld) {
    return Status(Code::kMismatch,
                  "rank " + std::to_string(from) +
                      " sends more for process sets that this rank has not made than can"
                      " be kept");
  }
  heldBytes_ += rest.size();
  set.held.push_back({from, {rest.begin(), rest.end()}});
  return {};
}

}  // namespace farandole
