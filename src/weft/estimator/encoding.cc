// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/encoding.h"

#include "weft/estimator/graph_writing.h"

namespace weft::estimator {

Endpoint Encoded(LayerCall& call, Endpoint ids, int64_t size, const std::string& mode) {
  GraphBuilder& b = call.b();
  if (!b.ok() || mode == "int") return ids;
  if (mode != "one_hot" && mode != "multi_hot" && mode != "count") {
    call.Fail(
        InvalidArgument("output_mode is '", mode, "', expected int, one_hot, multi_hot or count"));
    return {};
  }
  if (size < 1) {
    call.Fail(InvalidArgument("there are ", size, " ids, expected one or more"));
    return {};
  }
  const int rank = b.ShapeOf(ids).rank();
  if (rank < 1 || (mode != "one_hot" && rank > 2)) {
    call.Fail(
        InvalidArgument("expected [batch] or [batch, values], got ", b.ShapeOf(ids).ToString()));
    return {};
  }
  // As in Keras, one value an example is one row.
  if (mode == "one_hot" && b.ShapeOf(ids).dim(rank - 1) == 1 && rank > 1) {
    ids = b.Op("Squeeze", {ids}, {{"squeeze_dims", AttrValue::IntList{-1}}});
  }
  if (mode != "one_hot" && rank == 1) ids = ExpandDim(b, ids, -1);
  const Endpoint hot = b.Op("OneHot", {ids, b.Scalar<int32_t>(static_cast<int32_t>(size)),
                                       b.Scalar<float>(1), b.Scalar<float>(0)});
  if (mode == "one_hot") return hot;
  return Reduce(b, mode == "count" ? "Sum" : "Max", hot, {1});
}

}  // namespace weft::estimator
