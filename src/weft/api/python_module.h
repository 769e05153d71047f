// SPDX-License-Identifier: Apache-2.0
// Ops of a library for TensorFlow's Python client.
#pragma once

#include <string>
#include <vector>

#include "weft/kernel/op_spec.h"

namespace weft::api {

// A module with one function an op, which tells TensorFlow of the ops through its own library's C
// interface: nothing is compiled, and nothing of it computes. `library` is named in its first
// lines.
std::string GeneratePythonModule(const Catalogue& catalogue, const std::vector<std::string>& ops,
                                 const std::string& library);

}  // namespace weft::api
