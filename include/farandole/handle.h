// Handle: an operation that has been started.
#pragma once

#include <farandole.h>
#include <farandole/error.h>
#include <farandole/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace farandole {
inline namespace v1 {

// The result of an operation. `data` is the caller's output buffer or memory that the handle owns;
// both and the spans are valid as long as the handle.
struct Result {
  Code code = Code::kOk;  // kTimeout while the operation is pending
  void* data = nullptr;   // the output
  std::size_t bytes = 0;
  std::span<const std::int64_t> shape{};   // of the output
  std::span<const std::int64_t> splits{};  // alltoall, gather, allgather: rows from each member
  int lastJoined = -1;                     // join: the last rank to join
  int source = -1;                         // recv: the sender
  std::optional<Error> error{};            // why the operation failed, if it did
};

// Owns one started operation; move-only. Different handles may be used by different threads at the
// same time, one handle by one thread at a time.
//
// The buffers of an operation belong to Farandole until it is done. The destructor of a pending
// handle therefore withdraws the operation if no other rank has been told to execute it, and waits
// for its end otherwise: an exception between start and wait() never leaves a buffer that is
// written to after its owner is gone. (A send or recv cannot be withdrawn: the destructor waits for
// the peer.) Call detach() to let the operation go on; the caller then keeps the buffers alive.
class [[nodiscard]] Handle {
 public:
  Handle() = default;
  // Takes over a handle of the C ABI, for programs that use both.
  explicit Handle(farandole_handle raw) : raw_(raw) {}
  Handle(Handle&& other) noexcept : raw_(std::exchange(other.raw_, 0)) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      raw_ = std::exchange(other.raw_, 0);
    }
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { reset(); }

  // True if there is an operation, which is not the case after a move or detach().
  bool valid() const noexcept { return raw_ != 0; }
  // For calls of the C ABI. The operation is still owned by this handle.
  farandole_handle raw() const noexcept { return raw_; }

  // Waits until the operation is done; throws its error if it failed. A lost rank ends the wait, a
  // signal does not.
  void wait() {
    farandole_code code = FARANDOLE_INTERRUPTED;
    while (code == FARANDOLE_INTERRUPTED) code = farandole_wait(raw_, -1);
    checkDone(code);
  }

  // As wait(), for at most that long. False after the timeout: the operation goes on, and may be
  // waited for again.
  bool wait(std::chrono::milliseconds timeout) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + timeout;
    for (;;) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
      const farandole_code code =
          farandole_wait(raw_, std::max<std::chrono::milliseconds::rep>(left, 0));
      if (code == FARANDOLE_TIMEOUT) return false;
      if (code == FARANDOLE_INTERRUPTED) {
        if (Clock::now() >= deadline) return false;
        continue;
      }
      checkDone(code);
      return true;
    }
  }

  // True if wait() would return, or throw, at once. Also makes a little progress on pending work.
  bool done() const {
    std::int32_t result = 0;
    detail::check(farandole_test(raw_, &result));
    return result != 0;
  }

  // Withdraws the operation, which then ends with Code::kCancelled. False if it is too late: other
  // ranks have been told to execute it, and it goes on.
  bool cancel() { return farandole_cancel(raw_) == FARANDOLE_OK; }

  // Gives up the handle without ending the operation, whose buffers must outlive it.
  void detach() noexcept {
    if (raw_ != 0) farandole_release(std::exchange(raw_, 0));
  }

  // Does not wait; see Result::code.
  Result result() const {
    farandole_result raw = emptyResult();
    detail::check(farandole_get_result(raw_, &raw));
    const auto code = static_cast<farandole_code>(raw.code);
    Result result{.code = static_cast<Code>(raw.code),
                  .data = raw.data,
                  .bytes = raw.bytes,
                  .shape = numbers(raw.shape, raw.ndim),
                  .splits = numbers(raw.splits, raw.nsplits),
                  .lastJoined = raw.last_joined,
                  .source = raw.source};
    if (code != FARANDOLE_OK && code != FARANDOLE_TIMEOUT) {
      result.error = detail::makeError(code, raw.error);
    }
    return result;
  }
  // The output as elements of its type; valid as long as this handle.
  template <Element T>
  std::span<const T> data() const {
    const Result r = result();
    return {static_cast<const T*>(r.data), r.data == nullptr ? 0 : r.bytes / sizeof(T)};
  }
  // The shape of the output.
  std::vector<std::int64_t> shape() const {
    const std::span<const std::int64_t> shape = result().shape;
    return {shape.begin(), shape.end()};
  }
  // The number of rows received from each member.
  std::vector<std::int64_t> splits() const {
    const std::span<const std::int64_t> splits = result().splits;
    return {splits.begin(), splits.end()};
  }

 private:
  static farandole_result emptyResult() {
    farandole_result empty{};
    empty.struct_size = sizeof(empty);
    empty.error.struct_size = sizeof(empty.error);
    return empty;
  }

  static std::span<const std::int64_t> numbers(const std::int64_t* values, std::int32_t count) {
    if (values == nullptr || count <= 0) return {};
    return {values, static_cast<std::size_t>(count)};
  }

  // Throws the error of a failed operation, whose description stays with the handle.
  void checkDone(farandole_code code) const {
    if (code == FARANDOLE_OK) return;
    farandole_result raw = emptyResult();
    if (raw_ == 0 || farandole_get_result(raw_, &raw) != FARANDOLE_OK || raw.code != code) {
      detail::check(code);
    }
    throw detail::makeError(code, raw.error);
  }

  void reset() noexcept {
    if (raw_ == 0) return;
    std::int32_t finished = 0;
    if (farandole_test(raw_, &finished) == FARANDOLE_OK && finished == 0 &&
        farandole_cancel(raw_) != FARANDOLE_OK) {
      // All members have been told to execute it, so it ends by itself, or because a rank is lost.
      while (farandole_wait(raw_, -1) == FARANDOLE_INTERRUPTED) {
      }
    }
    farandole_release(std::exchange(raw_, 0));
  }

  farandole_handle raw_ = 0;
};

namespace detail {

inline Handle submit(const farandole_request& request) {
  farandole_handle raw = 0;
  check(farandole_submit(&request, 1, &raw));
  return Handle(raw);
}

// Starts all of them, or none if it throws.
inline std::vector<Handle> submit(std::span<const farandole_request> requests) {
  std::vector<Handle> handles;
  if (requests.empty()) return handles;
  handles.reserve(requests.size());
  std::vector<farandole_handle> raw(requests.size(), 0);
  check(farandole_submit(requests.data(), requests.size(), raw.data()));
  for (const farandole_handle one : raw) handles.emplace_back(one);
  return handles;
}

}  // namespace detail

}  // namespace v1
}  // namespace farandole
