// What TensorFlow knows of the operations: inputs, attributes, shapes. All are stateful, so that
// none is folded into a constant, merged with another or left out; the Python side tells
// tf.function not to put them in a row.
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace farandole_ops {
namespace {

using tensorflow::shape_inference::DimensionHandle;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

#define FARANDOLE_TYPES                                                              \
  "{uint8, int8, uint16, int16, int32, int64, half, bfloat16, float, double, bool, " \
  "complex64, complex128}"

absl::Status sameShapes(InferenceContext* c) {
  for (int i = 0; i < c->num_outputs(); ++i) c->set_output(i, c->input(i));
  return absl::OkStatus();
}

// How many rows there will be is known only when the operation runs.
absl::Status otherRowsOf(InferenceContext* c, int index) {
  ShapeHandle shape = c->UnknownShape();
  if (c->RankKnown(c->input(index)) && c->Rank(c->input(index)) > 0) {
    auto status = c->ReplaceDim(c->input(index), 0, c->UnknownDim(), &shape);
    if (!status.ok()) return status;
  }
  c->set_output(index, shape);
  return absl::OkStatus();
}

// The first output for the first input; another, if there is one, counts rows.
absl::Status otherRows(InferenceContext* c) {
  if (c->num_outputs() > 1) c->set_output(1, c->Vector(c->UnknownDim()));
  return otherRowsOf(c, 0);
}

// An output for every input; others count rows.
absl::Status otherRowsOfAll(InferenceContext* c) {
  for (int i = 0; i < c->num_inputs(); ++i) {
    auto status = otherRowsOf(c, i);
    if (!status.ok()) return status;
  }
  for (int i = c->num_inputs(); i < c->num_outputs(); ++i) {
    c->set_output(i, c->Vector(c->UnknownDim()));
  }
  return absl::OkStatus();
}

absl::Status scalar(InferenceContext* c) {
  c->set_output(0, c->Scalar());
  return absl::OkStatus();
}

REGISTER_OP("FarandoleAllreduce")
    .Input("tensor: T")
    .Output("reduced: T")
    .Attr("T: " FARANDOLE_TYPES)
    .Attr("tensor_name: string")
    .Attr("process_set: int = 0")
    .Attr("reduce_op: int")
    .Attr("prescale: string = '1'")
    .Attr("postscale: string = '1'")
    .Attr("awaited_by: int = 1")
    .SetIsStateful()
    .SetShapeFn(sameShapes);

REGISTER_OP("FarandoleGroupedAllreduce")
    .Input("tensors: T")
    .Output("reduced: T")
    .Attr("T: list(" FARANDOLE_TYPES ") >= 0")
    .Attr("tensor_name: string")
    .Attr("process_set: int = 0")
    .Attr("reduce_op: int")
    .Attr("prescale: string = '1'")
    .Attr("postscale: string = '1'")
    .Attr("awaited_by: int = 1")
    .SetIsStateful()
    .SetShapeFn(sameShapes);

REGISTER_OP("FarandoleReducescatter")
    .Input("tensor: T")
    .Output("reduced: T")
    .Attr("T: " FARANDOLE_TYPES)
    .Attr("tensor_name: string")
    .Attr("process_set: int = 0")
    .Attr("reduce_op: int")
    .Attr("prescale: string = '1'")
    .Attr("postscale: string = '1'")
    .Attr("awaited_by: int = 1")
    .SetIsStateful()
    .SetShapeFn(otherRows);

REGISTER_OP("FarandoleGroupedReducescatter")
    .Input("tensors: T")
    .Output("reduced: T")
    .Attr("T: list(" FARANDOLE_TYPES ") >= 0")
    .Attr("tensor_name: string")
    .Attr("process_set: int = 0")
    .Attr("reduce_op: int")
    .Attr("prescale: string = '1'")
    .Attr("postscale: string = '1'")
    .Attr("awaited_by: int = 1")
    .SetIsStateful()
    .SetShapeFn(otherRowsOfAll);

REGISTER_OP("FarandoleAllgather")
    .Input("tensor: T")
    .Output("gathered: T")
    .Output("rows: int64")
    .Attr("T: " FARANDOLE_TYPES)
    .Attr("tensor_name: string")
    .Attr("process_set: int = 0")
    .SetIsStateful()
    .SetShapeFn(otherRows);

REGISTER_OP("FarandoleGroupedAllgather")
    .Input("tensors: T")
    .Output("gathered: T")
    .Output("rows: count * int64")
    .Attr("T: list(" FARANDOLE_TYPES ") >= 1")
    .Attr("count: int >= 1")
    .Attr("tensor_name: string")
    .Attr("process_set: int = 0")
    .SetIsStateful()
    .SetShapeFn(otherRowsOfAll);

REGISTER_OP("FarandoleAlltoall")
    .Input("tensor: T")
    .Input("splits: int64")
    .Output("received: T")
    .Output("received_splits: int32")
    .Attr("T: " FARANDOLE_TYPES)
    .Attr("tensor_name: string")
    .Attr("process_set: int = 0")
    .SetIsStateful()
    .SetShapeFn(otherRows);

REGISTER_OP("FarandoleBroadcast")
    .Input("tensor: T")
    .Output("output: T")
    .Attr("T: " FARANDOLE_TYPES)
    .Attr("tensor_name: string")
    .Attr("process_set: int = 0")
    .Attr("root_rank: int")
    .SetIsStateful()
    .SetShapeFn(sameShapes);

REGISTER_OP("FarandoleBarrier")
    .Output("zero: int32")
    .Attr("tensor_name: string")
    .Attr("process_set: int = 0")
    .SetIsStateful()
    .SetShapeFn(scalar);

REGISTER_OP("FarandoleJoin")
    .Output("last_joined: int32")
    .Attr("tensor_name: string")
    .Attr("process_set: int = 0")
    .SetIsStateful()
    .SetShapeFn(scalar);

REGISTER_OP("FarandoleQuery")
    .Output("value: int32")
    .Attr("what: {'rank', 'local_rank', 'local_size', 'size', 'included'}")
    .Attr("process_set: int = 0")
    .SetIsStateful()
    .SetShapeFn(scalar);

}  // namespace
}  // namespace farandole_ops
