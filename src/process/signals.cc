#include "process/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace farandole::process {
namespace {

bool isIgnored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// Asked once: when a job is started again, the process still has the settings of the first time.
const InheritedSignals& ownSignals() {
  static const InheritedSignals own = [] {
    InheritedSignals found;
    ::sigprocmask(SIG_BLOCK, nullptr, &found.mask);
    ::sigaction(SIGPIPE, nullptr, &found.pipe);
    return found;
  }();
  return own;
}

}  // namespace

Result<SignalEvents> SignalEvents::open() {
  SignalEvents events;
  events.inherited_ = ownSignals();
  sigset_t read;
  sigemptyset(&read);
  for (const int signal : {SIGCHLD, SIGTERM, SIGTSTP, SIGCONT}) sigaddset(&read, signal);
  for (const int signal : {SIGINT, SIGHUP}) {
    if (!isIgnored(signal)) sigaddset(&read, signal);
  }
  // An ignored SIGCHLD would make the kernel reap the ranks behind our back.
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t blocked = read;
  // Reading the terminal from the background then fails instead of stopping us (stdin_pump.h).
  sigaddset(&blocked, SIGTTIN);
  if (::sigprocmask(SIG_BLOCK, &blocked, nullptr) != 0) {
    return Status::fromErrno("cannot block signals", errno);
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, nullptr);
  events.fd_.reset(::signalfd(-1, &read, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!events.fd_) return Status::fromErrno("cannot create a signalfd", errno);
  return events;
}

std::optional<int> SignalEvents::next() {
  signalfd_siginfo info{};
  ssize_t n = 0;
  do {
    n = ::read(fd_.get(), &info, sizeof(info));
  } while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(sizeof(info))) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

std::string signalName(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

}  // namespace farandole::process
