// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/linalg/einsum_kernel.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace weft::ops::linalg {
namespace {

constexpr char kEllipsis[] = "...";

// InvalidArgument unless `text` is letters and at most one ellipsis.
Status CheckLabels(const std::string& text) {
  bool has_ellipsis = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '.') {
      if (has_ellipsis || text.compare(i, 3, kEllipsis) != 0) {
        return InvalidArgument("Ellipsis must be '...', at most once in: ", text);
      }
      has_ellipsis = true;
      i += 2;
    } else if (!absl::ascii_isalpha(static_cast<unsigned char>(text[i]))) {
      return InvalidArgument("Labels of an equation must be letters, not in: ", text);
    }
  }
  return absl::OkStatus();
}

Labels Spelled(const std::string& text, int broadcast) {
  Labels labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '.') {
      labels.push_back(static_cast<unsigned char>(text[i]));
      continue;
    }
    for (int d = broadcast; d > 0; --d) labels.push_back(-d);
    i += 2;
  }
  return labels;
}

}  // namespace

StatusOr<Equation> Equation::Parse(const std::string& text, int num_operands) {
  std::string dense = text;
  dense.erase(std::remove(dense.begin(), dense.end(), ' '), dense.end());
  const std::vector<std::string> sides = absl::StrSplit(dense, "->");
  if (sides.size() != 2) {
    return InvalidArgument("Expecting exactly one '->' in einsum equation: ", text);
  }
  Equation equation{.operands = absl::StrSplit(sides[0], ','), .output = sides[1]};
  if (equation.operands.size() > 2) {
    return InvalidArgument("Expecting 1 or 2 input subscripts in equation '", text,
                           "' but got: ", equation.operands.size());
  }
  if (static_cast<int>(equation.operands.size()) != num_operands) {
    return InvalidArgument("Expected ", num_operands, " operands in equation '", text,
                           "' but got: ", equation.operands.size());
  }
  WEFT_RETURN_IF_ERROR(CheckLabels(equation.output));
  for (const std::string& operand : equation.operands) {
    WEFT_RETURN_IF_ERROR(CheckLabels(operand));
    if (operand.find('.') == std::string::npos) continue;
    if (equation.output.find('.') == std::string::npos) {
      return InvalidArgument("An ellipsis of an operand must be in the output, too: ", text);
    }
  }
  for (const char label : equation.output) {
    if (label == '.' || sides[0].find(label) != std::string::npos) continue;
    return InvalidArgument("Label '", std::string(1, label),
                           "' of the output is in no operand: ", text);
  }
  return equation;
}

StatusOr<Labels> OperandLabels(const std::string& text, int rank) {
  const bool has_ellipsis = text.find('.') != std::string::npos;
  const int named = static_cast<int>(text.size()) - (has_ellipsis ? 3 : 0);
  if (named > rank || (named < rank && !has_ellipsis)) {
    return InvalidArgument("Expected input with rank ", has_ellipsis ? "at least " : "", named,
                           " for '", text, "' but got rank ", rank);
  }
  return Spelled(text, rank - named);
}

Labels OutputLabels(const std::string& text, int broadcast) { return Spelled(text, broadcast); }

StatusOr<std::map<int, int64_t>> LabelSizes(const std::vector<Labels>& operands,
                                            const std::vector<PartialShape>& shapes) {
  std::map<int, int64_t> sizes;
  for (size_t i = 0; i < operands.size(); ++i) {
    for (size_t d = 0; d < operands[i].size(); ++d) {
      const int label = operands[i][d];
      const int64_t size = shapes[i].dim(static_cast<int>(d));
      const auto [at, is_new] = sizes.emplace(label, size);
      int64_t& known = at->second;
      if (is_new || size == known || size < 0) continue;
      if (known < 0 || (label < 0 && known == 1)) {
        known = size;
      } else if (label >= 0 || size != 1) {
        return InvalidArgument(
            label >= 0 ? absl::StrCat("Dimensions of label '",
                                      std::string(1, static_cast<char>(label)), "' differ: ")
                       : "Dimensions of an ellipsis do not broadcast: ",
            known, " and ", size);
      }
    }
  }
  return sizes;
}

}  // namespace weft::ops::linalg
