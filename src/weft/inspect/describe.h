// SPDX-License-Identifier: Apache-2.0
// What is in a file: a graph, a checkpoint, events, records.
#pragma once

#include <cstdint>
#include <string>

#include "base/files.h"
#include "base/status.h"
#include "net/json.h"

namespace weft::inspect {

struct Description {
  std::string text;  // lines for people
  Json json;
  // Not OK if the file is damaged from some place on: the rest is described.
  Status status;
};

struct DescribeOptions {
  std::string
      tensor;  // only the values of this tensor of a checkpoint, or of this constant of a graph
  int64_t max_values = 1000;  // of it
};

// Finds out what `path` is: a checkpoint by its prefix, one of its files or its folder; a graph as
// ReadGraphFile; an event file; TFRecords, gzipped or not. Errors name the file and say what was
// expected.
StatusOr<Description> DescribeFile(FileSystem& files, const std::string& path,
                                   const DescribeOptions& options);

}  // namespace weft::inspect
