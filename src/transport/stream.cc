#include "transport/stream.h"

#include <openssl/err.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "transport/socket_bio.h"

namespace farandole::transport {
namespace {

Status closed() { return Status(Code::kShutdown, "it closed the connection"); }

std::size_t totalOf(std::span<const iovec> buffers) {
  std::size_t total = 0;
  for (const iovec& buffer : buffers) total += buffer.iov_len;
  return total;
}

// Not through the C library's functions: there they are points of cancellation, which costs more
// than the rest of the call's way into the kernel.
ssize_t sendNow(int fd, const iovec& buffer, int flags) {
  return ::syscall(SYS_sendto, fd, buffer.iov_base, buffer.iov_len, flags, nullptr, 0);
}

ssize_t receiveNow(int fd, const iovec& buffer) {
  return ::syscall(SYS_recvfrom, fd, buffer.iov_base, buffer.iov_len, MSG_DONTWAIT, nullptr,
                   nullptr);
}

msghdr messageOf(std::span<const iovec> buffers) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(buffers.data());
  message.msg_iovlen = buffers.size();
  return message;
}

}  // namespace

Result<std::size_t> Stream::sslFailed(int result, int error) {
  switch (::SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return std::size_t{0};
    case SSL_ERROR_ZERO_RETURN: return closed();
    case SSL_ERROR_SYSCALL:
      if (error == 0) return closed();
      return Status::fromErrno("the connection broke", error);
    default: break;
  }
  const unsigned long reason = ::ERR_peek_error();
  if (ERR_GET_LIB(reason) == ERR_LIB_SSL &&
      ERR_GET_REASON(reason) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    ::ERR_clear_error();
    return closed();
  }
  return Status(Code::kMismatch, "what came over the network is damaged: " + lastSslError());
}

Stream::Stream(UniqueFd fd, SslPtr ssl, std::uint64_t bytesPerKey)
    : fd_(std::move(fd)), ssl_(std::move(ssl)), bytesPerKey_(bytesPerKey) {
  if (ssl_) readAhead(::SSL_get_rbio(ssl_.get()));
}

Result<std::size_t> Stream::writePlain(std::span<const iovec> buffers) {
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  const msghdr message = messageOf(buffers);
  // The kernel looks at fewer things for a single buffer.
  const ssize_t sent = buffers.size() == 1 ? sendNow(fd_.get(), buffers.front(), kFlags)
                                           : ::sendmsg(fd_.get(), &message, kFlags);
  if (sent >= 0) return static_cast<std::size_t>(sent);
  if (notNow(errno)) return std::size_t{0};
  return Status::fromErrno("the connection broke", errno);
}

Result<std::size_t> Stream::write(std::span<const iovec> buffers) {
  if (!ssl_) return writePlain(buffers);
  std::size_t total = 0;
  for (const iovec& buffer : buffers) {
    std::size_t done = 0;
    while (done < buffer.iov_len) {
      // Never in the middle of a record: a busy socket is full nearly always when a call ends.
      if (!retry_ && sinceKeyUpdate_ >= bytesPerKey_) {
        if (::SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) {
          return Status::internal("libssl does not replace a key: " + lastSslError());
        }
        sinceKeyUpdate_ = 0;
      }
      std::size_t sent = 0;
      ::ERR_clear_error();
      errno = 0;
      const int result =
          ::SSL_write_ex(ssl_.get(), static_cast<const char*>(buffer.iov_base) + done,
                         buffer.iov_len - done, &sent);
      const int error = errno;
      retry_ = result != 1;
      if (result == 1) {
        done += sent;
        total += sent;
        sinceKeyUpdate_ += sent;
        continue;
      }
      Result<std::size_t> failed = sslFailed(result, error);
      // What was sent before the failure is reported first; the next call finds the failure again.
      return failed.ok() || total > 0 ? Result<std::size_t>(total) : failed;
    }
  }
  return total;
}

Result<std::size_t> Stream::readPlain(std::span<const iovec> buffers) {
  msghdr message = messageOf(buffers);
  const ssize_t got = buffers.size() == 1 ? receiveNow(fd_.get(), buffers.front())
                                          : ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
  if (got > 0) {
    drained_ = static_cast<std::size_t>(got) < totalOf(buffers);
    return static_cast<std::size_t>(got);
  }
  if (got == 0) return closed();
  if (notNow(errno)) return std::size_t{0};
  return Status::fromErrno("the connection broke", errno);
}

Result<std::size_t> Stream::read(std::span<const iovec> buffers) {
  if (!ssl_) return readPlain(buffers);
  std::size_t got = 0;
  ::ERR_clear_error();
  errno = 0;
  const int result =
      ::SSL_read_ex(ssl_.get(), buffers.front().iov_base, buffers.front().iov_len, &got);
  const int error = errno;
  if (result == 1) {
    drained_ = isDrained(::SSL_get_rbio(ssl_.get())) && ::SSL_has_pending(ssl_.get()) == 0;
    return got;
  }
  return sslFailed(result, error);
}

void Stream::finishWriting() {
  if (fd_) ::shutdown(fd_.get(), SHUT_WR);
}

void Stream::close() {
  ssl_.reset();  // Says nothing: a forked child or a broken connection must stay silent.
  fd_.reset();
}

}  // namespace farandole::transport
