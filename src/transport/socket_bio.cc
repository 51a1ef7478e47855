#include "transport/socket_bio.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace farandole::transport {
namespace {

// Enough for a small message. What is read ahead is copied once more: little of a large one.
constexpr std::size_t kReadAhead = std::size_t{6} << 10;

struct Socket {
  int fd = -1;
  bool ahead = false;
  bool drained = false;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::array<std::uint8_t, kReadAhead> buffer;
};

Socket& socketOf(BIO* bio) { return *static_cast<Socket*>(::BIO_get_data(bio)); }

int writeSome(BIO* bio, const char* bytes, int length) {
  ::BIO_clear_retry_flags(bio);
  const Socket& socket = socketOf(bio);
  const ssize_t sent =
      ::send(socket.fd, bytes, static_cast<std::size_t>(length), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && notNow(errno)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int readSome(BIO* bio, char* bytes, int length) {
  ::BIO_clear_retry_flags(bio);
  if (length <= 0) return 0;
  const auto wanted = static_cast<std::size_t>(length);
  Socket& socket = socketOf(bio);
  if (socket.begin < socket.end) {
    const std::size_t part = std::min(wanted, socket.end - socket.begin);
    std::memcpy(bytes, socket.buffer.data() + socket.begin, part);
    socket.begin += part;
    return static_cast<int>(part);
  }
  const std::array<iovec, 2> buffers{
      {{bytes, wanted}, {socket.buffer.data(), socket.ahead ? socket.buffer.size() : 0}}};
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(buffers.data());
  message.msg_iovlen = buffers.size();
  const ssize_t got = ::recvmsg(socket.fd, &message, MSG_DONTWAIT);
  if (got < 0 && notNow(errno)) {
    socket.drained = true;
    BIO_set_retry_read(bio);
  }
  if (got == 0) ::BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  if (got <= 0) return static_cast<int>(got);
  const std::size_t direct = std::min(static_cast<std::size_t>(got), wanted);
  socket.begin = 0;
  socket.end = static_cast<std::size_t>(got) - direct;
  socket.drained = static_cast<std::size_t>(got) < wanted + buffers[1].iov_len;
  return static_cast<int>(direct);
}

int forget(BIO* bio) {
  delete static_cast<Socket*>(::BIO_get_data(bio));
  ::BIO_set_data(bio, nullptr);
  return 1;
}

long control(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  switch (command) {
    case BIO_CTRL_FLUSH: return 1;
    case BIO_CTRL_EOF: return ::BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
    default: return 0;
  }
}

BIO_METHOD* makeMethod() {
  BIO_METHOD* method =
      ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "farandole socket");
  if (method == nullptr) return nullptr;
  ::BIO_meth_set_write(method, writeSome);
  ::BIO_meth_set_read(method, readSome);
  ::BIO_meth_set_ctrl(method, control);
  ::BIO_meth_set_destroy(method, forget);
  return method;
}

}  // namespace

BIO* newSocketBio(int fd) {
  static BIO_METHOD* const kMethod = makeMethod();
  BIO* bio = kMethod == nullptr ? nullptr : ::BIO_new(kMethod);
  if (bio == nullptr) return nullptr;
  auto* socket = new Socket;
  socket->fd = fd;
  ::BIO_set_data(bio, socket);
  ::BIO_set_init(bio, 1);
  return bio;
}

void readAhead(BIO* bio) { socketOf(bio).ahead = true; }

bool isDrained(BIO* bio) {
  const Socket& socket = socketOf(bio);
  return socket.begin == socket.end && socket.drained;
}

}  // namespace farandole::transport
