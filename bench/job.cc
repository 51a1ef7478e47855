#include "bench/job.h"

#include <fmt/format.h>

#include <array>
#include <sstream>

namespace farandole::bench {
namespace {

constexpr std::array<std::string_view, kWorkCount> kWorkNames = {
    "allreduce", "allgather", "broadcast", "alltoall", "reducescatter", "reduce",
    "gather",    "scatter",   "barrier",   "resnet50", "vgg16",         "bound"};
constexpr int kMostJobIterations = 10'000'000;

}  // namespace

std::string_view name(Work work) { return kWorkNames[static_cast<std::size_t>(work)]; }

std::optional<Work> workFromName(std::string_view text) {
  for (std::size_t i = 0; i < kWorkNames.size(); ++i) {
    if (kWorkNames[i] == text) return static_cast<Work>(i);
  }
  return std::nullopt;
}

std::string_view name(Memory memory) { return memory == Memory::kShared ? "shared" : "ordinary"; }

double busFactor(Work work, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (work) {
    case Work::kAllreduce:
    case Work::kResnet50:
    case Work::kVgg16:
    case Work::kBound: return 2 * others;
    case Work::kAllgather:
    case Work::kAlltoall:
    case Work::kReducescatter:
    case Work::kGather:
    case Work::kScatter: return others;
    case Work::kBroadcast:
    case Work::kReduce: return 1;
    case Work::kBarrier: return 0;
  }
  return 0;
}

std::string Job::line() const {
  return fmt::format("run {} {} {} {} {} {} {} {}{}", name(work), farandole::name(dtype),
                     farandole::name(op), name(memory), bytes, warmup, iterations, check ? 1 : 0,
                     ordered ? " ordered" : "");
}

Result<Job> Job::parse(std::string_view line) {
  std::istringstream in{std::string(line)};
  std::string verb;
  std::string work;
  std::string dtype;
  std::string op;
  std::string memory;
  Job job;
  int check = 0;
  in >> verb >> work >> dtype >> op >> memory >> job.bytes >> job.warmup >> job.iterations >> check;
  const bool complete = !in.fail();
  std::string promise;
  in >> promise;
  const auto knownWork = workFromName(work);
  const auto knownDtype = dtypeFromName(dtype);
  const auto knownOp = reduceOpFromName(op);
  const bool knownMemory = memory == "shared" || memory == "ordinary";
  if (!complete || !(promise.empty() || promise == "ordered") || verb != "run" || !knownWork ||
      !knownDtype || !knownOp || !knownMemory || job.warmup < 0 ||
      job.warmup > kMostJobIterations || job.iterations < 1 ||
      job.iterations > kMostJobIterations) {
    return Status::invalid(fmt::format("not a benchmark command: '{}'", line));
  }
  job.work = *knownWork;
  job.dtype = *knownDtype;
  job.op = *knownOp;
  job.memory = memory == "shared" ? Memory::kShared : Memory::kOrdinary;
  job.check = check != 0;
  job.ordered = !promise.empty();
  return job;
}

}  // namespace farandole::bench
