#include "bootstrap/doorkeeper.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "bootstrap/unix_socket.h"

namespace farandole::bootstrap {
namespace {

// Per call, so that a flood of strangers does not keep the loop from those already inside.
constexpr int kAcceptsPerCall = 16;
constexpr Duration kOutOfDescriptorsPause = std::chrono::milliseconds(50);

}  // namespace

Result<std::unique_ptr<Doorkeeper>> Doorkeeper::open(int type, crypto::JobKey key,
                                                     crypto::Purpose purpose,
                                                     std::size_t mostPending) {
  std::unique_ptr<Doorkeeper> keeper(new Doorkeeper(std::move(key), purpose, mostPending));
  FARANDOLE_ASSIGN_OR_RETURN(keeper->name_, randomSocketName());
  FARANDOLE_ASSIGN_OR_RETURN(keeper->listener_, listenAbstract(keeper->name_, type));
  keeper->epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!keeper->epoll_ || !keeper->watchListener(true)) {
    return Status::fromErrno("cannot watch a listening socket", errno);
  }
  return keeper;
}

bool Doorkeeper::watchListener(bool on) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = 0;
  return ::epoll_ctl(epoll_.get(), on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, listener_.get(), &event) ==
         0;
}

Deadline Doorkeeper::nextCall() const {
  if (pending_.empty()) return resume_;
  const Deadline oldest = pending_.begin()->second.deadline;
  return resume_.at() < oldest.at() ? resume_ : oldest;
}

std::vector<Visitor> Doorkeeper::serve() {
  if (resume_.passed() && watchListener(true)) resume_ = Deadline::never();
  while (!pending_.empty() && pending_.begin()->second.deadline.passed()) {
    hangUp(pending_.begin());
  }
  std::vector<Visitor> admitted;
  std::array<epoll_event, 64> events{};
  const int ready = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  bool newcomers = false;
  for (int i = 0; i < ready; ++i) {
    const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
    newcomers |= id == 0;
    const auto found = pending_.find(id);
    if (found == pending_.end()) continue;
    Visitor& visitor = found->second.visitor;
    const Result<bool> complete = visitor.handshake.listen(visitor.fd.get());
    if (complete.ok() && !complete.value()) continue;
    if (complete.ok()) {
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, visitor.fd.get(), nullptr);
      admitted.push_back(std::move(visitor));
      pending_.erase(found);
    } else {
      hangUp(found);
    }
  }
  if (newcomers) acceptSome();
  return admitted;
}

void Doorkeeper::acceptSome() {
  for (int i = 0; i < kAcceptsPerCall; ++i) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      admit(std::move(fd));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      if (watchListener(false)) resume_ = Deadline::after(kOutOfDescriptorsPause);
    }
    return;
  }
}

void Doorkeeper::hangUp(std::map<std::uint64_t, Pending>::iterator entry) {
  // Not left to close(): a fork child of this moment may hold a copy, which keeps it in the epoll.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, entry->second.visitor.fd.get(), nullptr);
  pending_.erase(entry);
}

void Doorkeeper::admit(UniqueFd fd) {
  const Result<Peer> peer = sameUserPeer(fd.get());
  if (!peer.ok()) return;
  Pending entry{Visitor{std::move(fd), peer.value().pid, crypto::ListenerHandshake(key_, purpose_)},
                Deadline::after(crypto::kHandshakeTime)};
  if (!entry.visitor.handshake.greet(entry.visitor.fd.get()).ok()) return;
  if (pending_.size() >= mostPending_) hangUp(pending_.begin());
  const std::uint64_t id = ++lastId_;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, entry.visitor.fd.get(), &event) != 0) return;
  pending_.emplace(id, std::move(entry));
}

}  // namespace farandole::bootstrap
