// The network.
#pragma once

#include <torch/nn/modules/conv.h>

#include <cstdint>

namespace fashion {

// Two convolutions with pooling, then two fully connected layers. These are written as convolutions
// too (over the whole remaining image, and over one pixel): that is the same arithmetic, and
// LibTorch runs it with oneDNN, whatever BLAS the machine has. Channels are stored last, which
// pooling is vectorised for. No dropout and no batch normalisation, so that n ranks with a batch of
// b do exactly what one rank with n × b does.
class Network : public ::torch::nn::Module {
 public:
  // Images must be at least 4 × 4.
  Network(std::int64_t rows, std::int64_t columns, std::int64_t classes)
      : first_(register_module("first", conv(1, 16, {3, 3}, 1))),
        second_(register_module("second", conv(16, 32, {3, 3}, 1))),
        third_(register_module("third", conv(32, 96, {rows / 4, columns / 4}, 0))),
        last_(register_module("last", conv(96, classes, {1, 1}, 0))) {
    for (at::Tensor& parameter : parameters()) {
      if (parameter.dim() == 4) {
        parameter.set_data(parameter.detach().contiguous(at::MemoryFormat::ChannelsLast));
      }
    }
  }

  // Images as floats, n × 1 × rows × columns; returns the logits, n × classes.
  at::Tensor forward(const at::Tensor& images) {
    at::Tensor x = first_(images).contiguous(at::MemoryFormat::ChannelsLast);
    // relu(max(x)) = max(relu(x)), with a quarter of the work.
    x = at::max_pool2d(x, {2, 2}).relu_();
    x = at::max_pool2d(second_(x), {2, 2}).relu_();
    x = third_(x).relu_();
    return last_(x).flatten(1);
  }

 private:
  static ::torch::nn::Conv2d conv(std::int64_t in, std::int64_t out,
                                  const std::array<std::int64_t, 2>& kernel, std::int64_t padding) {
    return ::torch::nn::Conv2d(
        ::torch::nn::Conv2dOptions(in, out, {kernel[0], kernel[1]}).padding(padding));
  }

  ::torch::nn::Conv2d first_;
  ::torch::nn::Conv2d second_;
  ::torch::nn::Conv2d third_;
  ::torch::nn::Conv2d last_;
};

}  // namespace fashion
