// SPDX-License-Identifier: Apache-2.0
// Ops that sum: reductions, products of matrices, convolutions, and the layers around them.
#include <algorithm>

#include "weft/replicate/rules.h"

namespace weft::replicate {
namespace {

bool Flag(const OpView& op, const char* name) {
  return FindAttrOr<bool>(op.node.attrs(), name, false);
}

// The last dimension of images, or the second one: what biases and normalisation go by.
bool ChannelsFirst(const OpView& op) {
  return FindAttrOr<std::string>(op.node.attrs(), "data_format", "NHWC") == "NCHW";
}

struct Reduced {
  bool over_slices = false;  // the slices' dimension is summed away
  int dim = 0;               // else where it is then
};
// None if the axes are not known.
std::optional<Reduced> ReducedBy(const OpView& op) {
  const auto axes = op.Integers(1);
  if (!axes || op.rank(0) < 0) return std::nullopt;
  Reduced reduced{.dim = op.inputs[0].dim};
  for (int64_t axis : *axes) {
    if (axis < 0) axis += op.rank(0);
    reduced.over_slices = reduced.over_slices || axis == op.inputs[0].dim;
    if (axis < op.inputs[0].dim && !Flag(op, "keep_dims")) --reduced.dim;
  }
  return reduced;
}

// What inference does not see where the axes were computed.
std::optional<PartialShape> ReducedShape(const OpView& op) {
  const auto axes = op.Integers(1);
  if (!axes || op.rank(0) < 0) return std::nullopt;
  const bool keeps = Flag(op, "keep_dims");
  std::vector<bool> is_reduced(op.rank(0), false);
  for (int64_t axis : *axes) {
    if (axis < 0) axis += op.rank(0);
    if (axis < 0 || axis >= op.rank(0)) return std::nullopt;
    is_reduced[axis] = true;
  }
  PartialShape shape = PartialShape::UnknownOfRank(0);
  for (int d = 0; d < op.rank(0); ++d) {
    if (!is_reduced[d]) {
      shape.AddDim(op.shapes[0].dim(d));
    } else if (keeps) {
      shape.AddDim(1);
    }
  }
  return shape;
}

// Sums and means, which are linear.
template <bool kMean>
std::optional<Shares> SumOrMean(const OpView& op) {
  const Share& x = op.inputs[0];
  if (x.is_slice()) {
    const std::optional<Reduced> reduced = ReducedBy(op);
    if (!reduced) return std::nullopt;
    // A worker's mean is of fewer rows: over all workers it comes to K times the batch's.
    Share out = reduced->over_slices ? Share::Part(x.scale + (kMean ? 1 : 0))
                                     : Share::Slice(reduced->dim, x.scale);
    out.zero = x.zero;
    out.shape = ReducedShape(op);
    return Shares{out};
  }
  if (op.inputs[1].UniformPower() != 0) return std::nullopt;
  if (!x.is_part() && !x.UniformPower()) return std::nullopt;
  Share out = x.is_part() ? Share::Part(x.scale) : Share::Equal(*x.UniformPower());
  out.zero = x.zero && !x.is_part();
  out.shape = ReducedShape(op);
  return Shares{out};
}

// Maxima, products and the like: within rows only.
std::optional<Shares> WithinRows(const OpView& op) {
  const Share& x = op.inputs[0];
  if (!x.is_slice() || x.scale != 0) return std::nullopt;
  const std::optional<Reduced> reduced = ReducedBy(op);
  if (!reduced || reduced->over_slices) return std::nullopt;
  Share out = Share::Slice(reduced->dim);
  out.shape = ReducedShape(op);
  return Shares{out};
}

std::optional<Shares> ProductOrSize(const OpView& op) {
  static const Rule* const of_sizes = [] {
    RuleTable table;
    AddSizeRules(&table);
    return new Rule(table.at("Prod").rule);
  }();
  if (std::optional<Shares> sizes = (*of_sizes)(op)) return sizes;
  return WithinRows(op);
}

// The index of the greatest in each row.
std::optional<Shares> ArgMax(const OpView& op) {
  const Share& x = op.inputs[0];
  const std::optional<int> axis = op.Axis(1, op.rank(0));
  if (!x.is_slice() || x.scale != 0 || !axis || *axis == x.dim) return std::nullopt;
  return Shares{Share::Slice(x.dim - (*axis < x.dim ? 1 : 0))};
}

// Along the last dimension.
std::optional<Shares> AlongLast(const OpView& op) {
  const Share& x = op.inputs[0];
  if (!x.is_slice() || x.scale != 0 || op.rank(0) < 0 || x.dim == op.rank(0) - 1)
    return std::nullopt;
  return Shares(op.node.num_outputs(), Share::Slice(x.dim));
}

std::optional<int> ScaleOf(const Share& share) {
  return share.is_same() ? share.UniformPower() : std::optional<int>(share.scale);
}

// One operand's role in a product of matrices.
enum class Role { kSame, kRows, kColumns, kInner, kBatch, kPart, kNone };

Role RoleOf(const Share& x, int rank, bool transposed, bool is_left) {
  if (x.is_part()) return Role::kPart;
  if (x.is_same()) return Role::kSame;
  if (rank < 2) return Role::kNone;
  const int from_end = rank - x.dim;  // 1: the last
  if (from_end > 2) return Role::kBatch;
  const bool is_row = (from_end == 2) != transposed;
  if (is_left) return is_row ? Role::kRows : Role::kInner;
  return is_row ? Role::kInner : Role::kColumns;
}

// left [.., m, k] by right [.., k, n].
std::optional<Shares> MultiplyMatrices(const OpView& op, bool transpose_left,
                                       bool transpose_right) {
  const Share &a = op.inputs[0], &b = op.inputs[1];
  const std::optional<int> scale_a = ScaleOf(a), scale_b = ScaleOf(b);
  if (!scale_a || !scale_b) return std::nullopt;
  const int scale = *scale_a + *scale_b;
  const Role left = RoleOf(a, op.rank(0), transpose_left, true);
  const Role right = RoleOf(b, op.rank(1), transpose_right, false);
  const int rank = std::max(op.rank(0), op.rank(1));
  if (left == Role::kInner && right == Role::kInner) return Shares{Share::Part(scale)};
  if ((left == Role::kPart && right == Role::kSame) ||
      (left == Role::kSame && right == Role::kPart))
    return Shares{Share::Part(scale)};
  if (left == Role::kRows && right == Role::kSame) return Shares{Share::Slice(rank - 2, scale)};
  if (left == Role::kSame && right == Role::kColumns) return Shares{Share::Slice(rank - 1, scale)};
  if (left != Role::kBatch && right != Role::kBatch) return std::nullopt;
  if (left == Role::kSame || right == Role::kSame || left == right) {
    // Batches of matrices broadcast like all operands do.
    if (op.rank(0) < 0 || op.rank(1) < 0) return std::nullopt;
    const std::optional<int> dim = rules::SliceInBroadcast(op, rank);
    if (!dim) return std::nullopt;
    return Shares{Share::Slice(*dim, scale)};
  }
  return std::nullopt;
}

std::optional<Shares> MatMul(const OpView& op) {
  return MultiplyMatrices(op, Flag(op, "transpose_a"), Flag(op, "transpose_b"));
}

std::optional<Shares> BatchMatMul(const OpView& op) {
  return MultiplyMatrices(op, Flag(op, "adj_x"), Flag(op, "adj_y"));
}

bool IsRows(const Share& share) { return share.is_slice() && share.dim == 0; }

// images, filter.
std::optional<Shares> Convolution(const OpView& op) {
  if (!IsRows(op.inputs[0]) || !ScaleOf(op.inputs[1]) || !op.inputs[1].is_same())
    return std::nullopt;
  return Shares{Share::Slice(0, op.inputs[0].scale + *ScaleOf(op.inputs[1]))};
}

// That a vector of sizes says how many rows a worker has.
bool AreSizesOfRows(const Share& sizes) {
  if (!sizes.is_same() || !sizes.elements || sizes.elements->empty()) return false;
  for (size_t d = 0; d < sizes.elements->size(); ++d) {
    if ((*sizes.elements)[d].power != (d == 0 ? -1 : 0)) return false;
  }
  return true;
}

// sizes of the images, filter, gradient.
std::optional<Shares> ImagesGradient(const OpView& op) {
  if (!AreSizesOfRows(op.inputs[0]) || !op.inputs[1].is_same() || !ScaleOf(op.inputs[1]) ||
      !IsRows(op.inputs[2]))
    return std::nullopt;
  return Shares{Share::Slice(0, op.inputs[2].scale + *ScaleOf(op.inputs[1]))};
}

// images, sizes of the filter, gradient.
std::optional<Shares> FilterGradient(const OpView& op) {
  if (!IsRows(op.inputs[0]) || op.inputs[1].UniformPower() != 0 || !IsRows(op.inputs[2]))
    return std::nullopt;
  return Shares{Share::Part(op.inputs[0].scale + op.inputs[2].scale)};
}

// Windows over images; what is linear in them keeps its scale.
template <bool kLinear>
std::optional<Shares> Pool(const OpView& op) {
  const Share& x = op.inputs[0];
  if (!IsRows(x) || (!kLinear && x.scale != 0)) return std::nullopt;
  const auto window = FindAttrOr<AttrValue::IntList>(op.node.attrs(), "ksize", {1});
  if (window.empty() || window.front() != 1) return std::nullopt;
  return Shares(op.node.num_outputs(), Share::Slice(0, x.scale));
}

// The pool's input and output, then the gradient, in which it is linear.
std::optional<Shares> MaxPoolGrad(const OpView& op) {
  for (int i = 0; i < 3; ++i) {
    if (!IsRows(op.inputs[i]) || (i < 2 && op.inputs[i].scale != 0)) return std::nullopt;
  }
  return Shares{Share::Slice(0, op.inputs[2].scale)};
}

// sizes of the images, gradient.
std::optional<Shares> AvgPoolGrad(const OpView& op) {
  if (!AreSizesOfRows(op.inputs[0]) || !IsRows(op.inputs[1])) return std::nullopt;
  return Shares{Share::Slice(0, op.inputs[1].scale)};
}

std::optional<Shares> BiasAdd(const OpView& op) {
  const Share& x = op.inputs[0];
  if (!x.is_slice() || x.scale != 0 || op.inputs[1].UniformPower() != 0 || op.rank(0) < 0)
    return std::nullopt;
  if (x.dim == (ChannelsFirst(op) ? 1 : op.rank(0) - 1)) return std::nullopt;
  return Shares{Share::Slice(x.dim)};
}

std::optional<Shares> BiasAddGrad(const OpView& op) {
  const Share& x = op.inputs[0];
  if (x.is_part()) return Shares{Share::Part(x.scale)};
  if (!x.is_slice() || op.rank(0) < 0 || x.dim == (ChannelsFirst(op) ? 1 : op.rank(0) - 1))
    return std::nullopt;
  return Shares{Share::Part(x.scale)};
}

// logits, labels: a loss for each row, and its gradient.
std::optional<Shares> CrossEntropy(const OpView& op) {
  for (const Share& share : op.inputs) {
    if (!IsRows(share) || share.scale != 0) return std::nullopt;
  }
  return Shares(2, Share::Slice(0));
}

// Whether the right class is among the first k: predictions, targets, k.
std::optional<Shares> InTopK(const OpView& op) {
  if (!IsRows(op.inputs[0]) || !IsRows(op.inputs[1])) return std::nullopt;
  if (op.inputs.size() > 2 && op.inputs[2].UniformPower() != 0) return std::nullopt;
  return Shares{Share::Slice(0)};
}

std::optional<Shares> TopK(const OpView& op) {
  if (op.inputs.size() > 1 && op.inputs[1].UniformPower() != 0) return std::nullopt;
  return AlongLast(op);
}

// With statistics of its own, as in inference. In training they are of the whole batch.
std::optional<Shares> BatchNorm(const OpView& op) {
  const Share& x = op.inputs[0];
  if (FindAttrOr<bool>(op.node.attrs(), "is_training", true) || !IsRows(x) || x.scale != 0)
    return std::nullopt;
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    if (op.inputs[i].UniformPower() != 0) return std::nullopt;
  }
  Shares out(op.node.num_outputs(), Share::Equal());
  out[0] = Share::Slice(0);
  return out;
}

}  // namespace

void AddProductRules(RuleTable* table) {
  (*table)["Sum"] = {SumOrMean<false>};
  (*table)["Mean"] = {SumOrMean<true>};
  (*table)["Prod"] = {ProductOrSize};
  for (const char* op : {"Max", "Min", "All", "Any"}) (*table)[op] = {WithinRows};
  (*table)["ArgMax"] = (*table)["ArgMin"] = {ArgMax};
  for (const char* op : {"Softmax", "LogSoftmax"}) (*table)[op] = {AlongLast};
  (*table)["TopKV2"] = (*table)["TopK"] = {TopK};
  (*table)["InTopK"] = (*table)["InTopKV2"] = {InTopK};
  (*table)["MatMul"] = {MatMul, true};
  for (const char* op : {"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})
    (*table)[op] = {BatchMatMul, true};
  (*table)["Conv2D"] = (*table)["DepthwiseConv2dNative"] = {Convolution, true};
  (*table)["Conv2DBackpropInput"] =
      (*table)["DepthwiseConv2dNativeBackpropInput"] = {ImagesGradient, true};
  (*table)["Conv2DBackpropFilter"] =
      (*table)["DepthwiseConv2dNativeBackpropFilter"] = {FilterGradient, true};
  (*table)["MaxPool"] = {Pool<false>, true};
  (*table)["LRN"] = {Pool<false>, true};
  (*table)["LRNGrad"] = {[](const OpView& op) -> std::optional<Shares> {
                           for (int i = 0; i < 3; ++i) {
                             if (!IsRows(op.inputs[i]) || (i > 0 && op.inputs[i].scale != 0))
                               return std::nullopt;
                           }
                           return Shares{Share::Slice(0, op.inputs[0].scale)};
                         },
                         true};
  (*table)["AvgPool"] = {Pool<true>, true};
  (*table)["MaxPoolGrad"] = {MaxPoolGrad, true};
  (*table)["AvgPoolGrad"] = {AvgPoolGrad, true};
  (*table)["BiasAdd"] = {BiasAdd};
  (*table)["BiasAddGrad"] = {BiasAddGrad};
  (*table)["SoftmaxCrossEntropyWithLogits"] = {CrossEntropy};
  (*table)["SparseSoftmaxCrossEntropyWithLogits"] = {CrossEntropy};
  for (const char* op : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})
    (*table)[op] = {BatchNorm, true};
}

}  // namespace weft::replicate
