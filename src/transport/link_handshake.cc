#include "transport/link_handshake.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "transport/congestion.h"

namespace farandole::transport {

Status LinkHandshake::connect(const LinkAddress& address, int peer, const std::string& congestion) {
  connector_ = true;
  peer_ = peer;
  address_ = address.text();
  phase_ = Phase::kConnecting;
  sockaddr_storage storage{};
  const socklen_t length = address.toSockaddr(storage);
  fd_ = UniqueFd(::socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_) return Status::fromErrno("cannot make a socket", errno);
  chooseCongestion(fd_.get(), congestion);
  if (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&storage), length) != 0 &&
      errno != EINPROGRESS) {
    return Status::fromErrno("cannot connect", errno);
  }
  return watch();
}

Status LinkHandshake::accept(UniqueFd fd) {
  fd_ = std::move(fd);
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (::getpeername(fd_.get(), reinterpret_cast<sockaddr*>(&storage), &length) == 0) {
    const Result<LinkAddress> from =
        LinkAddress::fromSockaddr(reinterpret_cast<const sockaddr*>(&storage));
    if (from.ok()) address_ = from.value().text();
  }
  return watch();
}

Status LinkHandshake::watch() {
  // The steps are small messages: none of them may wait for an acknowledgement.
  const int on = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const std::uint32_t events = phase_ == Phase::kConnecting ? EPOLLOUT : EPOLLIN;
  FARANDOLE_ASSIGN_OR_RETURN(id_, loop_->add(fd_.get(), events, shared_from_this()));
  loop_->setTimer(id_, Clock::now() + limit_);
  return {};
}

void LinkHandshake::want(std::uint32_t events) { loop_->watch(id_, events); }

void LinkHandshake::drop() {
  owner_ = nullptr;
  if (id_ != 0) loop_->remove(std::exchange(id_, 0));
  session_.reset();
  fd_.reset();
}

void LinkHandshake::timer() {
  const char* what = phase_ == Phase::kConnecting ? "no answer" : "the handshake did not finish";
  fail(Status::timeout(std::string(what) + " within " + describeSeconds(limit_)));
}

void LinkHandshake::ready(std::uint32_t /*events*/) { step(); }

void LinkHandshake::sayHello(const LinkHello& hello) {
  hello_ = encodeLinkHello(hello);
  result_.lane = hello.lane;
  phase_ = Phase::kSendHello;
  moved_ = 0;
  want(EPOLLOUT);
}

void LinkHandshake::step() {
  const auto self = shared_from_this();
  while (owner_ != nullptr) {
    const Result<bool> moved = advance();
    if (!moved.ok()) return fail(moved.status());
    if (!moved.value()) return;
  }
}

Status LinkHandshake::finishConnect() {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  return error == 0 ? Status() : Status::fromErrno("cannot connect", error);
}

Result<bool> LinkHandshake::advance() {
  switch (phase_) {
    case Phase::kConnecting:
      FARANDOLE_RETURN_IF_ERROR(finishConnect());
      phase_ = Phase::kTls;
      return true;
    case Phase::kTls: return tlsStep();
    case Phase::kPaused: return false;
    case Phase::kSendHello: {
      Result<bool> sent = write(hello_);
      if (!sent.ok() || !sent.value()) return sent;
      phase_ = Phase::kGetVerdict;
      moved_ = 0;
      return true;
    }
    case Phase::kGetHello: {
      Result<bool> got = read(hello_);
      return !got.ok() || !got.value() ? got : answerHello();
    }
    case Phase::kSendVerdict: {
      Result<bool> sent = write(verdict_);
      if (!sent.ok() || !sent.value()) return sent;
      if (refused_) return refusal_;
      finish();
      return false;
    }
    case Phase::kGetVerdict: {
      Result<bool> got = read(verdict_);
      return !got.ok() || !got.value() ? got : takeVerdict();
    }
  }
  return Status::internal("a handshake in no phase");
}

Result<bool> LinkHandshake::tlsStep() {
  if (!session_) {
    // Only now: a stranger that stays silent costs a descriptor and nothing more.
    FARANDOLE_ASSIGN_OR_RETURN(
        session_, connector_ ? tls_.connect(fd_.get(), peer_) : tls_.accept(fd_.get()));
  }
  FARANDOLE_ASSIGN_OR_RETURN(const auto step, session_->handshake());
  switch (step) {
    case TlsStep::kWantRead: want(EPOLLIN); return false;
    case TlsStep::kWantWrite: want(EPOLLOUT); return false;
    case TlsStep::kDone: break;
  }
  peer_ = session_->peer();
  moved_ = 0;
  if (!connector_) {
    phase_ = Phase::kGetHello;
    return true;
  }
  phase_ = Phase::kPaused;
  want(0);
  owner_->authenticated(*this);
  return false;
}

Result<bool> LinkHandshake::ioResult(int result, int error, bool complete) {
  if (result == 1) return complete;
  switch (::SSL_get_error(session_->ssl(), result)) {
    case SSL_ERROR_WANT_READ: want(EPOLLIN); return false;
    case SSL_ERROR_WANT_WRITE: want(EPOLLOUT); return false;
    case SSL_ERROR_SYSCALL:
      if (error != 0) return Status::fromErrno("the connection broke in the handshake", error);
      break;
    default: break;
  }
  const std::string why = lastSslError();
  // With TLS 1.3 the side that connects is done before the other one has checked its proof.
  const bool alert = why.find("alert") != std::string::npos || why.find("decrypt") != why.npos;
  if (alert) return Status(Code::kMismatch, "the TLS handshake was refused: " + why);
  return Status::unavailable("the other side hung up in the handshake");
}

Result<bool> LinkHandshake::write(std::span<const std::uint8_t> bytes) {
  std::size_t sent = 0;
  ::ERR_clear_error();
  errno = 0;
  const int result =
      ::SSL_write_ex(session_->ssl(), bytes.data() + moved_, bytes.size() - moved_, &sent);
  const int error = errno;
  moved_ += sent;
  return ioResult(result, error, moved_ == bytes.size());
}

Result<bool> LinkHandshake::read(std::span<std::uint8_t> bytes) {
  for (;;) {
    std::size_t got = 0;
    ::ERR_clear_error();
    errno = 0;
    const int result =
        ::SSL_read_ex(session_->ssl(), bytes.data() + moved_, bytes.size() - moved_, &got);
    const int error = errno;
    moved_ += got;
    if (result != 1 || moved_ == bytes.size()) {
      return ioResult(result, error, moved_ == bytes.size());
    }
  }
}

Result<bool> LinkHandshake::answerHello() {
  FARANDOLE_ASSIGN_OR_RETURN(auto hello, decodeLinkHello(hello_));
  if (static_cast<int>(hello.from) != peer_) {
    return Status(Code::kMismatch, "its hello names another rank than its key");
  }
  const LinkVerdict verdict = owner_->judge(*this, hello);
  refused_ = verdict.code != Code::kOk;
  if (refused_) refusal_ = Status(verdict.code, verdict.text).withRank(peer_, hello.host);
  result_.window = hello.window;
  result_.lane = hello.lane;
  result_.host = hello.host;
  verdict_ = encodeLinkVerdict(verdict);
  phase_ = Phase::kSendVerdict;
  moved_ = 0;
  return true;
}

Result<bool> LinkHandshake::takeVerdict() {
  FARANDOLE_ASSIGN_OR_RETURN(auto verdict, decodeLinkVerdict(verdict_));
  if (verdict.code != Code::kOk) {
    refused_ = true;
    return Status(verdict.code, verdict.text);
  }
  result_.window = verdict.window;
  finish();
  return false;
}

void LinkHandshake::finish() {
  loop_->remove(std::exchange(id_, 0));
  result_.fd = std::move(fd_);
  result_.ssl = session_->take();
  result_.connector = connector_;
  result_.peer = peer_;
  result_.address = address_;
  std::exchange(owner_, nullptr)->established(*this, std::move(result_));
}

void LinkHandshake::fail(const Status& status) {
  Owner* owner = owner_;
  const auto self = shared_from_this();
  drop();
  if (owner != nullptr) owner->failed(*this, status);
}

}  // namespace farandole::transport
