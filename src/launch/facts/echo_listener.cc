// The listening side of the echo: one thread, one poll loop.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <optional>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/thread.h"
#include "crypto/handshake.h"
#include "launch/facts/echo.h"
#include "launch/facts/echo_wire.h"

namespace farandole::launch::facts {
namespace {

constexpr std::size_t kMostVisitors = 256;

}  // namespace

// Not in the unnamed namespace: EchoListener::Shared holds them.
class EchoConversation {
 public:
  EchoConversation(UniqueFd fd, const crypto::JobKey& key, const std::string& who)
      : fd_(std::move(fd)),
        who_(who),
        handshake_(key, kEchoPurpose),
        deadline_(Deadline::after(crypto::kHandshakeTime)) {}

  bool greet() { return handshake_.greet(fd_.get()).ok(); }
  int fd() const { return fd_.get(); }
  short events() const { return sent_ < out_.size() ? POLLOUT : POLLIN; }
  Deadline deadline() const { return deadline_; }

  // False when it is to be dropped.
  bool advance() {
    if (!admitted_) return admit();
    return sent_ < out_.size() ? send() : receive();
  }

 private:
  bool admit() {
    const Result<bool> known = handshake_.listen(fd_.get());
    if (!known.ok()) return false;
    if (!known.value()) return true;
    admitted_ = handshake_.conclude(fd_.get(), Code::kOk, who_).ok();
    deadline_ = Deadline::after(crypto::kHandshakeTime);
    return admitted_;
  }

  bool receive() {
    std::array<std::uint8_t, 65536> block;
    const std::size_t wanted = wantedBytes();
    const ssize_t got =
        ::recv(fd_.get(), block.data(), std::min(block.size(), wanted), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    in_.insert(in_.end(), block.begin(), block.begin() + got);
    if (in_.size() == 4 && loadLength(in_.data()) > kEchoMostBytes) return false;
    if (in_.size() < 4 || wantedBytes() > 0) return true;
    if (++rounds_ > kEchoRounds) return false;
    out_.assign(in_.begin() + 4, in_.end());
    in_.clear();
    sent_ = 0;
    return out_.empty() || send();
  }

  // Never more than what the message still lacks.
  std::size_t wantedBytes() const {
    return in_.size() < 4 ? 4 - in_.size() : 4 + loadLength(in_.data()) - in_.size();
  }

  bool send() {
    const ssize_t put =
        ::send(fd_.get(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0) return errno == EAGAIN || errno == EINTR;
    sent_ += static_cast<std::size_t>(put);
    return true;
  }

  UniqueFd fd_;
  const std::string& who_;  // the listener's
  crypto::ListenerHandshake handshake_;
  Deadline deadline_;
  bool admitted_ = false;
  int rounds_ = 0;
  std::vector<std::uint8_t> in_;
  std::vector<std::uint8_t> out_;
  std::size_t sent_ = 0;
};

namespace {

// Both families through one socket; IPv4 alone where the kernel has no other.
Result<UniqueFd> listenOn(int port) {
  const int yes = 1;
  const int no = 0;
  UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd) {
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(static_cast<std::uint16_t>(port));
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof(any)) == 0 &&
        ::listen(fd.get(), 64) == 0) {
      return fd;
    }
    if (errno == EADDRINUSE || errno == EACCES) return Status::fromErrno("bind", errno);
  }
  fd.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<std::uint16_t>(port));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&any), sizeof(any)) != 0 ||
      ::listen(fd.get(), 64) != 0) {
    return Status::fromErrno("bind", errno);
  }
  return fd;
}

int portOf(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

struct EchoListener::Shared {
  Shared(crypto::JobKey jobKey, std::string name) : key(std::move(jobKey)), who(std::move(name)) {}

  // Constant after open(); the rest belongs to the thread.
  crypto::JobKey key;
  std::string who;
  UniqueFd listener;
  UniqueFd stop;
  std::thread thread;
  std::list<EchoConversation> visitors;

  void accept() {
    UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd || visitors.size() >= kMostVisitors) return;
    const int yes = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    visitors.emplace_back(std::move(fd), key, who);
    if (!visitors.back().greet()) visitors.pop_back();
  }

  void serve() {
    std::vector<pollfd> waiting;
    for (;;) {
      waiting.assign({{stop.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}});
      for (const EchoConversation& visitor : visitors)
        waiting.push_back({visitor.fd(), visitor.events(), 0});
      ::poll(waiting.data(), waiting.size(), visitors.empty() ? -1 : 200);
      if (waiting[0].revents != 0) return;
      std::size_t i = 2;
      for (auto visitor = visitors.begin(); visitor != visitors.end(); ++i) {
        const bool stays =
            !visitor->deadline().passed() && (waiting[i].revents == 0 || visitor->advance());
        visitor = stays ? std::next(visitor) : visitors.erase(visitor);
      }
      if (waiting[1].revents != 0) accept();
    }
  }
};

EchoListener::EchoListener(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}

EchoListener::~EchoListener() {
  ::eventfd_write(shared_->stop.get(), 1);
  shared_->thread.join();
}

int EchoListener::port() const { return portOf(shared_->listener.get()); }

Result<std::unique_ptr<EchoListener>> EchoListener::open(const std::string& secretHex,
                                                         PortRange range, const std::string& who) {
  auto key = crypto::JobKey::make(kEchoJob, secretHex);
  if (!key.ok()) return key.status();
  auto shared = std::make_unique<Shared>(std::move(*key), who.substr(0, 64));
  Status why;
  for (int port = range.first; port <= range.last && !shared->listener; ++port) {
    auto fd = listenOn(port);
    if (fd.ok()) {
      shared->listener = std::move(*fd);
    } else {
      why = fd.status();
    }
  }
  if (!shared->listener) {
    return Status::unavailable((range.first == 0
                                    ? std::string("no TCP port can be listened on")
                                    : "none of the ports " + describe(range) + " is free") +
                               " (" + why.message() + ")");
  }
  shared->stop.reset(::eventfd(0, EFD_CLOEXEC));
  if (!shared->stop) return Status::fromErrno("cannot create an eventfd", errno);
  Shared* served = shared.get();
  FARANDOLE_ASSIGN_OR_RETURN(shared->thread, startThread("fd-echo", [served] { served->serve(); }));
  return std::unique_ptr<EchoListener>(new EchoListener(std::move(shared)));
}

}  // namespace farandole::launch::facts
