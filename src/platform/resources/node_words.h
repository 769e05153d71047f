// SPDX-License-Identifier: Apache-2.0
// Nodes as people describe them in a word or a file, for `weft up --node` and `weft simulate`.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

// A Node object of "NAME[,RESOURCE=AMOUNT][,label:KEY=VALUE][,taint:KEY[=VALUE]:EFFECT]...", as
// "b,cpu=8,memory=32Gi,gpu=4,label:zone=x". `gpu` stands for nvidia.com/gpu; gpu-memory and
// gpu-model say more of the GPUs. InvalidArgument names the part that is wrong.
StatusOr<Json> ParseNodeWord(absl::string_view word);

}  // namespace weft::platform
