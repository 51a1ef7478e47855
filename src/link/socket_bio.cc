#include "link/socket_bio.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

namespace farandole::link {
namespace {

int fdOf(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(::BIO_get_data(bio)));
}

bool notNow(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

int writeSome(BIO* bio, const char* bytes, int length) {
  ::BIO_clear_retry_flags(bio);
  const ssize_t sent =
      ::send(fdOf(bio), bytes, static_cast<std::size_t>(length), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && notNow(errno)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int readSome(BIO* bio, char* bytes, int length) {
  ::BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(fdOf(bio), bytes, static_cast<std::size_t>(length), MSG_DONTWAIT);
  if (got < 0 && notNow(errno)) BIO_set_retry_read(bio);
  if (got == 0) ::BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(got);
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
  return method;
}

}  // namespace

BIO* newSocketBio(int fd) {
  static BIO_METHOD* const kMethod = makeMethod();
  BIO* bio = kMethod == nullptr ? nullptr : ::BIO_new(kMethod);
  if (bio == nullptr) return nullptr;
  ::BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  ::BIO_set_init(bio, 1);
  return bio;
}

}  // namespace farandole::link
