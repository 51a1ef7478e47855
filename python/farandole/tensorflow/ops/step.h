// One execution of a kernel: the operations it started, and the call that tells TensorFlow of their
// end.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
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

// Owns itself from submit() on: the last completion calls `finish_` and `done_`, and deletes it.
// Completions arrive on Farandole's thread, one after the other or at once, even before submit()
// has returned.
//
// TensorFlow cancels the rest of a step in which an operation failed. That is not followed here on
// purpose: a failure of Farandole's is told to every rank, and every rank goes on to run whatever
// does not depend on it, so that all ranks end the step alike and the next one finds nothing left
// over. Withdrawing what happens to be in flight on this rank would leave the others with
// operations that never end.
class Step {
 public:
  using Done = tensorflow::AsyncOpKernel::DoneCallback;
  // Takes what the operation at `index` left (splits and the like) into outputs.
  using Finish = std::function<void(OpKernelContext*, size_t index, const farandole_result&)>;

  Step(OpKernelContext* context, Done done, size_t count, Finish finish = {})
      : context_(context), done_(std::move(done)), finish_(std::move(finish)), left_(count) {
    requests.assign(count, FARANDOLE_REQUEST_INIT);
    shapes.resize(count);
    names.resize(count);
    places_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      places_[i] = {this, i};
      requests[i].on_complete = &Step::onComplete;
      requests[i].on_complete_user = &places_[i];
    }
  }

  // Kept until submit() has copied them.
  std::vector<farandole_request> requests;
  std::vector<std::vector<int64_t>> shapes;
  std::vector<std::string> names;

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
    id_ = pending().add();
    // Local copies: the last completion may delete this object before the call returns.
    const uint64_t id = id_;
    const std::vector<farandole_request> submitted = std::move(requests);
    const auto names_kept = std::move(names);
    const auto shapes_kept = std::move(shapes);
    std::vector<farandole_handle> handles(submitted.size());
    const int code = library().submit(submitted.data(), submitted.size(), handles.data());
    if (code != FARANDOLE_OK) return fail(lastStatus(code));
    pending().started(id, std::move(handles));
  }

 private:
  // What a callback for one of the operations gets.
  struct Place {
    Step* step;
    size_t index;
  };

  ~Step() = default;

  // Nothing was started.
  void fail(const absl::Status& status) {
    first_ = status;
    end();
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

  static void onComplete(void* user, farandole_handle handle, farandole_code code) {
    auto* place = static_cast<Place*>(user);
    Step* const step = place->step;
    farandole_result result = {};
    result.struct_size = sizeof(result);
    result.error.struct_size = sizeof(result.error);
    const int known = library().get_result(handle, &result);
    if (code != FARANDOLE_OK) {
      step->note(known == FARANDOLE_OK ? toStatus(result.error, code) : lastStatus(code));
    } else if (step->finish_) {
      step->finish_(step->context_, place->index, result);
    }
    library().release(handle);
    if (step->left_.fetch_sub(1) == 1) step->end();
  }

  void note(const absl::Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (first_.ok()) first_ = status;
  }

  void end() {
    pending().remove(id_);
    if (!first_.ok()) context_->CtxFailure(first_);
    Done done = std::move(done_);
    delete this;
    done();
  }

  OpKernelContext* const context_;
  Done done_;
  Finish finish_;
  uint64_t id_ = 0;
  std::vector<Place> places_;
  std::atomic<size_t> left_;
  std::mutex mutex_;
  absl::Status first_;  // guarded by mutex_ until left_ is 0
};

}  // namespace farandole_ops
