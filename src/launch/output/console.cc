#include "launch/output/console.h"

#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace farandole::launch::output {
namespace {

constexpr const char* kErase = "\r\033[K";

bool sameFile(int a, int b) {
  struct stat first {};
  struct stat second {};
  return ::fstat(a, &first) == 0 && ::fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

Console::Console(UniqueFd event, bool shared)
    : event_(std::move(event)), out_(std::make_unique<OutputWriter>(event_.get())) {
  if (!shared) err_ = std::make_unique<OutputWriter>(event_.get());
  const char* kind = std::getenv("TERM");
  terminal_ = ::isatty(STDERR_FILENO) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

Result<Console> Console::open() {
  UniqueFd event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!event) return Status::fromErrno("cannot create an eventfd", errno);
  return Console(std::move(event), sameFile(STDOUT_FILENO, STDERR_FILENO));
}

OutputWriter& Console::writer(Stream stream) const {
  return stream == Stream::kErr && err_ ? *err_ : *out_;
}

void Console::write(Stream stream, std::string text) {
  if (text.empty()) return;
  // The line moves down: it is erased, and drawn again behind the text.
  if (!status_.empty() && sharesTerminal(stream)) text = kErase + text + status_;
  writer(stream).push(stream, std::move(text));
}

void Console::setStatus(const std::string& text) {
  if (!terminal_) return;
  winsize size{};
  std::string line = text;
  // A line that wraps could not be erased.
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) {
    line.resize(std::min<std::size_t>(line.size(), size.ws_col - 1U));
  }
  if (line == status_) return;
  status_ = std::move(line);
  writer(Stream::kErr).push(Stream::kErr, kErase + status_);
}

void Console::message(std::string_view text) {
  write(Stream::kErr, "farandole: " + std::string(text) + "\n");
}

void Console::acknowledge() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = ::read(event_.get(), &count, sizeof(count));
}

bool Console::congested() const {
  return out_->pending() > OutputWriter::kHigh || (err_ && err_->pending() > OutputWriter::kHigh);
}

bool Console::idle() const { return out_->idle() && (!err_ || err_->idle()); }

void Console::tellWhenIdle() {
  out_->tellWhenIdle();
  if (err_) err_->tellWhenIdle();
}

bool wantsColour(Stream stream) {
  const char* refused = std::getenv("NO_COLOR");
  if (refused != nullptr && *refused != '\0') return false;
  const char* terminal = std::getenv("TERM");
  if (terminal == nullptr || std::string_view(terminal) == "dumb") return false;
  return ::isatty(static_cast<int>(stream) + 1) == 1;
}

}  // namespace farandole::launch::output
