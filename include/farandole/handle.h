// Handle: an operation that has been started.
#pragma once

#include <farandole.h>
#include <farandole/error.h>
#include <farandole/types.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

namespace farandole {
inline namespace v1 {

// Owns one started operation; move-only. Distinct handles may be used from distinct threads, one
// handle from one thread at a time.
//
// The operation's buffers belong to Farandole until it is done. Therefore the destructor of a
// pending handle withdraws the operation if no other rank has been told to execute it, and waits
// for its end otherwise: an exception between start and wait() never leaves a buffer being written
// to after its owner is gone. detach() is for those who promise to keep the buffers alive.
class [[nodiscard]] Handle {
 public:
  Handle() = default;
  // Takes over a handle of the C ABI.
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

  // Starts what the request describes.
  static Handle submit(const farandole_request& request) {
    farandole_handle raw = 0;
    detail::check(farandole_submit(&request, 1, &raw));
    return Handle(raw);
  }
  // All or none.
  static std::vector<Handle> submit(std::span<const farandole_request> requests) {
    std::vector<farandole_handle> raw(requests.size(), 0);
    std::vector<Handle> handles;
    handles.reserve(requests.size());
    if (requests.empty()) return handles;
    detail::check(farandole_submit(requests.data(), requests.size(), raw.data()));
    for (const farandole_handle one : raw) handles.emplace_back(one);
    return handles;
  }

  bool valid() const noexcept { return raw_ != 0; }
  farandole_handle raw() const noexcept { return raw_; }

  // Until done; throws the operation's error. A lost rank ends it; a signal does not.
  void wait() {
    farandole_code code = FARANDOLE_INTERRUPTED;
    while (code == FARANDOLE_INTERRUPTED) code = farandole_wait(raw_, -1);
    checkDone(code);
  }

  // As wait(), but gives up after the timeout: false, and the operation goes on.
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

  // True when wait() would return, or throw, at once.
  bool done() const {
    std::int32_t result = 0;
    detail::check(farandole_test(raw_, &result));
    return result != 0;
  }

  // True if the operation was withdrawn; false if it is too late and it goes on.
  bool cancel() { return farandole_cancel(raw_) == FARANDOLE_OK; }

  // Lets the operation go on by itself. Its buffers must outlive it.
  void detach() noexcept {
    if (raw_ != 0) farandole_release(std::exchange(raw_, 0));
  }

  // ---- Results, once done; valid until the handle goes.

  farandole_result result() const {
    farandole_result result{};
    result.struct_size = sizeof(result);
    result.error.struct_size = sizeof(result.error);
    detail::check(farandole_get_result(raw_, &result));
    return result;
  }
  template <Element T>
  std::span<const T> data() const {
    const farandole_result r = result();
    return {static_cast<const T*>(r.data), r.data == nullptr ? 0 : r.bytes / sizeof(T)};
  }
  // Of the output.
  std::vector<std::int64_t> shape() const {
    const farandole_result r = result();
    return copy(r.shape, r.ndim);
  }
  // Rows received from each member.
  std::vector<std::int64_t> splits() const {
    const farandole_result r = result();
    return copy(r.splits, r.nsplits);
  }

 private:
  static std::vector<std::int64_t> copy(const std::int64_t* values, std::int32_t count) {
    if (values == nullptr || count <= 0) return {};
    return {values, values + count};
  }

  // The description of a failed operation stays with its handle.
  void checkDone(farandole_code code) const {
    if (code == FARANDOLE_OK) return;
    farandole_result r{};
    r.struct_size = sizeof(r);
    r.error.struct_size = sizeof(r.error);
    if (raw_ == 0 || farandole_get_result(raw_, &r) != FARANDOLE_OK || r.code != code) {
      detail::check(code);
    }
    detail::throwError(code, r.error);
  }

  void reset() noexcept {
    if (raw_ == 0) return;
    std::int32_t finished = 0;
    if (farandole_test(raw_, &finished) == FARANDOLE_OK && finished == 0 &&
        farandole_cancel(raw_) != FARANDOLE_OK) {
      // Every member has been told to execute it: it ends by itself, or with a lost rank.
      while (farandole_wait(raw_, -1) == FARANDOLE_INTERRUPTED) {
      }
    }
    farandole_release(std::exchange(raw_, 0));
  }

  farandole_handle raw_ = 0;
};

}  // namespace v1
}  // namespace farandole
