// SPDX-License-Identifier: Apache-2.0
// Joins the bundles that several tasks wrote into one checkpoint.
#pragma once

#include <string>

#include "absl/types/span.h"

#include "base/files.h"
#include "base/status.h"

namespace weft::storage {

struct MergeOptions {
  // Remove the inputs' folders afterwards, where they are empty and not that of the result.
  bool delete_old_dirs = true;
  // Pass over inputs whose index is not there, unless all are missing.
  bool allow_missing = false;
};

// Renames the data files of `prefixes` to be shards of `merged_prefix`, writes one index for them
// and removes the old ones. The new index comes last: until then readers find no checkpoint. All
// input is checked before the first file moves: NotFound for a missing file, InvalidArgument for a
// tensor that stands in two inputs, DataLoss for a damaged index.
Status MergeBundles(FileSystem& files, absl::Span<const std::string> prefixes,
                    const std::string& merged_prefix, const MergeOptions& options = {});

}  // namespace weft::storage
