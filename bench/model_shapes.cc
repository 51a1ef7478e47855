#include "bench/model_shapes.h"

#include <array>
#include <cstddef>
#include <numeric>

namespace farandole::bench {
namespace {

constexpr int kResnetTensors = 161;
constexpr int kVggTensors = 32;

template <std::size_t N>
class TensorList {
 public:
  constexpr void convolution(std::int64_t out, std::int64_t in, std::int64_t kernel) {
    add(out * in * kernel * kernel);
  }
  constexpr void normalisation(std::int64_t channels) {  // weight and bias
    add(channels);
    add(channels);
  }
  constexpr void linear(std::int64_t out, std::int64_t in) {
    add(out * in);
    add(out);
  }
  constexpr void add(std::int64_t elements) { sizes.at(count++) = elements; }
  constexpr std::int64_t sum() const {
    return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  }

  std::array<std::int64_t, N> sizes{};
  std::size_t count = 0;
};

// A stem, four stages of bottleneck blocks (1×1, 3×3, 1×1, each with a batch normalisation; the
// first block of a stage also projects its input), and a classifier of 1000.
constexpr TensorList<kResnetTensors> makeResnet50() {
  TensorList<kResnetTensors> list;
  list.convolution(64, 3, 7);
  list.normalisation(64);
  constexpr int kBlocks[4] = {3, 4, 6, 3};
  std::int64_t in = 64;
  for (int stage = 0; stage < 4; ++stage) {
    const std::int64_t width = std::int64_t{64} << stage;
    const std::int64_t out = 4 * width;
    for (int block = 0; block < kBlocks[stage]; ++block) {
      list.convolution(width, in, 1);
      list.normalisation(width);
      list.convolution(width, width, 3);
      list.normalisation(width);
      list.convolution(out, width, 1);
      list.normalisation(out);
      if (block == 0) {
        list.convolution(out, in, 1);
        list.normalisation(out);
      }
      in = out;
    }
  }
  list.linear(1000, 2048);
  return list;
}

// Thirteen 3×3 convolutions with bias and three linear layers.
constexpr TensorList<kVggTensors> makeVgg16() {
  TensorList<kVggTensors> list;
  constexpr std::int64_t kChannels[13] = {64,  64,  128, 128, 256, 256, 256,
                                          512, 512, 512, 512, 512, 512};
  std::int64_t in = 3;
  for (const std::int64_t out : kChannels) {
    list.convolution(out, in, 3);
    list.add(out);
    in = out;
  }
  list.linear(4096, 512 * 7 * 7);
  list.linear(4096, 4096);
  list.linear(1000, 4096);
  return list;
}

constexpr auto kResnet50 = makeResnet50();
constexpr auto kVgg16 = makeVgg16();
static_assert(kResnet50.count == kResnetTensors && kResnet50.sum() == 25'557'032);
static_assert(kVgg16.count == kVggTensors && kVgg16.sum() == 138'357'544);

}  // namespace

std::span<const std::int64_t> resnet50Tensors() { return kResnet50.sizes; }
std::span<const std::int64_t> vgg16Tensors() { return kVgg16.sizes; }

std::span<const std::int64_t> modelTensors(Work model) {
  return model == Work::kVgg16 ? vgg16Tensors() : resnet50Tensors();
}

std::int64_t modelElements(Work model) {
  return model == Work::kVgg16 ? kVgg16.sum() : kResnet50.sum();
}

}  // namespace farandole::bench
