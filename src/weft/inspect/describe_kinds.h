// SPDX-License-Identifier: Apache-2.0
// One function a kind of file; describe.cc chooses.
#pragma once

#include <string>

#include "weft/inspect/describe.h"
#include "weft/inspect/graph_file.h"
#include "weft/storage/byte_stream.h"
#include "weft/tensor/tensor.h"

namespace weft::inspect {

StatusOr<Description> DescribeCheckpoint(FileSystem& files, const std::string& prefix,
                                         const DescribeOptions& options);
StatusOr<Description> DescribeGraph(const GraphFile& file, const DescribeOptions& options);
StatusOr<Description> DescribeEvents(FileSystem& files, const std::string& path);
StatusOr<Description> DescribeRecords(FileSystem& files, const std::string& path,
                                      storage::Compression compression);

// The values of one tensor in row-major order, at most `max_values`: describe_values.cc.
Description DescribeValues(const std::string& name, const Tensor& tensor, int64_t max_values);
// "float [2,?]"
std::string TypeText(DType dtype, const PartialShape& shape);
Json ShapeJson(const PartialShape& shape);
// "1.5 KB"
std::string BytesText(int64_t bytes);

}  // namespace weft::inspect
