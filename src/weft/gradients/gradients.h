// SPDX-License-Identifier: Apache-2.0
// Symbolic gradients: adds nodes that compute d(sum of ys)/dx.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "weft/graph/gradient.h"

namespace weft::gradients {

// dL/dx for each of `xs`, where L is the sum of all elements of `ys`, each weighted by its
// `y_gradients` where given (else ones). An x that no y depends on has an empty gradient. Nodes are
// named gradients/<node>_grad/..., a second time gradients_1/... Functions that Ifs, Whiles, Cases
// and calls on the way run get further results and their nodes further outputs: differentiate
// before a session gets the graph. Unimplemented names the first op on a path that has no gradient.
StatusOr<std::vector<TensorGradient>> AddGradients(GraphBuilder& builder,
                                                   const std::vector<Endpoint>& ys,
                                                   const std::vector<Endpoint>& xs,
                                                   const std::vector<Endpoint>& y_gradients = {});

// The same as one dense tensor each: row gradients are summed into a tensor of x's shape.
StatusOr<std::vector<Endpoint>> AddDenseGradients(GraphBuilder& builder,
                                                  const std::vector<Endpoint>& ys,
                                                  const std::vector<Endpoint>& xs);

// AddGradients for part of what is differentiated together: gradients of one `source` add up in the
// same TensorArrays.
StatusOr<std::vector<TensorGradient>> AddGradientsOf(GraphBuilder& builder,
                                                     const std::string& source,
                                                     const std::vector<Endpoint>& ys,
                                                     const std::vector<Endpoint>& xs,
                                                     const std::vector<Endpoint>& y_gradients);

// True for what gradients flow through: numbers, lists of them, and handles of variables.
bool CarriesGradients(DType dtype);

// Row gradients as a dense tensor: sums values of equal rows.
Endpoint Densify(GraphBuilder& builder, const TensorGradient& gradient);

}  // namespace weft::gradients
