#include "launch/output/output_writer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"

namespace farandole::launch::output {

struct OutputWriter::Shared {
  explicit Shared(int fd) : wakeFd(fd) {}

  const int wakeFd;
  std::array<std::atomic<int>, 2> errors{};  // by stream
  std::atomic<std::size_t> pending{0};       // queued or being written
  std::atomic<bool> tellWhenIdle{false};

  Mutex mutex;
  Condition ready;
  std::deque<std::pair<Stream, std::string>> queue GUARDED_BY(mutex);
  std::vector<std::string> spares GUARDED_BY(mutex);
  bool stop GUARDED_BY(mutex) = false;
};

namespace {

constexpr std::size_t kFew = 4096;  // of the launcher's own words
constexpr std::size_t kPiece = PIPE_BUF;
constexpr Duration kReaderGone = std::chrono::seconds(10);
constexpr std::size_t kMostSpares = 4;
constexpr std::size_t kLeastSpare = 16 << 10;
constexpr std::size_t kLargestSpare = 4 << 20;

void wake(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(fd, &one, sizeof(one));
}

// What is written without waiting for a reader: all of it to an ordinary file, as much as there is
// room for to a pipe, nothing where the kernel does not promise it (a terminal, which may be on
// hold).
std::size_t writeAtOnce(int fd, const std::string& text) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return 0;
  ssize_t n = 0;
  if (S_ISREG(info.st_mode)) {
    n = ::write(fd, text.data(), text.size());
  } else {
    const iovec part{const_cast<char*>(text.data()), text.size()};
    n = ::pwritev2(fd, &part, 1, -1, RWF_NOWAIT);
  }
  return n < 0 ? 0 : static_cast<std::size_t>(n);
}

// The same, for the launcher itself: in pieces that a pipe which is ready takes as a whole, so that
// only poll ever waits.
int writeWithin(int fd, std::string_view text, Duration timeout) {
  while (!text.empty()) {
    pollfd item{fd, POLLOUT, 0};
    const int ready = ::poll(&item, 1, static_cast<int>(timeout / std::chrono::milliseconds(1)));
    if (ready == 0) return ETIMEDOUT;
    const ssize_t n = ready < 0 ? -1 : ::write(fd, text.data(), std::min(text.size(), kPiece));
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno != EINTR && errno != EAGAIN) {
      return errno;
    }
  }
  return 0;
}

// 0, or the errno.
int writeAll(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n >= 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN) {
      // Another process has made the shared description non-blocking. The reader decides how long
      // this takes; poll reports its disappearance.
      pollfd item{fd, POLLOUT, 0};
      ::poll(&item, 1, 1000);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

OutputWriter::OutputWriter(int wakeFd) : shared_(std::make_shared<Shared>(wakeFd)) {}

OutputWriter::~OutputWriter() {
  const MutexLock lock(shared_->mutex);
  shared_->stop = true;
  shared_->ready.notifyAll();
}

void OutputWriter::push(Stream stream, std::string text) {
  if (text.empty() || error(stream) != 0) return;
  // There is no thread yet. What ends in an error is tried again by the thread, which tells.
  if (!started_ && text.size() <= kFew) {
    text.erase(0, writeAtOnce(static_cast<int>(stream) + 1, text));
    if (text.empty()) return;
  }
  if (!started_) {
    auto thread = startThread("fd-output", [shared = shared_] { run(shared); });
    // There may be one later.
    if (!thread.ok()) return writeHere(stream, text);
    started_ = true;
    // Detached, not joined: it may hang in a write for as long as the reader likes.
    thread->detach();
  }
  const MutexLock lock(shared_->mutex);
  shared_->pending += text.size();
  shared_->queue.emplace_back(stream, std::move(text));
  shared_->ready.notifyAll();
}

void OutputWriter::writeHere(Stream stream, const std::string& text) {
  const int error = writeWithin(static_cast<int>(stream) + 1, text, kReaderGone);
  if (error == 0) return;
  shared_->errors[static_cast<std::size_t>(stream)] = error;
  wake(shared_->wakeFd);
}

std::size_t OutputWriter::pending() const { return shared_->pending; }

void OutputWriter::tellWhenIdle() { shared_->tellWhenIdle = true; }

std::string OutputWriter::spare() {
  const MutexLock lock(shared_->mutex);
  if (shared_->spares.empty()) return {};
  std::string text = std::move(shared_->spares.back());
  shared_->spares.pop_back();
  return text;
}

int OutputWriter::error(Stream stream) const {
  return shared_->errors[static_cast<std::size_t>(stream)];
}

void OutputWriter::run(const std::shared_ptr<Shared>& shared) {
  const MutexLock lock(shared->mutex);
  while (true) {
    // No deadline: the owner's destructor ends this wait.
    while (!shared->stop && shared->queue.empty()) {
      shared->ready.wait(shared->mutex, Deadline::never());
    }
    if (shared->stop) return;
    auto [stream, text] = std::move(shared->queue.front());
    shared->queue.pop_front();
    int error = 0;
    {
      const MutexUnlock unlocked(shared->mutex);
      auto& known = shared->errors[static_cast<std::size_t>(stream)];
      if (known == 0) error = writeAll(static_cast<int>(stream) + 1, text);
      if (error != 0) known = error;
    }
    if (shared->stop) return;
    const std::size_t before = shared->pending.fetch_sub(text.size());
    const std::size_t after = before - text.size();
    if (text.capacity() >= kLeastSpare && text.capacity() <= kLargestSpare &&
        shared->spares.size() < kMostSpares) {
      text.clear();
      shared->spares.push_back(std::move(text));
    }
    // Only while the owner lives (stop is false under the mutex) does wakeFd exist.
    const bool idle = after == 0 && shared->tellWhenIdle;
    if (error != 0 || idle || (before > kLow && after <= kLow)) wake(shared->wakeFd);
  }
}

}  // namespace farandole::launch::output
