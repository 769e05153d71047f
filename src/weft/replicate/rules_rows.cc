// SPDX-License-Identifier: Apache-2.0
// Ops that treat each row by itself, or all rows by weights that are the same everywhere; and sums
// of products by their equation.
#include <algorithm>
#include <set>

#include "absl/strings/str_split.h"

#include "weft/replicate/rules.h"

namespace weft::replicate {
namespace {

bool AreRows(const Share& share) { return share.is_slice() && share.dim == 0; }
bool ArePlainRows(const Share& share) { return AreRows(share) && share.scale == 0; }

// Inputs are rows or the same everywhere; all outputs are rows.
std::optional<Shares> ByRow(const OpView& op) {
  bool has_rows = false;
  for (const Share& share : op.inputs) {
    if (!ArePlainRows(share) && share.UniformPower() != 0) return std::nullopt;
    has_rows = has_rows || share.is_slice();
  }
  if (!has_rows) return Shares(op.node.num_outputs(), Share::Equal());
  return Shares(op.node.num_outputs(), Share::Slice(0));
}

// Input 0 is rows in which the op is linear, the others are the same.
std::optional<Shares> LinearByRow(const OpView& op) {
  if (!AreRows(op.inputs[0])) return std::nullopt;
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    if (op.inputs[i].UniformPower() != 0) return std::nullopt;
  }
  return Shares(op.node.num_outputs(), Share::Slice(0, op.inputs[0].scale));
}

// Gradient by row of input 0, whose original's sizes input 1 gives, as rows.
std::optional<Shares> ResizeGradient(const OpView& op) {
  if (!AreRows(op.inputs[0])) return std::nullopt;
  const bool is_original =
      op.node.op() == "ResizeBilinearGrad" || op.node.op() == "ResizeBicubicGrad";
  if (is_original ? !AreRows(op.inputs[1]) : op.inputs[1].UniformPower() != 0) return std::nullopt;
  return Shares{Share::Slice(0, op.inputs[0].scale)};
}

// Sums and products along a dimension that is not the rows'.
template <bool kLinear>
std::optional<Shares> Cumulated(const OpView& op) {
  const Share& x = op.inputs[0];
  const std::optional<int> axis = op.Axis(1, op.rank(0));
  if (!x.is_slice() || !axis || *axis == x.dim || (!kLinear && x.scale != 0)) return std::nullopt;
  return Shares{Share::Slice(x.dim, x.scale)};
}

// Dimensions in the other direction.
std::optional<Shares> Reverse(const OpView& op) {
  const Share& x = op.inputs[0];
  const auto axes = op.Integers(1);
  if (!x.is_slice() || !axes || op.rank(0) < 0) return std::nullopt;
  for (int64_t axis : *axes) {
    if ((axis < 0 ? axis + op.rank(0) : axis) == x.dim) return std::nullopt;
  }
  return Shares{Share::Slice(x.dim, x.scale)};
}

// values, lengths of each row.
std::optional<Shares> ReverseSequence(const OpView& op) {
  const Share &x = op.inputs[0], &lengths = op.inputs[1];
  const auto batch = FindAttrOr<int64_t>(op.node.attrs(), "batch_dim", 0);
  const auto along = FindAttrOr<int64_t>(op.node.attrs(), "seq_dim", 0);
  if (!x.is_slice() || x.dim != batch || along == batch || !ArePlainRows(lengths))
    return std::nullopt;
  return Shares{Share::Slice(x.dim, x.scale)};
}

// The inner two dimensions of rows: bands, triangles, diagonals.
std::optional<Shares> InnerMatrices(const OpView& op) {
  const Share& x = op.inputs[0];
  if (!x.is_slice() || op.rank(0) < 0 || x.dim >= op.rank(0) - 2) return std::nullopt;
  for (size_t i = 1; i < op.inputs.size(); ++i) {
    if (op.inputs[i].UniformPower() != 0) return std::nullopt;
  }
  return Shares{Share::Slice(x.dim, x.scale)};
}

// rows of volumes, filter, and their gradients.
std::optional<Shares> Volumes(const OpView& op) {
  if (!AreRows(op.inputs[0]) || op.inputs[1].UniformPower() != 0) return std::nullopt;
  return Shares{Share::Slice(0, op.inputs[0].scale)};
}
bool TellRows(const Share& sizes) {
  return sizes.is_same() && sizes.elements && !sizes.elements->empty() &&
         sizes.elements->front().power == -1;
}
std::optional<Shares> VolumesGradient(const OpView& op) {
  if (!TellRows(op.inputs[0]) || op.inputs[1].UniformPower() != 0 || !AreRows(op.inputs[2]))
    return std::nullopt;
  return Shares{Share::Slice(0, op.inputs[2].scale)};
}
std::optional<Shares> VolumesFilterGradient(const OpView& op) {
  if (!AreRows(op.inputs[0]) || op.inputs[1].UniformPower() != 0 || !AreRows(op.inputs[2]))
    return std::nullopt;
  return Shares{Share::Part(op.inputs[0].scale + op.inputs[2].scale)};
}

// "bthd,bshd->bhts": what stands where in an operand of this rank; an ellipsis as digits from the
// back. None for what is not understood.
std::optional<std::string> Labels(std::string text, int rank) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const size_t dots = text.find("...");
  if (dots == std::string::npos)
    return rank == static_cast<int>(text.size()) ? std::optional(text) : std::nullopt;
  const int many = rank - static_cast<int>(text.size() - 3);
  if (rank < 0 || many < 0 || many > 9) return std::nullopt;
  std::string stands;
  for (int i = many; i > 0; --i) stands += static_cast<char>('0' + i);
  return text.replace(dots, 3, stands);
}

std::optional<Shares> Einsum(const OpView& op) {
  const std::vector<std::string> sides =
      absl::StrSplit(FindAttrOr<std::string>(op.node.attrs(), "equation", ""), "->");
  if (sides.size() != 2) return std::nullopt;
  const std::vector<std::string> operands = absl::StrSplit(sides[0], ',');
  if (operands.size() != op.inputs.size()) return std::nullopt;
  int scale = 0, parts = 0, most_dots = 0;
  std::optional<char> batch;
  std::vector<std::string> labels;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Share& share = op.inputs[i];
    const auto found = Labels(operands[i], op.rank(static_cast<int>(i)));
    if (!found) return std::nullopt;
    labels.push_back(*found);
    for (const char label : *found) {
      if (label <= '9') most_dots = std::max(most_dots, label - '0');
    }
    if (share.is_same()) {
      if (!share.UniformPower()) return std::nullopt;
      scale += *share.UniformPower();
      continue;
    }
    scale += share.scale;
    parts += share.is_part() ? 1 : 0;
    if (share.is_part()) continue;
    const char label = (*found)[share.dim];
    if ((batch && *batch != label) || std::count(found->begin(), found->end(), label) > 1)
      return std::nullopt;
    batch = label;
  }
  if (parts > 1 || (parts == 1 && batch)) return std::nullopt;
  if (!batch) return Shares{parts == 1 ? Share::Part(scale) : Share::Equal(scale)};
  // Another operand with the same label must be rows too, or have one that broadcasts.
  for (size_t i = 0; i < labels.size(); ++i) {
    const size_t at = labels[i].find(*batch);
    if (!op.inputs[i].is_slice() && at != std::string::npos &&
        op.shapes[i].dim(static_cast<int>(at)) != 1)
      return std::nullopt;
  }
  std::string to = sides[1];
  to.erase(std::remove(to.begin(), to.end(), ' '), to.end());
  const int dots = to.find("...") == std::string::npos ? 0 : most_dots - 3;
  const auto output = Labels(to, static_cast<int>(to.size()) + dots);
  if (!output) return std::nullopt;
  const size_t at = output->find(*batch);
  if (at == std::string::npos) return Shares{Share::Part(scale)};
  return Shares{Share::Slice(static_cast<int>(at), scale)};
}

}  // namespace

void AddRowRules(RuleTable* table) {
  (*table)["Einsum"] = {Einsum, true};
  (*table)["Cumsum"] = {Cumulated<true>};
  (*table)["Cumprod"] = {Cumulated<false>};
  (*table)["ReverseV2"] = {Reverse};
  (*table)["ReverseSequence"] = {ReverseSequence};
  for (const char* op : {"MatrixBandPart", "MatrixDiagPart", "MatrixDiagPartV3"})
    (*table)[op] = {InnerMatrices};
  for (const char* op : {"ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic", "DepthToSpace",
                         "SpaceToDepth", "AvgPool3D"}) {
    (*table)[op] = {LinearByRow};
  }
  for (const char* op : {"ResizeBilinearGrad", "ResizeBicubicGrad", "ResizeNearestNeighborGrad"})
    (*table)[op] = {ResizeGradient};
  (*table)["MaxPool3D"] = {ByRow, true};
  (*table)["Conv3D"] = {Volumes, true};
  (*table)["Conv3DBackpropInputV2"] = {VolumesGradient, true};
  (*table)["Conv3DBackpropFilterV2"] = {VolumesFilterGradient, true};
  for (const char* op : {"LSTMBlockCell", "GRUBlockCell"}) (*table)[op] = {ByRow, true};
  for (const char* op : {"StringToHashBucketFast", "StringToHashBucket", "StringToHashBucketStrong",
                         "Bucketize", "StringToNumber", "StringLower", "StringUpper"}) {
    (*table)[op] = {ByRow};
  }
}

}  // namespace weft::replicate
