// SPDX-License-Identifier: Apache-2.0
#include "weft/replicate/node_facts.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "weft/replicate/rules.h"

namespace weft::replicate {
namespace {

constexpr int64_t kMostElements = 64;
// Larger constants are not looked at, whether they are zeros.
constexpr size_t kMostBytesOfZeros = size_t{1} << 24;

}  // namespace

std::string Quoted(const Node& node) {
  return absl::StrCat("'", node.name(), "' (", node.op(), ")");
}

std::optional<Elements> ElementsOf(const Tensor& tensor) {
  if (tensor.shape().rank() > 1 || tensor.num_elements() > kMostElements) return std::nullopt;
  Elements elements;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (tensor.dtype() == DType::kInt32) {
      elements.push_back({.value = tensor.data<int32_t>()[i]});
    } else if (tensor.dtype() == DType::kInt64) {
      elements.push_back({.value = tensor.data<int64_t>()[i]});
    } else {
      return std::nullopt;
    }
  }
  return elements;
}

bool IsZero(const Tensor& tensor) {
  if (!IsPlain(tensor.dtype()) || tensor.size_bytes() > kMostBytesOfZeros) return false;
  const std::byte* const bytes = tensor.bytes();
  return std::all_of(bytes, bytes + tensor.size_bytes(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

bool IsUpdate(const Node& node) {
  if (node.traits().changes_variable) return true;
  if (node.traits().passes_reference) return false;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.input_type(i).is_ref) return true;
  }
  return false;
}

bool IsStatefulSource(const Node& node) {
  return node.schema().is_stateful && node.traits().source == ValueSource::kNone &&
         !node.IsCallEnd() && node.num_outputs() > 0 && !IsRandom(node) &&
         (absl::StrContains(node.op(), "Iterator") || absl::StrContains(node.op(), "Queue") ||
          absl::StrContains(node.op(), "Reader") || absl::StrContains(node.op(), "Stage"));
}

bool IsMark(const Node& node) { return node.op() == "NoOp" || node.op() == "ControlTrigger"; }

bool CanBePutTogether(const Share& share, const Node& reader, int input) {
  if (share.is_whole() || share.cut) return true;
  if (share.is_list) return false;
  const DType dtype = reader.input_type(input).dtype;
  if (share.is_equal()) {
    if (share.UniformPower() == 0) return true;
    if (IsFloating(dtype)) return share.UniformPower().has_value();
    if (!share.elements) return share.scale <= 0;
    return std::all_of(share.elements->begin(), share.elements->end(),
                       [](const Element& element) { return element.power <= 0; });
  }
  if (share.scale != 0 && !share.zero && !IsFloating(dtype)) return false;
  return share.is_slice() || IsFloating(dtype) || dtype == DType::kInt32 || dtype == DType::kInt64;
}

}  // namespace weft::replicate
