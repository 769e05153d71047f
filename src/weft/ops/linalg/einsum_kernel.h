// SPDX-License-Identifier: Apache-2.0
// Equations of Einsum, such as "bij,bjk->bik".
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "weft/tensor/shape.h"

namespace weft::ops::linalg {

// The dimensions of an operand or of the output by label: a letter, or, for what an ellipsis stands
// for, a number from -1 (the last one) down.
using Labels = std::vector<int>;

struct Equation {
  std::vector<std::string> operands;
  std::string output;

  // InvalidArgument unless the text is one of `num_operands` operands, at most two.
  static StatusOr<Equation> Parse(const std::string& text, int num_operands);
};

// `text` spelled out for an operand of rank `rank`. InvalidArgument if it has another one.
StatusOr<Labels> OperandLabels(const std::string& text, int rank);
// The same of the output, where an ellipsis stands for `broadcast` dimensions.
Labels OutputLabels(const std::string& text, int broadcast);

// The size that each label has in the operands. Those of an ellipsis broadcast, others must agree.
// -1 where it is not known.
StatusOr<std::map<int, int64_t>> LabelSizes(const std::vector<Labels>& operands,
                                            const std::vector<PartialShape>& shapes);

}  // namespace weft::ops::linalg
