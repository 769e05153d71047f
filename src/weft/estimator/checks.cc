// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/checks.h"

#include <vector>

#include "absl/strings/str_cat.h"

#include "weft/estimator/graph_writing.h"

namespace weft::estimator {

Endpoint InRange(GraphBuilder& b, Endpoint ids, int64_t size, const std::string& what) {
  if (!b.ok()) return {};
  const Endpoint flat = ReshapeTo(b, ids, {-1});
  const Endpoint low = b.Op("GreaterEqual", {flat, b.Scalar<int64_t>(0)});
  const Endpoint high = b.Op("Less", {flat, b.Scalar<int64_t>(size)});
  const Endpoint all_in =
      b.Op("All", {b.Op("LogicalAnd", {low, high}), b.Constant(Tensor::Vector<int32_t>({0}))});
  const Endpoint told = b.Scalar<std::string>(absl::StrCat(what, " outside of [0, ", size, "):"));
  Node* check =
      b.AddNode("Assert", {all_in, std::vector<Endpoint>{told, flat}}, {{"summarize", 10}});
  if (check == nullptr) return {};
  const std::vector<Node*> outer = b.control_inputs();
  std::vector<Node*> inner = outer;
  inner.push_back(check);
  b.set_control_inputs(inner);
  const Endpoint checked = b.Op("Identity", {ids});
  b.set_control_inputs(outer);
  return checked;
}

}  // namespace weft::estimator
