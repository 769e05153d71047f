// SPDX-License-Identifier: Apache-2.0
// Signatures in the words of TensorFlow's op registrations, which ParseAttrSchema and
// ParseArgSchema read.
#pragma once

#include <string>

#include "weft/graph/op_schema.h"

namespace weft::api {

// "values: N * T"
std::string ArgText(const ArgSchema& arg);
// "T: {float, double}", "rate: float = 0.5", "T: type = DT_FLOAT"
std::string AttrText(const AttrSchema& attr);

}  // namespace weft::api
