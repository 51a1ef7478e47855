// A rank that calls the C API of the library, as a user's program does.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "bench/rank_side.h"
#include "bench/rank_work.h"
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

class NamedRank : public RankWork {
 public:
  NamedRank()
      : RankWork(core.rank(), core.size(), {allocate, [](void* memory) { core.free(memory); }}) {}

 private:
  static Result<void*> allocate(std::size_t bytes) {
    void* memory = nullptr;
    if (core.allocate(bytes, &memory) != FARANDOLE_OK) return lastError("allocate");
    return memory;
  }

  Status barrier() override {
    Job job;
    job.work = Work::kBarrier;
    const std::int64_t nothing = 0;
    return call(requestOf(job, "bench/barrier", &nothing, nullptr, &nothing));
  }

  Operation collective(const Job& job, const Layout& layout, void* in, void* out) override {
    names_ = {fmt::format("bench/{}/{}", bench::name(job.work), job.bytes)};
    counts_ = {layout.inCount()};
    farandole_request request = requestOf(job, names_[0].c_str(), in, out, counts_.data());
    request.output_bytes =
        static_cast<std::int64_t>(layout.inPlace() ? layout.inBytes() : layout.outBytes());
    if (job.ordered) {
      // Their order tells them apart, as in MPI.
      request.flags = FARANDOLE_FLAG_ORDERED;
      request.name = nullptr;
    }
    if (job.work == Work::kAlltoall || job.work == Work::kReducescatter ||
        job.work == Work::kScatter) {
      request.splits = layout.parts().data();
      request.nsplits = size();
    }
    return [request] { return call(request); };
  }

  // Every gradient is an operation of its own; then all are waited for, as an optimizer step does.
  Operation model(const Job& job, const std::vector<Tensor>& tensors) override {
    names_.clear();
    counts_.clear();
    requests_.clear();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      names_.push_back(fmt::format("bench/{}/{}", bench::name(job.work), tensors.size() - 1 - i));
      counts_.push_back(tensors[i].count);
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      requests_.push_back(
          requestOf(job, names_[i].c_str(), tensors[i].data, tensors[i].data, &counts_[i]));
    }
    return [this] { return submitAllThenWait(requests_); };
  }

  Result<double> bound(const Job& /*job*/) override {
    return Status::invalid("the bound is measured on the engine's ranks");
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

  // What the requests of the operation point to.
  std::vector<std::string> names_;
  std::vector<std::int64_t> counts_;
  std::vector<farandole_request> requests_;
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
