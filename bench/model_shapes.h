// The gradients of two well-known models: how many elements each tensor has, in the order of the
// model's parameters. Real lists, because a benchmark of "many small tensors" depends on how small
// and how many.
#pragma once

#include <cstdint>
#include <span>

#include "bench/job.h"

namespace farandole::bench {

std::span<const std::int64_t> resnet50Tensors();  // 161 tensors, 25,557,032 elements
std::span<const std::int64_t> vgg16Tensors();     // 32 tensors, 138,357,544 elements
// The tensors of Work::kResnet50 or Work::kVgg16, and their elements altogether.
std::span<const std::int64_t> modelTensors(Work model);
std::int64_t modelElements(Work model);

}  // namespace farandole::bench
