#include "base/status.h"

#include <cstring>

namespace farandole {

std::string_view codeName(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInvalidArgument: return "invalid argument";
    case Code::kMismatch: return "mismatch";
    case Code::kDuplicateName: return "duplicate name";
    case Code::kPeerLost: return "peer lost";
    case Code::kTimeout: return "timeout";
    case Code::kInterrupted: return "interrupted";
    case Code::kCancelled: return "cancelled";
    case Code::kShutdown: return "shut down";
    case Code::kOutOfMemory: return "out of memory";
    case Code::kUnavailable: return "unavailable";
    case Code::kForked: return "in a forked child";
    case Code::kNotInitialised: return "not initialised";
    case Code::kInternal: return "internal error";
  }
  return "unknown";
}

Status Status::fromErrno(std::string_view what, int error) {
  char text[128] = {};
  // The GNU strerror_r returns the text, not always in the buffer given.
  const char* said = ::strerror_r(error, text, sizeof text);
  return {Code::kUnavailable, std::string(what) + ": " + said};
}

}  // namespace farandole
