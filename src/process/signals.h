// The launcher's signals, read as events. Used by the main thread only, created before any thread.
#pragma once

#include <signal.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace farandole::process {

// What the launcher was started with, and what its ranks are therefore given back.
struct InheritedSignals {
  sigset_t mask{};
  struct sigaction pipe {};
};

// Owns the signalfd. From then on the signals it reads are blocked in this process and SIGPIPE is
// ignored. INT and HUP that were ignored at the start (nohup, a background job of a script) stay
// ignored.
class SignalEvents {
 public:
  static Result<SignalEvents> open();

  int fd() const { return fd_.get(); }
  // The next signal that has arrived, if any.
  std::optional<int> next();
  const InheritedSignals& inherited() const { return inherited_; }

 private:
  SignalEvents() = default;
  UniqueFd fd_;
  InheritedSignals inherited_;
};

// "SIGTERM", or "signal 77" for numbers without a name.
std::string signalName(int signal);

}  // namespace farandole::process
