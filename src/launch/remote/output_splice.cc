#include "launch/remote/output_splice.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace farandole::launch::remote {
namespace {

// Room for sshd to find something to do while we are not on the processor; a refusal costs speed.
constexpr int kSplicePipeBytes = 1 << 20;
// A page is copied as quickly as it is moved.
constexpr std::size_t kLeast = 4096;

}  // namespace

void OutputSplice::open(int to) {
  struct stat info {};
  if (::fstat(to, &info) != 0 || !S_ISFIFO(info.st_mode)) return;
  to_ = to;
  ::fcntl(to, F_SETPIPE_SZ, kSplicePipeBytes);
  roomy_ = ::fcntl(to, F_GETPIPE_SZ) >= kSplicePipeBytes;
}

std::size_t OutputSplice::worth(int from, std::size_t most) const {
  int available = 0;
  if (!possible() || busy() || ::ioctl(from, FIONREAD, &available) != 0) return 0;
  if (available < static_cast<int>(kLeast)) return 0;
  return std::min(most, static_cast<std::size_t>(available));
}

OutputSplice::Begun OutputSplice::begin(int from, std::string_view head, std::size_t bytes) {
  ssize_t n = 0;
  do {
    n = ::write(to_, head.data(), head.size());  // less than PIPE_BUF: all of it, or nothing
  } while (n < 0 && errno == EINTR);
  if (n < 0) return errno == EAGAIN ? Begun::kNoRoom : Begun::kBroken;
  from_ = from;
  owed_ = bytes;
  return Begun::kYes;
}

bool OutputSplice::advance() {
  while (busy()) {
    const ssize_t n = ::splice(from_, nullptr, to_, nullptr, owed_, SPLICE_F_NONBLOCK);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return true;
    if (n <= 0) return false;
    owed_ -= static_cast<std::size_t>(n);
  }
  return true;
}

std::string OutputSplice::recall() {
  std::string bytes(owed_, '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t n = ::read(from_, bytes.data() + have, bytes.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;  // never: they are in the pipe, which nobody else reads
    have += static_cast<std::size_t>(n);
  }
  owed_ = 0;
  return bytes;
}

}  // namespace farandole::launch::remote
