#include "transport/link_listener.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"

namespace farandole::transport {
namespace {

constexpr int kAcceptsPerTurn = 16;
constexpr Duration kOutOfDescriptorsPause = std::chrono::milliseconds(50);
constexpr int kBacklog = 1024;

}  // namespace

LinkListener::LinkListener(std::shared_ptr<LinkLoop> loop, const TlsContext& tls, LinkSocket socket,
                           std::size_t halfOpen, Duration handshakeLimit, Events events)
    : loop_(std::move(loop)),
      tls_(tls),
      socket_(std::move(socket)),
      halfOpen_(halfOpen),
      handshakeLimit_(handshakeLimit),
      events_(std::move(events)) {}

Status LinkListener::start() {
  if (::listen(socket_.fd.get(), kBacklog) != 0) {
    return Status::fromErrno("cannot listen on port " + std::to_string(socket_.port), errno);
  }
  // Watched only when the id is known: the loop's thread may call at once.
  FARANDOLE_ASSIGN_OR_RETURN(id_, loop_->add(socket_.fd.get(), 0, shared_from_this()));
  loop_->watch(id_, EPOLLIN);
  return {};
}

void LinkListener::close() {
  if (id_ != 0) loop_->remove(std::exchange(id_, 0));
  socket_.fd.reset();
  for (Pending& pending : pending_) pending.handshake->drop();
  pending_.clear();
}

void LinkListener::ready(std::uint32_t /*events*/) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (!acceptOne()) return;
  }
}

void LinkListener::timer() { loop_->watch(id_, EPOLLIN); }

bool LinkListener::acceptOne() {
  UniqueFd fd(::accept4(socket_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) {
    if (errno == EINTR || errno == ECONNABORTED) return true;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      // Left alone for a moment instead of spinning.
      loop_->watch(id_, 0);
      loop_->setTimer(id_, Clock::now() + kOutOfDescriptorsPause);
    }
    return false;
  }
  if (pending_.size() >= halfOpen_) displace();
  auto handshake = std::make_shared<LinkHandshake>(loop_, tls_, handshakeLimit_, *this);
  if (handshake->accept(std::move(fd)).ok()) pending_.push_back({std::move(handshake), nullptr});
  return true;
}

void LinkListener::displace() {
  // One that was admitted has proved itself and is about to leave the list.
  const auto oldest = std::find_if(pending_.begin(), pending_.end(),
                                   [](const Pending& entry) { return !entry.admitted; });
  if (oldest == pending_.end()) return;
  oldest->handshake->drop();
  pending_.erase(oldest);
}

std::list<LinkListener::Pending>::iterator LinkListener::find(const LinkHandshake& handshake) {
  return std::find_if(pending_.begin(), pending_.end(),
                      [&](const Pending& entry) { return entry.handshake.get() == &handshake; });
}

LinkVerdict LinkListener::judge(LinkHandshake& handshake, const LinkHello& hello) {
  LinkVerdict verdict = events_.judge(hello);
  const auto entry = find(handshake);
  if (verdict.code == Code::kOk && entry != pending_.end()) {
    entry->admitted = std::make_unique<LinkHello>(hello);
  }
  return verdict;
}

void LinkListener::established(LinkHandshake& handshake, Established result) {
  if (const auto entry = find(handshake); entry != pending_.end()) pending_.erase(entry);
  events_.established(std::move(result));
}

void LinkListener::failed(LinkHandshake& handshake, const Status& status) {
  if (logs(LogLevel::kDebug)) {
    logDebug("a connection from " + handshake.address() + " was refused: " + status.message());
  }
  const auto entry = find(handshake);
  if (entry == pending_.end()) return;
  const std::unique_ptr<LinkHello> admitted = std::move(entry->admitted);
  pending_.erase(entry);
  if (admitted) events_.broken(*admitted, status);
}

}  // namespace farandole::transport
