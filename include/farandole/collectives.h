// The operations. Every one has two forms: name() waits for the result, nameAsync() starts the
// operation and returns its Handle.
//
// Threads.  All functions may be called from any thread.
//
// Names.    An operation is matched between ranks by its name, and without one by the order of the
//           calls, which must then be the same on all ranks. send and recv are matched by peer and
//           tag.
//
// Buffers.  Anything contiguous (types.h); a pointer and a count are std::span(pointer, count). A
//           buffer belongs to Farandole until the operation is done. A result of which the size
//           depends on other ranks is returned as a vector; an Async form leaves it in its handle,
//           Handle::data<T>().
//
// Ranks.    root and peer are global ranks, also in the operations of a process set.
//
// Errors.   Failures throw Error. An Async form throws if the call itself is wrong, and nothing was
//           started then; Handle::wait() throws if the operation failed.
#pragma once

#include <farandole.h>
#include <farandole/handle.h>
#include <farandole/process_set.h>
#include <farandole/types.h>

#include <array>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <vector>

namespace farandole {
inline namespace v1 {

struct Options {
  std::string name{};
  ProcessSetId set = kWorld;
  // Every input is multiplied by prescale before a reduction, the result by postscale after it.
  double prescale = 1.0;
  double postscale = 1.0;
  // A promise that all members submit their ordered operations in the same order, which makes small
  // ones between machines faster: FARANDOLE_FLAG_ORDERED.
  bool ordered = false;
};

namespace detail {

// A farandole_request about a one-dimensional buffer. It contains the shape, so it must not move.
class Request {
 public:
  template <Buffer R>
  Request(farandole_operation operation, R& data, const Options& options)
      : Request(operation, options) {
    request_.dtype = static_cast<std::int32_t>(dtypeOf<ElementOf<R>>());
    request_.input = std::ranges::data(data);
    shape_[0] = static_cast<std::int64_t>(std::ranges::size(data));
  }
  // An operation without elements.
  Request(farandole_operation operation, const Options& options) {
    request_.operation = operation;
    request_.shape = shape_.data();
    request_.ndim = 1;
    request_.set = static_cast<farandole_set>(options.set);
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
  template <Splits S>
  Request& splits(const S& splits) {
    request_.splits = std::ranges::empty(splits) ? nullptr : std::ranges::data(splits);
    request_.nsplits = static_cast<std::int32_t>(std::ranges::size(splits));
    return *this;
  }
  Request& group(std::uint64_t group) {
    request_.group = group;
    return *this;
  }
  const farandole_request& raw() const { return request_; }
  Handle start() const { return submit(request_); }
  // Starts the operation and waits for it; this thread drives it.
  void run() {
    farandole_handle pending = 0;
    const farandole_code code = farandole_call(&request_, -1, &pending);
    Handle left(pending);
    if (code == FARANDOLE_INTERRUPTED) return left.wait();
    check(code);
  }
  // Does the same for a result that the library owns, which lives as long as the handle.
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

// ---- allreduce: every rank gets the reduction of the elements of all ranks.

// Reduces in place.
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
// Reduces one value.
template <Element T>
T allreduce(T value, ReduceOp op, const Options& options = {}) {
  allreduce(std::span<T>(&value, 1), op, options);
  return value;
}
// Reduces several buffers of one type in place. All are reduced, or none is. With a name, the i-th
// operation is called "name.i".
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
  return detail::submit(requests);
}
template <Element T>
void groupedAllreduce(std::span<const std::span<T>> buffers, ReduceOp op,
                      const Options& options = {}) {
  for (Handle& handle : groupedAllreduceAsync<T>(buffers, op, options)) handle.wait();
}

// ---- broadcast: every rank gets the elements of the root, in place.

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
// Broadcasts one value.
template <Element T>
T broadcast(T value, int root, const Options& options = {}) {
  broadcast(std::span<T>(&value, 1), root, options);
  return value;
}

// ---- allgather: every rank gets the elements of all ranks, concatenated. The numbers of elements
// may differ; Handle::splits() says how many came from which member.

template <Buffer R>
Handle allgatherAsync(const R& data, const Options& options = {}) {
  return detail::Request(FARANDOLE_ALLGATHER, data, options).start();
}
template <Buffer R>
std::vector<ElementOf<R>> allgather(const R& data, const Options& options = {}) {
  return detail::take<ElementOf<R>>(
      detail::Request(FARANDOLE_ALLGATHER, data, options).runForResult());
}

// ---- alltoall: splits[i] elements of this rank go to member i; without splits, equal parts.
// Handle::splits() says how many came from which member.

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

// ---- reducescatter: every rank gets its part of the reduction. Member i gets splits[i] elements,
// the splits being the same on all ranks; without splits, the parts are as even as possible.

template <Buffer R>
Handle reducescatterAsync(const R& data, ReduceOp op, const Options& options = {}) {
  detail::Request request(FARANDOLE_REDUCESCATTER, data, options);
  return request.op(op).start();
}
template <Buffer R, Splits S>
Handle reducescatterAsync(const R& data, ReduceOp op, const S& splits,
                          const Options& options = {}) {
  detail::Request request(FARANDOLE_REDUCESCATTER, data, options);
  return request.op(op).splits(splits).start();
}
template <Buffer R>
std::vector<ElementOf<R>> reducescatter(const R& data, ReduceOp op, const Options& options = {}) {
  detail::Request request(FARANDOLE_REDUCESCATTER, data, options);
  return detail::take<ElementOf<R>>(request.op(op).runForResult());
}
template <Buffer R, Splits S>
std::vector<ElementOf<R>> reducescatter(const R& data, ReduceOp op, const S& splits,
                                        const Options& options = {}) {
  detail::Request request(FARANDOLE_REDUCESCATTER, data, options);
  return detail::take<ElementOf<R>>(request.op(op).splits(splits).runForResult());
}

// ---- reduce: the root gets the reduction, in place. The buffers of the other ranks are undefined
// afterwards.

template <MutableBuffer R>
Handle reduceAsync(R&& data, int root, ReduceOp op, const Options& options = {}) {
  detail::Request request(FARANDOLE_REDUCE, data, options);
  return request.op(op).root(root).output(data).start();
}
template <MutableBuffer R>
void reduce(R&& data, int root, ReduceOp op, const Options& options = {}) {
  detail::Request request(FARANDOLE_REDUCE, data, options);
  request.op(op).root(root).output(data).run();
}

// ---- gather: the root gets the elements of all ranks, concatenated, and Handle::splits(). The
// results of the other ranks are empty.

template <Buffer R>
Handle gatherAsync(const R& data, int root, const Options& options = {}) {
  detail::Request request(FARANDOLE_GATHER, data, options);
  return request.root(root).start();
}
template <Buffer R>
std::vector<ElementOf<R>> gather(const R& data, int root, const Options& options = {}) {
  detail::Request request(FARANDOLE_GATHER, data, options);
  return detail::take<ElementOf<R>>(request.root(root).runForResult());
}

// ---- scatter: member i gets splits[i] elements of the root; without splits, the parts are as even
// as possible. Only the root's elements and splits matter.

template <Buffer R>
Handle scatterAsync(const R& data, int root, const Options& options = {}) {
  detail::Request request(FARANDOLE_SCATTER, data, options);
  return request.root(root).start();
}
template <Buffer R, Splits S>
Handle scatterAsync(const R& data, int root, const S& splits, const Options& options = {}) {
  detail::Request request(FARANDOLE_SCATTER, data, options);
  return request.root(root).splits(splits).start();
}
template <Buffer R>
std::vector<ElementOf<R>> scatter(const R& data, int root, const Options& options = {}) {
  detail::Request request(FARANDOLE_SCATTER, data, options);
  return detail::take<ElementOf<R>>(request.root(root).runForResult());
}
template <Buffer R, Splits S>
std::vector<ElementOf<R>> scatter(const R& data, int root, const S& splits,
                                  const Options& options = {}) {
  detail::Request request(FARANDOLE_SCATTER, data, options);
  return detail::take<ElementOf<R>>(request.root(root).splits(splits).runForResult());
}

// ---- send, recv: from one rank to another, matched by peer and tag (>= 0). recv returns the
// sender, recvAsync as Result::source.

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
Handle recvAsync(R&& data, int peer = kAnyRank, int tag = 0, const Options& options = {}) {
  detail::Request request(FARANDOLE_RECV, data, options);
  return request.root(peer).tag(tag).output(data).start();
}
template <MutableBuffer R>
int recv(R&& data, int peer = kAnyRank, int tag = 0, const Options& options = {}) {
  detail::Request request(FARANDOLE_RECV, data, options);
  return request.root(peer).tag(tag).output(data).runForResult().result().source;
}

// ---- barrier: returns when all ranks have called it.

inline Handle barrierAsync(const Options& options = {}) {
  return detail::Request(FARANDOLE_BARRIER, options).start();
}
inline void barrier(const Options& options = {}) {
  detail::Request(FARANDOLE_BARRIER, options).run();
}

// ---- join: this rank has no more data. Until all ranks have joined, it contributes neutral
// elements to the reductions of the others. join returns the last rank to join, joinAsync has it as
// Result::lastJoined.

inline Handle joinAsync(const Options& options = {}) {
  return detail::Request(FARANDOLE_JOIN, options).start();
}
inline int join(const Options& options = {}) {
  return detail::Request(FARANDOLE_JOIN, options).runForResult().result().lastJoined;
}

}  // namespace v1
}  // namespace farandole
