// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/bundle_format.h"

#include <vector>

#include "base/crc32c.h"
#include "proto/tensorflow/tensor.pb.h"
#include "weft/storage/coding.h"
#include "weft/storage/ordered_code.h"
#include "weft/tensor/shape_proto.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::storage {
namespace {

// A string's length counts in the checksum as a number of fixed width, not as it is stored.
uint32_t ExtendByLength(uint32_t crc, uint64_t length) {
  std::string fixed;
  length <= UINT32_MAX ? AppendFixed32(static_cast<uint32_t>(length), &fixed)
                       : AppendFixed64(length, &fixed);
  return Crc32cExtend(crc, fixed);
}

}  // namespace

std::string BundleSliceKey(absl::string_view name, const TensorSlice& slice) {
  std::string key;
  AppendOrderedNumber(0, &key);
  AppendOrderedString(name, &key);
  AppendOrderedNumber(slice.extents.size(), &key);
  for (const TensorSlice::Extent& extent : slice.extents) {
    AppendOrderedSigned(extent.start, &key);
    AppendOrderedSigned(extent.length, &key);
  }
  return key;
}

// All lengths, their checksum, then all texts.
StatusOr<EncodedObjects> EncodeStrings(const Tensor& tensor) {
  EncodedObjects result;
  size_t total = 0;
  for (const std::string& text : tensor.span<std::string>()) {
    AppendVarint(text.size(), &result.bytes);
    result.crc = ExtendByLength(result.crc, text.size());
    total += text.size();
  }
  std::string checksum;
  AppendFixed32(MaskCrc32c(result.crc), &checksum);
  result.bytes.reserve(result.bytes.size() + checksum.size() + total);
  result.bytes += checksum;
  result.crc = Crc32cExtend(result.crc, checksum);
  for (const std::string& text : tensor.span<std::string>()) {
    result.bytes += text;
    result.crc = Crc32cExtend(result.crc, text);
  }
  return result;
}

StatusOr<Tensor> DecodeStrings(const Shape& shape, absl::string_view bytes, uint32_t* crc) {
  // Each string takes a byte at least: checked before memory is taken for that many.
  if (static_cast<uint64_t>(shape.num_elements()) > bytes.size()) {
    return DataLoss("too few bytes for its strings");
  }
  std::vector<uint64_t> lengths(static_cast<size_t>(shape.num_elements()));
  *crc = 0;
  for (uint64_t& length : lengths) {
    if (!TakeVarint64(&bytes, &length)) return DataLoss("the lengths of its strings are damaged");
    *crc = ExtendByLength(*crc, length);
  }
  uint32_t checksum = 0;
  const absl::string_view stored = bytes.substr(0, 4);
  if (!TakeFixed32(&bytes, &checksum) || UnmaskCrc32c(checksum) != *crc) {
    return DataLoss("bad checksum of the lengths of its strings");
  }
  *crc = Crc32cExtend(*crc, stored);
  WEFT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(DType::kString, shape));
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] > bytes.size()) return DataLoss("its strings are cut short");
    const absl::string_view text = bytes.substr(0, lengths[i]);
    bytes.remove_prefix(lengths[i]);
    *crc = Crc32cExtend(*crc, text);
    tensor.data<std::string>()[i] = std::string(text);
  }
  if (!bytes.empty()) return DataLoss("it has more bytes than its strings");
  return tensor;
}

// For each element its length, its message, and the checksum of everything up to there.
StatusOr<EncodedObjects> EncodeVariants(const Tensor& tensor) {
  tensorflow::TensorProto proto;
  WEFT_RETURN_IF_ERROR(TensorToProto(tensor, &proto));
  EncodedObjects result;
  for (const auto& variant : proto.variant_val()) {
    const std::string element = variant.SerializeAsString();
    std::string length, checksum;
    AppendFixed64(element.size(), &length);
    result.crc = Crc32cExtend(Crc32cExtend(result.crc, length), element);
    AppendFixed32(MaskCrc32c(result.crc), &checksum);
    result.crc = Crc32cExtend(result.crc, checksum);
    AppendVarint(element.size(), &result.bytes);
    result.bytes += element;
    result.bytes += checksum;
  }
  return result;
}

StatusOr<Tensor> DecodeVariants(const Shape& shape, absl::string_view bytes, uint32_t* crc) {
  if (static_cast<uint64_t>(shape.num_elements()) > bytes.size()) {
    return DataLoss("too few bytes for its variants");
  }
  tensorflow::TensorProto proto;
  proto.set_dtype(tensorflow::DT_VARIANT);
  ShapeToProto(shape, proto.mutable_tensor_shape());
  *crc = 0;
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    uint64_t length = 0;
    if (!TakeVarint64(&bytes, &length) || bytes.size() < 4 || length > bytes.size() - 4) {
      return DataLoss("its variants are cut short");
    }
    std::string fixed;
    AppendFixed64(length, &fixed);
    const absl::string_view element = bytes.substr(0, length);
    bytes.remove_prefix(length);
    *crc = Crc32cExtend(Crc32cExtend(*crc, fixed), element);
    const absl::string_view stored = bytes.substr(0, 4);
    bytes.remove_prefix(4);
    if (UnmaskCrc32c(LoadFixed32(stored.data())) != *crc) {
      return DataLoss("bad checksum of its variant ", i);
    }
    *crc = Crc32cExtend(*crc, stored);
    if (length > INT32_MAX || !proto.add_variant_val()->ParseFromArray(
                                  element.data(), static_cast<int>(element.size()))) {
      return DataLoss("its variant ", i, " is malformed");
    }
  }
  if (!bytes.empty()) return DataLoss("it has more bytes than its variants");
  return TensorFromProto(proto);
}

}  // namespace weft::storage
