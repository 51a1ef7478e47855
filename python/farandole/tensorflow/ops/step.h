// One execution of a kernel: the operations it started, and the call that tells TensorFlow of their
// end.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "library.h"
#include "pending.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace farandole_ops {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Lost ranks are kInternal on purpose: sessions of tf.compat.v1 that recover by themselves take
// kUnavailable and kAborted for something that another try would mend.
inline absl::StatusCode statusCode(int code) {
  switch (code) {
    case FARANDOLE_INVALID_ARGUMENT:
    case FARANDOLE_MISMATCH: return absl::StatusCode::kInvalidArgument;
    case FARANDOLE_DUPLICATE_NAME: return absl::StatusCode::kAlreadyExists;
    case FARANDOLE_CANCELLED: return absl::StatusCode::kCancelled;
    case FARANDOLE_OUT_OF_MEMORY: return absl::StatusCode::kResourceExhausted;
    case FARANDOLE_SHUTDOWN:
    case FARANDOLE_FORKED:
    case FARANDOLE_NOT_INITIALISED: return absl::StatusCode::kFailedPrecondition;
    default: return absl::StatusCode::kInternal;
  }
}

inline absl::Status toStatus(const farandole_error& error, int code) {
  std::string text = "farandole: ";
  text += error.message != nullptr ? error.message : "";
  return absl::Status(statusCode(code), text);
}

inline absl::Status lastStatus(int code) {
  farandole_error error = {sizeof(farandole_error), 0, -1, 0, nullptr, nullptr, nullptr};
  library().last_error(&error);
  return toStatus(error, code);
}

// Where data goes that has no elements: never read or written, but not null.
inline void* nothing() {
  static char place[64];
  return place;
}

inline void* dataOf(const Tensor& tensor) {
  const auto bytes = tensor.tensor_data();
  return bytes.empty() ? nothing() : const_cast<char*>(bytes.data());
}

// Which thread waits for the outcome; Python's _reduction.py has the same numbers.
enum class AwaitedBy {
  kNobody = 0,  // gradients of a step are many, and the rest of it goes on meanwhile
  kProgram = 1,
  kLast = 2  // the last gradients of a step: nothing else is left to do
};

// Owns itself from submit() on. The last completion ends the step, on whichever thread has brought
// the operation to its end: Farandole's own, or TensorFlow's that waits for a moment in submit().
//
// TensorFlow cancels the rest of a step in which an operation failed. Farandole's operations
// deliberately ignore that: every rank gets the failure, and every rank goes on to run whatever does
// not depend on it, so that all ranks end the step alike and nothing is left over for the next one. Withdrawing what happens to be in flight on this rank would leave the others with
// operations that never end.
class Step {
 public:
  using Done = tensorflow::AsyncOpKernel::DoneCallback;
  // Takes what the operation at `index` left (splits and the like) into outputs.
  using Finish = std::function<void(OpKernelContext*, size_t index, const farandole_result&)>;

  Step(OpKernelContext* context, Done done, size_t count, Finish finish = {})
      : context_(context),
        done_(std::move(done)),
        finish_(std::move(finish)),
        handles_(count),
        left_(count),
        shares_(count + 1) {
    requests.assign(count, FARANDOLE_REQUEST_INIT);
    shapes.resize(count);
    names.resize(count);
    places_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      places_[i] = {this, i};
      requests[i].flags = FARANDOLE_FLAG_CALLBACK_ANYWHERE;
      requests[i].on_complete = &Step::onComplete;
      requests[i].on_complete_user = &places_[i];
    }
  }

  std::vector<farandole_request> requests;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::string> names;
  AwaitedBy awaitedBy = AwaitedBy::kProgram;

  void setShape(size_t index, const Tensor& tensor) {
    for (auto each : tensor.shape().dim_sizes()) shapes[index].push_back(each);
    requests[index].shape = shapes[index].data();
    requests[index].ndim = static_cast<int32_t>(shapes[index].size());
  }

  void setName(size_t index, std::string name) {
    if (name.empty()) return;
    names[index] = std::move(name);
    requests[index].name = names[index].c_str();
  }

  // The output at `index` is allocated when its size is known.
  void allocateLater(size_t index) {
    requests[index].allocate = &Step::allocate;
    requests[index].allocate_user = &places_[index];
  }

  void submit() {
    const int64_t moment = worthWaiting();
    for (auto& request : requests) {
      if (moment > 0) request.flags |= FARANDOLE_FLAG_WILL_WAIT;
    }
    id_ = pending().add();
    std::vector<farandole_handle> handles(requests.size());
    const int code = library().submit(requests.data(), requests.size(), handles.data());
    if (code != FARANDOLE_OK) {
      note(lastStatus(code));
      shares_.store(1);
      end();
      return giveBack();
    }
    pending().started(id_, handles);
    if (moment > 0) waitFor(handles, moment);
    giveBack();
  }

 private:
  // What a callback for one of the operations gets.
  struct Place {
    Step* step;
    size_t index;
  };

  ~Step() = default;

  // How many milliseconds this thread should wait for it, since being woken takes longer than most
  // operations do: for the last gradients; for what the program waits for, if it is small and
  // nothing else is in flight. With more ranks than processors the rank that is waited for needs this
  // one.
  int64_t worthWaiting() const {
    if (awaitedBy == AwaitedBy::kLast) return kLonger;
    static const bool room =
        library().local_size() <= static_cast<int>(std::thread::hardware_concurrency());
    if (awaitedBy == AwaitedBy::kNobody || !room || pending().count() > 0) return 0;
    int64_t elements = 0;
    for (const auto& shape : shapes) {
      int64_t product = 1;
      for (const int64_t each : shape) product *= each;
      elements += product;
    }
    return elements <= kSmall ? kMoment : 0;
  }

  // What is done by then has ended inside it. If not, Farandole's own thread takes over.
  static void waitFor(const std::vector<farandole_handle>& handles, int64_t milliseconds) {
    for (const auto handle : handles) {
      int32_t done = 0;
      library().wait(handle, milliseconds);
      if (library().test(handle, &done) != FARANDOLE_OK || done == 0) return;
    }
  }

  static void* allocate(void* user, size_t bytes, const int64_t* shape, int32_t ndim) {
    auto* place = static_cast<Place*>(user);
    TensorShape sizes;
    for (int32_t i = 0; i < ndim; ++i) sizes.AddDim(shape[i]);
    Tensor* output = nullptr;
    const auto status =
        place->step->context_->allocate_output(static_cast<int>(place->index), sizes, &output);
    if (!status.ok()) {
      place->step->note(status);
      return nullptr;
    }
    if (output->tensor_data().size() < bytes) return nullptr;
    return dataOf(*output);
  }

  static void onComplete(void* user, farandole_handle handle, farandole_code) {
    auto* place = static_cast<Place*>(user);
    Step* const step = place->step;
    step->handles_[place->index] = handle;
    if (step->left_.fetch_sub(1) == 1) step->finish();
    step->giveBack();
  }

  // All operations are done.
  void finish() {
    for (size_t i = 0; i < handles_.size(); ++i) take(i, handles_[i]);
    end();
  }

  void take(size_t index, farandole_handle handle) {
    farandole_result result = {};
    result.struct_size = sizeof(result);
    result.error.struct_size = sizeof(result.error);
    const int known = library().get_result(handle, &result);
    if (known != FARANDOLE_OK) {
      note(lastStatus(known));
    } else if (result.code != FARANDOLE_OK) {
      note(toStatus(result.error, result.code));
    } else if (finish_) {
      finish_(context_, index, result);
    }
  }

  void note(const absl::Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (first_.ok()) first_ = status;
  }

  // The context is TensorFlow's again after it.
  void end() {
    pending().remove(id_);
    if (!first_.ok()) context_->CtxFailure(first_);
    const Done done = std::move(done_);
    done();
  }

  void giveBack() {
    if (shares_.fetch_sub(1) != 1) return;
    for (const auto handle : handles_) {
      if (handle != 0) library().release(handle);
    }
    delete this;
  }

  static constexpr int64_t kSmall = 65536;  // elements
  static constexpr int64_t kMoment = 1;     // milliseconds
  static constexpr int64_t kLonger = 5;     // milliseconds

  OpKernelContext* const context_;
  Done done_;
  Finish finish_;
  uint64_t id_ = 0;
  std::vector<Place> places_;
  std::vector<farandole_handle> handles_;  // each written by its completion
  std::atomic<size_t> left_;               // completions to come
  std::atomic<size_t> shares_;             // one for each completion, one for submit()
  std::mutex mutex_;
  absl::Status first_;  // guarded by mutex_ until all operations are done
};

}  // namespace farandole_ops
