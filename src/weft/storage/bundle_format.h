// SPDX-License-Identifier: Apache-2.0
// What the writer, the reader and the merger of tensor bundles agree on.
#pragma once

#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/storage/tensor_slice.h"
#include "weft/tensor/tensor.h"

namespace weft::storage {

inline constexpr int kBundleVersion = 1;
// The header stands under the empty key.
inline constexpr absl::string_view kBundleHeaderKey = "";

inline std::string BundleIndexPath(absl::string_view prefix) {
  return absl::StrCat(prefix, ".index");
}
inline std::string BundleDataPath(absl::string_view prefix, int shard, int num_shards) {
  return absl::StrCat(prefix, absl::StrFormat(".data-%05d-of-%05d", shard, num_shards));
}

// The key of one slice of a partitioned tensor; starts with a zero byte, as no name does.
std::string BundleSliceKey(absl::string_view name, const TensorSlice& slice);
inline bool IsBundleSliceKey(absl::string_view key) { return !key.empty() && key[0] == '\0'; }

// The bytes of a tensor of strings or variants in a data file, and their unmasked checksum.
struct EncodedObjects {
  std::string bytes;
  uint32_t crc = 0;
};
StatusOr<EncodedObjects> EncodeStrings(const Tensor& tensor);
StatusOr<EncodedObjects> EncodeVariants(const Tensor& tensor);
// Back again; `*crc` receives the checksum of what was read. DataLoss where the bytes do not hold
// what `shape` asks for.
StatusOr<Tensor> DecodeStrings(const Shape& shape, absl::string_view bytes, uint32_t* crc);
StatusOr<Tensor> DecodeVariants(const Shape& shape, absl::string_view bytes, uint32_t* crc);

}  // namespace weft::storage
