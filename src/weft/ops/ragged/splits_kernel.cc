// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/ragged/splits_kernel.h"

namespace weft::ops::ragged {

StatusOr<Splits> SplitsOf(const Tensor& tensor) {
  if (!tensor.shape().IsVector() || tensor.dim(0) < 1) {
    return InvalidArgument("Ragged splits must be a vector with one element or more, got shape ",
                           tensor.shape().ToString());
  }
  Splits splits(static_cast<size_t>(tensor.dim(0)));
  for (size_t i = 0; i < splits.size(); ++i) {
    splits[i] = IndexAt(tensor, static_cast<int64_t>(i));
    const int64_t before = i == 0 ? 0 : splits[i - 1];
    if (i == 0 ? splits[i] == 0 : splits[i] >= before) continue;
    return InvalidArgument("Ragged splits must begin with 0 and never fall, but element ", i,
                           " is ", splits[i], i == 0 ? "" : " behind ",
                           i == 0 ? "" : absl::StrCat(before));
  }
  return splits;
}

StatusOr<std::vector<Splits>> NestedSplitsOf(const KernelContext& c, int first, int count,
                                             int64_t values) {
  std::vector<Splits> nested;
  for (int i = 0; i < count; ++i) {
    WEFT_ASSIGN_OR_RETURN(Splits splits, SplitsOf(c.input(first + i)));
    if (i > 0 && nested.back().back() != static_cast<int64_t>(splits.size()) - 1) {
      return InvalidArgument("Ragged splits do not fit: one ends with ", nested.back().back(),
                             ", the next cuts ", splits.size() - 1, " rows");
    }
    nested.push_back(std::move(splits));
  }
  if (nested.empty() || nested.back().back() == values) return nested;
  return InvalidArgument("Ragged splits end with ", nested.back().back(), ", but there are ",
                         values, " values");
}

Status GiveSplits(KernelContext& c, int i, const Splits& splits) {
  WEFT_ASSIGN_OR_RETURN(Tensor * out,
                        c.AllocateOutput(i, Shape{static_cast<int64_t>(splits.size())}));
  return StoreIndices(splits, out);
}

}  // namespace weft::ops::ragged
