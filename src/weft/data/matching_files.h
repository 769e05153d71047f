// SPDX-License-Identifier: Apache-2.0
// The names of files that match a pattern.
#pragma once

#include <set>
#include <string>

#include "base/files.h"

namespace weft::data {

// Adds the names that match `pattern`, whose folders may be patterns as well: * and ? stop at '/',
// [..] are sets. A folder that is not there has no files.
Status MatchFiles(FileSystem& files, const std::string& pattern, std::set<std::string>* names);

}  // namespace weft::data
