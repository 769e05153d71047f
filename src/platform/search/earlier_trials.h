// SPDX-License-Identifier: Apache-2.0
// What an earlier search has found, as a start for another one.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "platform/search/space.h"

namespace weft::platform {

// The best points of the journal at `path` (of `weft tune`), at most `count`, as far as they lie in
// `space`: parameters of other names are left out, and a point that lacks one of ours too. NotFound
// when there is no journal, InvalidArgument when it is none.
StatusOr<std::vector<std::vector<double>>> ReadBestPoints(FileSystem& files,
                                                          const std::string& path,
                                                          const SearchSpace& space, bool maximize,
                                                          size_t count);

}  // namespace weft::platform
