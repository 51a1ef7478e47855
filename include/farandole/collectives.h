// The operations. Each …Async starts one and returns its Handle; the form without waits.
//
// Buffers are anything contiguous (types.h); pointer and count: std::span(pointer, count). All
// functions may be called from any thread. An operation is matched between ranks by its name, and
// without one by the order of calls, which must then be the same on all ranks.
#pragma once

#include <farandole.h>
#include <farandole/handle.h>
#include <farandole/process_set.h>
#include <farandole/types.h>

#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace farandole {
inline namespace v1 {

struct Options {
  std::string name{};
  farandole_set set = kWorld;
  // Every input is multiplied by the one before, the result by the other after a reduction.
  double prescale = 1.0;
  double postscale = 1.0;
  // All members submit their ordered operations in the same order: see FARANDOLE_FLAG_ORDERED.
  bool ordered = false;
};

namespace detail {

// A request about a one-dimensional buffer. Holds the shape, so it stays where it is made.
class Request {
 public:
  template <Buffer R>
  Request(farandole_operation operation, R& data, const Options& options)
      : Request(operation, options) {
    request_.dtype = static_cast<std::int32_t>(dtypeOf<ElementOf<R>>());
    request_.input = std::ranges::data(data);
    shape_[0] = static_cast<std::int64_t>(std::ranges::size(data));
  }
  // One without data: no elements.
  Request(farandole_operation operation, const Options& options) {
    request_.operation = operation;
    request_.shape = shape_.data();
    request_.ndim = 1;
    request_.set = options.set;
    request_.name = options.name.empty() ? nullptr : options.name.c_str();
    request_.prescale = options.prescale;
    request_.postscale = options.postscale;
    if (options.ordered) request_.flags |= FARANDOLE_FLAG_ORDERED;
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  Request& op(ReduceOp op) {
    request_.op = static_cast<std::int32_t>(op);
    return *this;
  }
  Request& root(int root) {
    request_.root = root;
    return *this;
  }
  Request& tag(int tag) {
    request_.tag = tag;
    return *this;
  }
  template <MutableBuffer R>
  Request& output(R& data) {
    request_.output = std::ranges::data(data);
    request_.output_bytes =
        static_cast<std::int64_t>(std::ranges::size(data) * sizeof(ElementOf<R>));
    return *this;
  }
  Request& splits(std::span<const std::int64_t> splits) {
    request_.splits = splits.empty() ? nullptr : splits.data();
    request_.nsplits = static_cast<std::int32_t>(splits.size());
    return *this;
  }
  Request& group(std::uint64_t group) {
    request_.group = group;
    return *this;
  }
  const farandole_request& raw() const { return request_; }
  Handle start() const { return Handle::submit(request_); }
  // Starts and waits: this thread drives the operation itself.
  void run() {
    farandole_handle pending = 0;
    const farandole_code code = farandole_call(&request_, -1, &pending);
    Handle left(pending);
    if (code == FARANDOLE_INTERRUPTED) return left.wait();
    check(code);
  }
  Handle runForResult() {
    request_.flags |= FARANDOLE_FLAG_WILL_WAIT;
    Handle handle = start();
    handle.wait();
    return handle;
  }

 private:
  std::array<std::int64_t, 1> shape_{};
  farandole_request request_ = FARANDOLE_REQUEST_INIT;
};

template <Element T>
std::vector<T> take(const Handle& handle) {
  const std::span<const T> data = handle.data<T>();
  return {data.begin(), data.end()};
}

}  // namespace detail

// ---- allreduce: every rank gets the reduction of all ranks' elements.

// In place.
template <MutableBuffer R>
Handle allreduceAsync(R&& data, ReduceOp op, const Options& options = {}) {
  detail::Request request(FARANDOLE_ALLREDUCE, data, options);
  return request.op(op).output(data).start();
}
template <MutableBuffer R>
void allreduce(R&& data, ReduceOp op, const Options& options = {}) {
  detail::Request request(FARANDOLE_ALLREDUCE, data, options);
  request.op(op).output(data).run();
}
// One value.
template <Element T>
T allreduce(T value, ReduceOp op, const Options& options = {}) {
  allreduce(std::span<T>(&value, 1), op, options);
  return value;
}
// Several buffers of one type, in place, reduced together or not at all. With a name, the i-th is
// called "name.i".
template <Element T>
std::vector<Handle> groupedAllreduceAsync(std::span<const std::span<T>> buffers, ReduceOp op,
                                          const Options& options = {}) {
  std::vector<std::array<std::int64_t, 1>> shapes(buffers.size());
  std::vector<std::string> names(buffers.size());
  std::vector<farandole_request> requests(buffers.size(), FARANDOLE_REQUEST_INIT);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    detail::Request one(FARANDOLE_ALLREDUCE, buffers[i], options);
    one.op(op).output(buffers[i]).group(1);
    requests[i] = one.raw();
    shapes[i][0] = static_cast<std::int64_t>(buffers[i].size());
    requests[i].shape = shapes[i].data();
    if (!options.name.empty()) {
      names[i] = options.name + "." + std::to_string(i);
      requests[i].name = names[i].c_str();
    }
  }
  return Handle::submit(requests);
}

// ---- broadcast: every rank gets the root's elements.

template <MutableBuffer R>
Handle broadcastAsync(R&& data, int root, const Options& options = {}) {
  detail::Request request(FARANDOLE_BROADCAST, data, options);
  return request.root(root).output(data).start();
}
template <MutableBuffer R>
void broadcast(R&& data, int root, const Options& options = {}) {
  detail::Request request(FARANDOLE_BROADCAST, data, options);
  request.root(root).output(data).run();
}
template <Element T>
T broadcast(T value, int root, const Options& options = {}) {
  broadcast(std::span<T>(&value, 1), root, options);
  return value;
}

// ---- allgather: all ranks' elements, one after another; counts may differ. Handle::data<T>() of
// the finished operation is the result, Handle::splits() how many came from whom.

template <Buffer R>
Handle allgatherAsync(const R& data, const Options& options = {}) {
  return detail::Request(FARANDOLE_ALLGATHER, data, options).start();
}
template <Buffer R>
std::vector<ElementOf<R>> allgather(const R& data, const Options& options = {}) {
  return detail::take<ElementOf<R>>(
      detail::Request(FARANDOLE_ALLGATHER, data, options).runForResult());
}

// ---- alltoall: splits[i] of this rank's elements go to member i; without splits equal parts.

template <Buffer R>
Handle alltoallAsync(const R& data, std::span<const std::int64_t> splits = {},
                     const Options& options = {}) {
  detail::Request request(FARANDOLE_ALLTOALL, data, options);
  return request.splits(splits).start();
}
template <Buffer R>
std::vector<ElementOf<R>> alltoall(const R& data, std::span<const std::int64_t> splits = {},
                                   const Options& options = {}) {
  detail::Request request(FARANDOLE_ALLTOALL, data, options);
  return detail::take<ElementOf<R>>(request.splits(splits).runForResult());
}

// ---- reducescatter: every rank gets its part of the reduction; parts as even as possible.

template <Buffer R>
Handle reducescatterAsync(const R& data, ReduceOp op, const Options& options = {}) {
  detail::Request request(FARANDOLE_REDUCESCATTER, data, options);
  return request.op(op).start();
}
template <Buffer R>
std::vector<ElementOf<R>> reducescatter(const R& data, ReduceOp op, const Options& options = {}) {
  detail::Request request(FARANDOLE_REDUCESCATTER, data, options);
  return detail::take<ElementOf<R>>(request.op(op).runForResult());
}

// ---- reduce, gather, scatter: only the root gets, or gives. Other ranks' results are empty;
// reduce leaves their buffers undefined.

template <MutableBuffer R>
void reduce(R&& data, int root, ReduceOp op, const Options& options = {}) {
  detail::Request request(FARANDOLE_REDUCE, data, options);
  request.op(op).root(root).output(data).run();
}
template <Buffer R>
std::vector<ElementOf<R>> gather(const R& data, int root, const Options& options = {}) {
  detail::Request request(FARANDOLE_GATHER, data, options);
  return detail::take<ElementOf<R>>(request.root(root).runForResult());
}
template <Buffer R>
std::vector<ElementOf<R>> scatter(const R& data, int root, const Options& options = {}) {
  detail::Request request(FARANDOLE_SCATTER, data, options);
  return detail::take<ElementOf<R>>(request.root(root).runForResult());
}

// ---- send, recv: between two ranks, matched by peer and tag (>= 0). recv returns the sender.

template <Buffer R>
Handle sendAsync(const R& data, int peer, int tag = 0, const Options& options = {}) {
  detail::Request request(FARANDOLE_SEND, data, options);
  return request.root(peer).tag(tag).start();
}
template <Buffer R>
void send(const R& data, int peer, int tag = 0, const Options& options = {}) {
  detail::Request request(FARANDOLE_SEND, data, options);
  request.root(peer).tag(tag).run();
}
template <MutableBuffer R>
Handle recvAsync(R&& data, int peer = FARANDOLE_ANY_RANK, int tag = 0,
                 const Options& options = {}) {
  detail::Request request(FARANDOLE_RECV, data, options);
  return request.root(peer).tag(tag).output(data).start();
}
template <MutableBuffer R>
int recv(R&& data, int peer = FARANDOLE_ANY_RANK, int tag = 0, const Options& options = {}) {
  detail::Request request(FARANDOLE_RECV, data, options);
  return request.root(peer).tag(tag).output(data).runForResult().result().source;
}

// ---- barrier, join.

inline Handle barrierAsync(const Options& options = {}) {
  return detail::Request(FARANDOLE_BARRIER, options).start();
}
inline void barrier(const Options& options = {}) {
  detail::Request(FARANDOLE_BARRIER, options).run();
}
// This rank has no more data: until all ranks have joined it contributes neutral elements to the
// others' reductions. Returns the last rank to join.
inline int join(const Options& options = {}) {
  return detail::Request(FARANDOLE_JOIN, options).runForResult().result().last_joined;
}

}  // namespace v1
}  // namespace farandole
