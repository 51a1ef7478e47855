// What the C ABI needs to know of a tensor. Internal to the adapter.
#pragma once

#include <ATen/core/Tensor.h>
#include <farandole/farandole.h>

#include <string>

namespace farandole::torch {

// Throws Error for element types that Farandole does not have; `what` names the tensor.
DType dtypeOfTensor(const at::Tensor& tensor, const std::string& what);

// Throws Error unless the tensor is a dense CPU tensor of a known type.
void checkTensor(const at::Tensor& tensor, const std::string& what);

}  // namespace farandole::torch
