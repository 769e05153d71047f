// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

#include "base/nearest_name.h"
#include "weft/inspect/describe_kinds.h"
#include "weft/storage/tensor_bundle.h"

namespace weft::inspect {
namespace {

using storage::BundleReader;
using storage::BundleTensor;

StatusOr<Description> DescribeTensor(const BundleReader& reader,
                                     const std::vector<BundleTensor>& tensors,
                                     const DescribeOptions& options) {
  std::vector<std::string> names;
  for (const BundleTensor& tensor : tensors) names.push_back(tensor.name);
  if (std::find(names.begin(), names.end(), options.tensor) == names.end()) {
    const std::string nearest = NearestName(options.tensor, names);
    return NotFound("Checkpoint ", reader.prefix(), " has no tensor '", options.tensor, "'",
                    nearest.empty() ? "" : absl::StrCat("; is '", nearest, "' meant?"));
  }
  WEFT_ASSIGN_OR_RETURN(const Tensor value, reader.Read(options.tensor));
  return DescribeValues(options.tensor, value, options.max_values);
}

}  // namespace

StatusOr<Description> DescribeCheckpoint(FileSystem& files, const std::string& prefix,
                                         const DescribeOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<BundleReader> reader,
                        BundleReader::Open(files, prefix));
  WEFT_ASSIGN_OR_RETURN(const std::vector<BundleTensor> tensors, reader->List());
  if (!options.tensor.empty()) return DescribeTensor(*reader, tensors, options);
  Json list = Json::MakeArray();
  std::string lines;
  int64_t total = 0;
  for (const BundleTensor& tensor : tensors) {
    // Strings have the size of their texts, which only the data file knows.
    const bool is_sized = IsPlain(tensor.dtype);
    const int64_t bytes =
        is_sized ? tensor.shape.num_elements() * static_cast<int64_t>(DTypeSize(tensor.dtype)) : 0;
    total += bytes;
    absl::StrAppendFormat(
        &lines, "  %-48s %-24s %10s%s\n", tensor.name, TypeText(tensor.dtype, tensor.shape),
        is_sized ? BytesText(bytes) : "",
        tensor.slices.empty() ? "" : absl::StrCat("  in ", tensor.slices.size(), " slices"));
    Json item = Json::MakeObject();
    item.Set("name", tensor.name);
    item.Set("dtype", DTypeName(tensor.dtype));
    item.Set("shape", ShapeJson(tensor.shape));
    if (is_sized) item.Set("bytes", bytes);
    if (!tensor.slices.empty()) item.Set("slices", static_cast<int64_t>(tensor.slices.size()));
    list.Append(std::move(item));
  }
  Description description;
  description.text = absl::StrCat(prefix, ": checkpoint of ", tensors.size(), " tensors, ",
                                  BytesText(total), " in ", reader->num_shards(),
                                  reader->num_shards() == 1 ? " shard\n" : " shards\n", lines);
  description.json = Json::MakeObject();
  description.json.Set("kind", "checkpoint");
  description.json.Set("path", prefix);
  description.json.Set("shards", reader->num_shards());
  description.json.Set("bytes", total);
  description.json.Set("tensors", std::move(list));
  description.status = reader->CheckDataFiles();
  return description;
}

}  // namespace weft::inspect
