// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/op_work.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace weft::platform {
namespace {

double Elements(const TensorCost* tensor) {
  if (tensor == nullptr) return 0;
  double count = 1;
  for (const int64_t dim : tensor->dims) count *= static_cast<double>(std::max<int64_t>(dim, 1));
  return count;
}

double LastDim(const TensorCost* tensor, size_t from_end = 1) {
  if (tensor == nullptr || tensor->dims.size() < from_end) return 1;
  return static_cast<double>(std::max<int64_t>(tensor->dims[tensor->dims.size() - from_end], 1));
}

// Two for each element of the product and of what is summed. That is A [m,k] B [k,n] -> [m,n] by
// any transposition: sqrt((mk) (kn) (mn)) = m k n; batches are counted in all three.
double ProductFlops(double a, double b, double c, double batches) {
  const double per_batch = a / batches * (b / batches) * (c / batches);
  double root = 1;
  // Newton's method from above, so that there is no header of mathematics' rounding in a plan.
  for (root = std::max(per_batch, 1.0); root * root > per_batch * (1 + 1e-9);)
    root = (root + per_batch / root) / 2;
  return 2 * root * batches;
}

double BatchesOf(const TensorCost& tensor) {
  double batches = 1;
  for (size_t i = 0; i + 2 < tensor.dims.size(); ++i)
    batches *= static_cast<double>(std::max<int64_t>(tensor.dims[i], 1));
  return batches;
}

// Where only one factor is known: what it does not share with the product is what is summed over.
double ProductFlopsByOne(const TensorCost* a, const TensorCost* b, const TensorCost& product) {
  const TensorCost* const known = a != nullptr ? a : b;
  if (known == nullptr || known->dims.size() < 2) return Elements(&product);
  const double kept = a != nullptr ? LastDim(&product, 2) : LastDim(&product);
  // The usual order is [kept, summed] for the first factor and [summed, kept] for the second.
  const double usual = LastDim(known, a != nullptr ? 2 : 1);
  const double other = LastDim(known, a != nullptr ? 1 : 2);
  const double summed = usual == kept ? other : usual;
  return 2 * Elements(&product) * summed;
}

// Each element of the forward output is a sum over the filter's window and the input's channels.
// Filters are [height, width, in, out].
double ConvolutionFlops(const OpCost& op, const std::vector<const TensorCost*>& inputs) {
  const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i] : nullptr; };
  const TensorCost* const output = op.outputs.empty() ? nullptr : &op.outputs[0];
  if (absl::StrContains(op.op, "BackpropFilter")) {
    const double sum = Elements(output) / std::max(LastDim(output), 1.0);
    return 2 * Elements(input(2)) * sum;
  }
  const TensorCost* const filter = input(1);
  const double window = Elements(filter) / std::max(LastDim(filter), 1.0);
  if (absl::StrContains(op.op, "BackpropInput")) return 2 * Elements(input(2)) * window;
  if (absl::StartsWith(op.op, "Depthwise"))
    return 2 * Elements(output) * window / std::max(LastDim(filter, 2), 1.0);
  return 2 * Elements(output) * window;
}

bool IsAmong(absl::string_view op, absl::Span<const absl::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

}  // namespace

bool IsFree(const std::string& op) {
  static constexpr std::array<absl::string_view, 22> kFree = {
      "Const",          "Identity",          "Reshape",    "Placeholder", "PlaceholderWithDefault",
      "NoOp",           "StopGradient",      "Squeeze",    "ExpandDims",  "ReadVariableOp",
      "VarHandleOp",    "Variable",          "VariableV2", "Shape",       "IdentityN",
      "_Arg",           "_Retval",           "Switch",     "Merge",       "PreventGradient",
      "ControlTrigger", "VarIsInitializedOp"};
  return IsAmong(op, kFree);
}

bool IsVariable(const std::string& op) {
  static constexpr std::array<absl::string_view, 4> kVariables = {
      "VarHandleOp", "Variable", "VariableV2", "AutoReloadVariable"};
  return IsAmong(op, kVariables);
}

bool IsUpdate(const std::string& op) {
  for (const char* const start : {"ResourceApply", "ResourceSparseApply", "Apply", "SparseApply",
                                  "Assign", "ResourceScatter", "Scatter"}) {
    if (absl::StartsWith(op, start) && op != "ScatterNd") return true;
  }
  return false;
}

bool IsLookup(const std::string& op) {
  return op == "ResourceGather" || op == "ResourceGatherNd" || op == "Gather" || op == "GatherV2" ||
         op == "GatherNd";
}

OpWork WorkOf(const OpCost& op, const std::vector<const TensorCost*>& inputs) {
  OpWork work;
  if (IsFree(op.op)) return work;
  double largest = 0;
  double written = 0;
  double read = 0;
  for (const TensorCost& output : op.outputs) {
    written += static_cast<double>(output.bytes);
    largest = std::max(largest, Elements(&output));
  }
  for (const TensorCost* input : inputs) {
    if (input == nullptr) continue;
    read += static_cast<double>(input->bytes);
    largest = std::max(largest, Elements(input));
  }
  // Of a table only the rows that are asked for are touched.
  if (IsLookup(op.op)) read = written;
  work.bytes = read + written;
  const TensorCost* const output = op.outputs.empty() ? nullptr : &op.outputs[0];
  if (absl::StrContains(op.op, "MatMul") && output != nullptr && inputs.size() >= 2) {
    work.flops = inputs[0] != nullptr && inputs[1] != nullptr
                     ? ProductFlops(Elements(inputs[0]), Elements(inputs[1]), Elements(output),
                                    BatchesOf(*output))
                     : ProductFlopsByOne(inputs[0], inputs[1], *output);
  } else if (absl::StrContains(op.op, "Conv2D") || absl::StrContains(op.op, "Conv3D") ||
             absl::StrContains(op.op, "DepthwiseConv")) {
    work.flops = ConvolutionFlops(op, inputs);
  } else if (!IsLookup(op.op)) {
    work.flops = largest;
  }
  return work;
}

}  // namespace weft::platform
