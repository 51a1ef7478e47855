// Error: what every function of the C++ API throws. (The C ABI returns codes.)
#pragma once

#include <farandole.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace farandole {
inline namespace v1 {

// What the codes mean: farandole_code.
enum class Code : int {
  kOk = FARANDOLE_OK,
  kInvalidArgument = FARANDOLE_INVALID_ARGUMENT,
  kMismatch = FARANDOLE_MISMATCH,
  kDuplicateName = FARANDOLE_DUPLICATE_NAME,
  kPeerLost = FARANDOLE_PEER_LOST,
  kTimeout = FARANDOLE_TIMEOUT,
  kInterrupted = FARANDOLE_INTERRUPTED,
  kCancelled = FARANDOLE_CANCELLED,
  kShutdown = FARANDOLE_SHUTDOWN,
  kOutOfMemory = FARANDOLE_OUT_OF_MEMORY,
  kUnavailable = FARANDOLE_UNAVAILABLE,
  kForked = FARANDOLE_FORKED,
  kNotInitialised = FARANDOLE_NOT_INITIALISED,
  kInternal = FARANDOLE_INTERNAL,
};

// A failure. what() says what happened, to whom, and what to do. A value that owns its texts.
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& message, int rank = -1, std::string host = {},
        std::string tensor = {})
      : std::runtime_error(message),
        code_(code),
        rank_(rank),
        host_(std::move(host)),
        tensor_(std::move(tensor)) {}

  Code code() const noexcept { return code_; }
  // The rank at fault, or -1.
  int rank() const noexcept { return rank_; }
  // The host of that rank, or "".
  const std::string& host() const noexcept { return host_; }
  // The name of the operation, or "".
  const std::string& tensor() const noexcept { return tensor_; }

 private:
  Code code_;
  int rank_;
  std::string host_;
  std::string tensor_;
};

namespace detail {

inline Error makeError(farandole_code code, const farandole_error& error) {
  const auto text = [](const char* s) { return std::string(s != nullptr ? s : ""); };
  std::string message = text(error.message);
  if (message.empty()) message = text(farandole_code_name(code));
  return {static_cast<Code>(code), message, error.rank, text(error.host), text(error.tensor)};
}

// Throws the error of the calling thread's last call, unless that call returned FARANDOLE_OK.
inline void check(farandole_code code) {
  if (code == FARANDOLE_OK) return;
  farandole_error error{};
  error.struct_size = sizeof(error);
  error.rank = -1;
  if (farandole_last_error(&error) != FARANDOLE_OK || error.code != code) {
    error = {};
    error.rank = -1;
  }
  throw makeError(code, error);
}

}  // namespace detail
}  // namespace v1
}  // namespace farandole
