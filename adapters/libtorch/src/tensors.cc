#include "tensors.h"

namespace farandole::torch {

DType dtypeOfTensor(const at::Tensor& tensor, const std::string& what) {
  switch (tensor.scalar_type()) {
    case at::kByte: return DType::kUint8;
    case at::kChar: return DType::kInt8;
    case at::kShort: return DType::kInt16;
    case at::kInt: return DType::kInt32;
    case at::kLong: return DType::kInt64;
    case at::kHalf: return DType::kFloat16;
    case at::kBFloat16: return DType::kBfloat16;
    case at::kFloat: return DType::kFloat32;
    case at::kDouble: return DType::kFloat64;
    case at::kBool: return DType::kBool;
    case at::kComplexFloat: return DType::kComplex64;
    case at::kComplexDouble: return DType::kComplex128;
    default: break;
  }
  throw Error(Code::kInvalidArgument, what + " has the element type " +
                                          c10::toString(tensor.scalar_type()) +
                                          ", which cannot be sent to other ranks");
}

void checkTensor(const at::Tensor& tensor, const std::string& what) {
  if (!tensor.defined()) throw Error(Code::kInvalidArgument, what + " is undefined");
  if (!tensor.device().is_cpu() || tensor.layout() != at::kStrided) {
    throw Error(Code::kInvalidArgument,
                what + " is on device " + tensor.device().str() +
                    " or not dense; only dense CPU tensors can be sent to other ranks");
  }
  (void)dtypeOfTensor(tensor, what);
}

}  // namespace farandole::torch
