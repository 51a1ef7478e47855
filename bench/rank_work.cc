#include "bench/rank_work.h"

#include <cstring>

#include "bench/model_shapes.h"
#include "bench/pattern.h"
#include "bench/rank_side.h"

namespace farandole::bench {

Result<double> RankWork::run(const Job& job) {
  switch (job.work) {
    case Work::kBound: return bound(job);
    case Work::kResnet50:
    case Work::kVgg16: return runModel(job);
    default: return runCollective(job);
  }
}

Result<double> RankWork::runCollective(const Job& job) {
  const Layout layout(job, rank_, size_);
  auto in = buffers_.get(job.memory, Buffers::kIn, layout.inBytes());
  if (!in.ok()) return in.status();
  auto out = layout.inPlace() ? in : buffers_.get(job.memory, Buffers::kOut, layout.outBytes());
  if (!out.ok()) return out.status();
  const Operation operation = collective(job, layout, *in, *out);
  if (job.check) {
    layout.fill(*in);
    // No rank may write into a buffer that its owner is still filling.
    FARANDOLE_RETURN_IF_ERROR(barrier());
    FARANDOLE_RETURN_IF_ERROR(operation());
    FARANDOLE_RETURN_IF_ERROR(layout.verify(*out));
    FARANDOLE_RETURN_IF_ERROR(barrier());
  }
  std::memset(*in, 0, layout.inBytes());
  FARANDOLE_RETURN_IF_ERROR(barrier());
  return timeLoop(job, operation, [this] { return barrier(); });
}

Result<double> RankWork::runModel(const Job& job) {
  const std::size_t width = sizeOf(job.dtype);
  const std::size_t bytes = static_cast<std::size_t>(modelElements(job.work)) * width;
  auto data = buffers_.get(job.memory, Buffers::kIn, bytes);
  if (!data.ok()) return data.status();
  std::vector<Tensor> tensors;
  auto* at = static_cast<std::byte*>(*data);
  for (const std::int64_t count : modelTensors(job.work)) {
    tensors.insert(tensors.begin(), {at, count});
    at += static_cast<std::size_t>(count) * width;
  }
  const Operation operation = model(job, tensors);
  if (job.check) {
    const Pattern mine = Pattern::ofRank(job.dtype, rank_);
    const Pattern expected = Pattern::reduced(job.dtype, job.op, size_);
    for (const Tensor& tensor : tensors) mine.fill(tensor.data, tensor.count);
    FARANDOLE_RETURN_IF_ERROR(barrier());
    FARANDOLE_RETURN_IF_ERROR(operation());
    for (const Tensor& tensor : tensors) {
      FARANDOLE_RETURN_IF_ERROR(expected.verify(tensor.data, tensor.count));
    }
    FARANDOLE_RETURN_IF_ERROR(barrier());
  }
  std::memset(*data, 0, bytes);
  FARANDOLE_RETURN_IF_ERROR(barrier());
  return timeLoop(job, operation, [this] { return barrier(); });
}

}  // namespace farandole::bench
