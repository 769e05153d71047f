// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/window.h"

#include "weft/estimator/graph_writing.h"

namespace weft::estimator {

std::vector<int64_t> WholeWindow(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> whole = {1};
  if (sizes.size() == 1) whole.push_back(1);
  whole.insert(whole.end(), sizes.begin(), sizes.end());
  whole.push_back(1);
  return whole;
}

StatusOr<std::string> PaddingAttr(const std::string& padding) {
  if (padding == "valid") return std::string("VALID");
  if (padding == "same") return std::string("SAME");
  return InvalidArgument("padding is '", padding, "', expected valid or same");
}

Endpoint AddHeight(GraphBuilder& b, Endpoint x) { return ExpandDim(b, x, 1); }

Endpoint DropHeight(GraphBuilder& b, Endpoint x) {
  return b.Op("Squeeze", {x}, {{"squeeze_dims", AttrValue::IntList{1}}});
}

}  // namespace weft::estimator
