// Status: the result of anything that can fail, as a value. Result<T>: a Status or a T.
//
// A Status carries what a person needs to act: what happened, and where it is known the rank at
// fault, its host and the tensor concerned. Both are ordinary values: distinct objects may be used
// from distinct threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace farandole {

// Numeric values equal farandole_code (checked in api/c_api.cc).
enum class Code : int {
  kOk = 0,
  kInvalidArgument = 1,
  kMismatch = 2,
  kDuplicateName = 3,
  kPeerLost = 4,
  kTimeout = 5,
  kInterrupted = 6,
  kCancelled = 7,
  kShutdown = 8,
  kOutOfMemory = 9,
  kUnavailable = 10,
  kForked = 11,
  kNotInitialised = 12,
  kInternal = 13,
};

std::string_view codeName(Code code);

// A status that is ok consists of two words and costs nothing, because one passes through every
// call.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);
  // Inline: most are ok, and copying one is copying two words.
  Status(const Status& other) : code_(other.code_) {
    if (other.details_) details_ = std::make_unique<Details>(*other.details_);
  }
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  static Status invalid(std::string message) {
    return {Code::kInvalidArgument, std::move(message)};
  }
  static Status internal(std::string message) { return {Code::kInternal, std::move(message)}; }
  static Status unavailable(std::string message) {
    return {Code::kUnavailable, std::move(message)};
  }
  static Status timeout(std::string message) { return {Code::kTimeout, std::move(message)}; }
  static Status outOfMemory(std::string message) {
    return {Code::kOutOfMemory, std::move(message)};
  }
  // "what: strerror(error)"
  static Status fromErrno(std::string_view what, int error);

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return details().message; }
  int rank() const { return details().rank; }
  const std::string& host() const { return details().host; }
  const std::string& tensor() const { return details().tensor; }

  // Who is at fault; for chaining: return Status(...).withRank(3, "alpha").
  Status& withRank(int rank, std::string host = {});
  Status& withTensor(std::string tensor);

 private:
  struct Details {
    int rank = -1;
    std::string message;
    std::string host;
    std::string tensor;
  };
  static const Details& noDetails();

  const Details& details() const { return details_ ? *details_ : noDetails(); }
  Details& ownDetails();

  Code code_ = Code::kOk;
  std::unique_ptr<Details> details_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : content_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : content_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return std::holds_alternative<T>(content_); }
  // Ok if there is a value.
  Status status() const { return ok() ? Status() : std::get<Status>(content_); }
  // Call it only if ok().
  T& value() & { return std::get<T>(content_); }
  const T& value() const& { return std::get<T>(content_); }
  T&& value() && { return std::get<T>(std::move(content_)); }
  T* operator->() { return &value(); }
  T& operator*() & { return value(); }

 private:
  std::variant<Status, T> content_;
};

}  // namespace farandole

// Returns from the enclosing function with the status of expr unless it is ok.
#define FARANDOLE_RETURN_IF_ERROR(expr)                       \
  do {                                                        \
    if (auto status_of_expr = (expr); !status_of_expr.ok()) { \
      return status_of_expr;                                  \
    }                                                         \
  } while (false)

// Gives `place`, a variable or its declaration, the value of an expression that is a Result, or
// returns from the enclosing function with its status: FARANDOLE_ASSIGN_OR_RETURN(auto key,
// make()).
#define FARANDOLE_ASSIGN_OR_RETURN(place, ...) \
  FARANDOLE_ASSIGN_RESULT_(FARANDOLE_JOIN_(resultOfLine, __LINE__), place, __VA_ARGS__)
#define FARANDOLE_ASSIGN_RESULT_(result, place, ...) \
  auto result = (__VA_ARGS__);                       \
  if (!result.ok()) return result.status();          \
  place = std::move(result).value()
#define FARANDOLE_JOIN_(a, b) FARANDOLE_JOIN_NOW_(a, b)
#define FARANDOLE_JOIN_NOW_(a, b) a##b
