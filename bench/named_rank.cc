#include "bench/named_rank.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "bench/buffers.h"
#include "bench/layout.h"
#include "bench/model_shapes.h"
#include "bench/pattern.h"
#include "bench/rank_side.h"
#include "process/core_library.h"

namespace farandole::bench {
namespace {

constexpr std::int64_t kWaitMilliseconds = 60'000;

process::CoreLibrary core;  // loaded first of all; one thread

Status lastError(std::string_view what) {
  farandole_error error{};
  error.struct_size = sizeof error;
  core.lastError(&error);
  return Status::unavailable(
      fmt::format("{}: {}", what, error.message == nullptr ? "?" : error.message));
}

farandole_operation operationOf(Work work) {
  switch (work) {
    case Work::kAllgather: return FARANDOLE_ALLGATHER;
    case Work::kBroadcast: return FARANDOLE_BROADCAST;
    case Work::kAlltoall: return FARANDOLE_ALLTOALL;
    case Work::kReducescatter: return FARANDOLE_REDUCESCATTER;
    case Work::kReduce: return FARANDOLE_REDUCE;
    case Work::kGather: return FARANDOLE_GATHER;
    case Work::kScatter: return FARANDOLE_SCATTER;
    case Work::kBarrier: return FARANDOLE_BARRIER;
    default: return FARANDOLE_ALLREDUCE;
  }
}

farandole_request requestOf(const Job& job, const char* name, const void* in, void* out,
                            const std::int64_t* count) {
  farandole_request request = FARANDOLE_REQUEST_INIT;
  request.operation = operationOf(job.work);
  request.dtype = static_cast<std::int32_t>(job.dtype);
  request.op = static_cast<std::int32_t>(job.op);
  request.name = name;
  request.input = in;
  request.output = out;
  request.shape = count;
  request.ndim = 1;
  return request;
}

Status finish(farandole_handle handle) {
  const farandole_code code = core.wait(handle, kWaitMilliseconds);
  Status status = code == FARANDOLE_OK ? Status() : lastError("wait");
  core.release(handle);
  return status;
}

Status call(const farandole_request& request) {
  farandole_handle pending = 0;
  const farandole_code code = core.call(&request, kWaitMilliseconds, &pending);
  Status status = code == FARANDOLE_OK ? Status() : lastError("call");
  if (pending != 0) core.release(pending);
  return status;
}

Status barrier() {
  Job job;
  job.work = Work::kBarrier;
  const std::int64_t nothing = 0;
  return call(requestOf(job, "bench/barrier", &nothing, nullptr, &nothing));
}

class NamedRank {
 public:
  NamedRank() : buffers_({allocate, [](void* memory) { core.free(memory); }}) {}

  Result<double> run(const Job& job) {
    switch (job.work) {
      case Work::kBound: return Status::invalid("the bound is measured on the engine's ranks");
      case Work::kResnet50:
      case Work::kVgg16: return runModel(job);
      default: return runCollective(job);
    }
  }

 private:
  static Result<void*> allocate(std::size_t bytes) {
    void* memory = nullptr;
    if (core.allocate(bytes, &memory) != FARANDOLE_OK) return lastError("allocate");
    return memory;
  }

  Result<double> runCollective(const Job& job) {
    const Layout layout(job, rank_, size_);
    auto in = buffers_.get(job.memory, Buffers::kIn, layout.inBytes());
    if (!in.ok()) return in.status();
    auto out = layout.inPlace() ? in : buffers_.get(job.memory, Buffers::kOut, layout.outBytes());
    if (!out.ok()) return out.status();
    const std::string name = fmt::format("bench/{}/{}", bench::name(job.work), job.bytes);
    const std::int64_t count = layout.inCount();
    farandole_request request = requestOf(job, name.c_str(), *in, *out, &count);
    request.output_bytes =
        static_cast<std::int64_t>(layout.inPlace() ? layout.inBytes() : layout.outBytes());
    if (job.ordered) {
      // Their order tells them apart, as MPI's does.
      request.flags = FARANDOLE_FLAG_ORDERED;
      request.name = nullptr;
    }
    if (job.work == Work::kAlltoall || job.work == Work::kReducescatter ||
        job.work == Work::kScatter) {
      request.splits = layout.parts().data();
      request.nsplits = size_;
    }
    const auto operation = [&request] { return call(request); };
    if (job.check) {
      layout.fill(*in);
      FARANDOLE_RETURN_IF_ERROR(operation());
      FARANDOLE_RETURN_IF_ERROR(layout.verify(*out));
      FARANDOLE_RETURN_IF_ERROR(barrier());
    }
    std::memset(*in, 0, layout.inBytes());
    return timeLoop(job, operation, barrier);
  }

  // Every gradient is an operation of its own, submitted in the order backward produces them; then
  // all are waited for, as an optimizer step does.
  Result<double> runModel(const Job& job) {
    const std::size_t width = sizeOf(job.dtype);
    auto data = buffers_.get(job.memory, Buffers::kIn,
                             static_cast<std::size_t>(modelElements(job.work)) * width);
    if (!data.ok()) return data.status();
    const auto counts = modelTensors(job.work);
    std::vector<std::string> names;
    std::vector<farandole_request> requests;
    auto* at = static_cast<std::byte*>(*data);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      names.push_back(fmt::format("bench/{}/{}", bench::name(job.work), i));
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
      requests.insert(requests.begin(), requestOf(job, names[i].c_str(), at, at, &counts[i]));
      at += static_cast<std::size_t>(counts[i]) * width;
    }
    const auto operation = [&requests] { return submitAllThenWait(requests); };
    if (job.check) {
      const Pattern mine = Pattern::ofRank(job.dtype, rank_);
      const Pattern expected = Pattern::reduced(job.dtype, job.op, size_);
      for (const auto& r : requests) mine.fill(r.output, *r.shape);
      FARANDOLE_RETURN_IF_ERROR(operation());
      for (const auto& r : requests) FARANDOLE_RETURN_IF_ERROR(expected.verify(r.output, *r.shape));
      FARANDOLE_RETURN_IF_ERROR(barrier());
    }
    std::memset(*data, 0, static_cast<std::size_t>(modelElements(job.work)) * width);
    return timeLoop(job, operation, barrier);
  }

  static Status submitAllThenWait(const std::vector<farandole_request>& requests) {
    std::vector<farandole_handle> handles(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (core.submit(&requests[i], 1, &handles[i]) != FARANDOLE_OK) {
        return lastError("submit");
      }
    }
    Status first;
    for (const farandole_handle handle : handles) {
      Status status = finish(handle);
      if (first.ok()) first = std::move(status);
    }
    return first;
  }

  int rank_ = core.rank();
  int size_ = core.size();
  Buffers buffers_;
};

}  // namespace

int namedRankMain() {
  auto loaded = process::CoreLibrary::load();
  if (!loaded.ok()) {
    std::fprintf(stderr, "%s\n", loaded.status().message().c_str());
    return 1;
  }
  core = *loaded;
  if (core.init(nullptr) != FARANDOLE_OK) {
    std::fprintf(stderr, "%s\n", lastError("init").message().c_str());
    return 1;
  }
  Status status;
  {
    auto wire = RankWire::connect(core.rank(), core.size());
    if (!wire.ok()) {
      std::fprintf(stderr, "%s\n", wire.status().message().c_str());
      return 2;
    }
    NamedRank rank;
    status = (*wire)->serve([&rank](const Job& job) { return rank.run(job); });
  }
  core.shutdown();
  return status.ok() ? 0 : 1;
}

}  // namespace farandole::bench
