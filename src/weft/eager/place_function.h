// SPDX-License-Identifier: Apache-2.0
// Functions that are given resources of other tasks.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "weft/graph/graph.h"
#include "weft/graph/node_def.h"

namespace weft::eager {

// A copy of the function `name` of `library` in which what uses argument i directly, over
// Identities, calls, branches or loops, asks for the device `devices[i]`; empty for arguments that
// lie anywhere; what else says nothing asks for `here`. A session then makes the body a part of its
// step's graph, whose nodes run where their resources are. The copy, and those of functions that it
// calls, are added to `library` and appended to `added`, unless they are there. NotFound names a
// function that is not.
StatusOr<std::string> PlaceFunction(const std::string& name,
                                    const std::vector<std::string>& devices,
                                    const std::string& here, Graph* library,
                                    std::vector<FunctionDef>* added);

}  // namespace weft::eager
