// SPDX-License-Identifier: Apache-2.0
// Writes the C++ op constructors and the op reference from the catalogue.
#pragma once

#include <string>
#include <vector>

#include "weft/kernel/op_spec.h"

namespace weft::api {

// The generated pair weft/api/ops.h and ops.cc: one function an op in namespace weft::op. Inputs
// come first, then attributes without a default, then a struct of the others.
struct Constructors {
  std::string header;
  std::string source;
};
Constructors GenerateConstructors(const Catalogue& catalogue);

// The constructors of `ops` as one header, for an op library: `library` is named in its first line.
std::string GenerateHeader(const Catalogue& catalogue, const std::vector<std::string>& ops,
                           const std::string& library);

// One page in Markdown: each op with its text, signature, kernels' types and whether it has a
// gradient.
std::string GenerateReference(const Catalogue& catalogue);

}  // namespace weft::api
