#include "base/status.h"

#include <cerrno>
#include <cstring>

#include "base/limits.h"

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

const Status::Details& Status::noDetails() {
  // Never destroyed: threads may ask while the process exits.
  static const Details* const none = new Details;
  return *none;
}

Status::Status(Code code, std::string message) : code_(code) {
  ownDetails().message = std::move(message);
}

Status& Status::operator=(const Status& other) {
  if (this != &other) *this = Status(other);
  return *this;
}

Status::Details& Status::ownDetails() {
  if (!details_) details_ = std::make_unique<Details>();
  return *details_;
}

Status& Status::withRank(int rank, std::string host) {
  Details& details = ownDetails();
  details.rank = rank;
  details.host = std::move(host);
  return *this;
}

Status& Status::withTensor(std::string tensor) {
  ownDetails().tensor = std::move(tensor);
  return *this;
}

Status Status::fromErrno(std::string_view what, int error) {
  char text[128] = {};
  // The GNU strerror_r returns the text, not always in the buffer given.
  const char* said = ::strerror_r(error, text, sizeof text);
  std::string message = std::string(what) + ": " + said;
  if (error == EMFILE) message += ": " + describeFileLimit();
  return {Code::kUnavailable, std::move(message)};
}

}  // namespace farandole
