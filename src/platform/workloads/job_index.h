// SPDX-License-Identifier: Apache-2.0
// The pods of an indexed Job: each knows which part of the work is its own.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "net/json.h"

namespace weft::platform {

// -1: it has none.
int64_t CompletionIndexOf(const Json& pod);
// As annotation, label, host name and variable of all containers.
void AddCompletionIndex(const std::string& job, int64_t index, Json* pod);
// "0-2,5,6"
std::string Ranges(const std::set<int64_t>& numbers);

}  // namespace weft::platform
