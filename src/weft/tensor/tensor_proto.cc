// SPDX-License-Identifier: Apache-2.0
#include "weft/tensor/tensor_proto.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/exceptions.h"
#include "proto/tensorflow/tensor.pb.h"
#include "weft/tensor/shape_proto.h"

namespace weft {
namespace {

using tensorflow::TensorProto;
using tensorflow::VariantTensorDataProto;

// Tensors inside variants inside tensors: deeper than any real value, shallow enough for the stack.
constexpr int kMaxDepth = 32;

// The values that int_val may hold for T.
template <typename T>
struct IntRange {
  using Storage = T;
  static constexpr int64_t kLow = std::numeric_limits<T>::min();
  static constexpr int64_t kHigh = std::numeric_limits<T>::max();
};
template <typename S, int Tag>
struct IntRange<Opaque<S, Tag>> : IntRange<S> {};
template <>
struct IntRange<Int4> {
  using Storage = int8_t;
  static constexpr int64_t kLow = -8, kHigh = 7;
};
template <>
struct IntRange<Uint4> {
  using Storage = uint8_t;
  static constexpr int64_t kLow = 0, kHigh = 15;
};
template <>
struct IntRange<Int2> {
  using Storage = int8_t;
  static constexpr int64_t kLow = -2, kHigh = 1;
};
template <>
struct IntRange<Uint2> {
  using Storage = uint8_t;
  static constexpr int64_t kLow = 0, kHigh = 3;
};

class Decoder {
 public:
  Decoder(int64_t broadcast_bytes, Allocator& allocator)
      : broadcast_bytes_left_(broadcast_bytes), allocator_(allocator) {}

  StatusOr<Tensor> Decode(const TensorProto& proto, int depth);

 private:
  StatusOr<Tensor> DecodePlainContent(const TensorProto& proto, DType dtype, const Shape& shape);
  StatusOr<Tensor> DecodeListContent(const TensorProto& proto, DType dtype, const Shape& shape,
                                     int depth);
  StatusOr<Tensor> DecodeValues(const TensorProto& proto, DType dtype, const Shape& shape,
                                int depth);
  // A tensor of `num_values` values; get(i, &element) stores the i-th and says whether it is good.
  template <typename T, typename Get>
  StatusOr<Tensor> FromValues(const Shape& shape, int64_t num_values, const char* field,
                              const Get& get);
  template <typename T, typename Field>
  StatusOr<Tensor> FromField(const Shape& shape, const Field& values, const char* field);
  template <typename T>
  StatusOr<Tensor> FromIntVal(const TensorProto& proto, const Shape& shape);
  template <typename T>
  StatusOr<Tensor> FromHalfVal(const TensorProto& proto, const Shape& shape);
  template <typename T>
  StatusOr<Tensor> FromFloat8Val(const TensorProto& proto, const Shape& shape);
  template <typename T, typename Field>
  StatusOr<Tensor> FromPairs(const Shape& shape, const Field& values, const char* field);
  StatusOr<Tensor> DecodeObjects(const TensorProto& proto, DType dtype, const Shape& shape,
                                 int depth);
  StatusOr<Variant> DecodeVariant(const VariantTensorDataProto& proto, int depth);

  int64_t broadcast_bytes_left_;
  Allocator& allocator_;
};

StatusOr<Tensor> Decoder::Decode(const TensorProto& proto, int depth) {
  if (depth > kMaxDepth) {
    return InvalidArgument("TensorProto nests tensors too deeply: more than ", kMaxDepth);
  }
  WEFT_ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(proto.dtype()));
  WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromProto(proto.tensor_shape()));
  const bool has_content = !proto.tensor_content().empty();
  StatusOr<Tensor> tensor = !has_content     ? DecodeValues(proto, dtype, shape, depth)
                            : IsPlain(dtype) ? DecodePlainContent(proto, dtype, shape)
                                             : DecodeListContent(proto, dtype, shape, depth);
  if (!tensor.ok()) {
    return Annotate(tensor.status(),
                    absl::StrCat("TensorProto of ", DTypeName(dtype), " ", shape.ToString()));
  }
  return tensor;
}

StatusOr<Tensor> Decoder::DecodePlainContent(const TensorProto& proto, DType dtype,
                                             const Shape& shape) {
  const std::string& content = proto.tensor_content();
  int64_t size = 0;
  const int64_t element_size = static_cast<int64_t>(DTypeSize(dtype));
  if (__builtin_mul_overflow(shape.num_elements(), element_size, &size) ||
      static_cast<uint64_t>(size) != content.size()) {
    return InvalidArgument("tensor_content has the wrong size: ", content.size(),
                           " bytes, expected ", shape.num_elements(), " elements of ",
                           element_size);
  }
  WEFT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(dtype, shape, allocator_));
  std::memcpy(tensor.bytes(), content.data(), content.size());
  if (dtype == DType::kBool) {
    // A bool that is neither 0 nor 1 is undefined behaviour for whoever reads it.
    auto* bytes = reinterpret_cast<uint8_t*>(tensor.bytes());
    for (size_t i = 0; i < content.size(); ++i) bytes[i] = bytes[i] != 0;
  }
  return tensor;
}

// One varint32, advancing `*input`; false if it is cut short or too long.
bool ReadVarint32(absl::string_view* input, uint32_t* value) {
  uint64_t result = 0;
  for (int i = 0; i < 5 && !input->empty(); ++i) {
    const auto byte = static_cast<uint8_t>(input->front());
    input->remove_prefix(1);
    result |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      *value = static_cast<uint32_t>(result);
      return result <= std::numeric_limits<uint32_t>::max();
    }
  }
  return false;
}

// Strings and messages in tensor_content: the sizes as varint32, then the bytes back to back.
StatusOr<Tensor> Decoder::DecodeListContent(const TensorProto& proto, DType dtype,
                                            const Shape& shape, int depth) {
  absl::string_view input = proto.tensor_content();
  const int64_t count = shape.num_elements();
  if (static_cast<uint64_t>(count) > input.size()) {
    return InvalidArgument("tensor_content is too short: ", input.size(), " bytes for ", count,
                           " elements");
  }
  std::vector<uint32_t> sizes(static_cast<size_t>(count));
  uint64_t total = 0;
  for (uint32_t& size : sizes) {
    if (!ReadVarint32(&input, &size)) {
      return InvalidArgument("tensor_content has a bad list of element sizes");
    }
    total += size;
  }
  if (total != input.size()) {
    return InvalidArgument("tensor_content has the wrong size: ", input.size(),
                           " bytes after the list of sizes, expected ", total);
  }
  WEFT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(dtype, shape, allocator_));
  for (size_t i = 0; i < sizes.size(); ++i) {
    const absl::string_view element = input.substr(0, sizes[i]);
    input.remove_prefix(sizes[i]);
    if (dtype == DType::kString) {
      tensor.data<std::string>()[i] = std::string(element);
      continue;
    }
    const int size = static_cast<int>(std::min<size_t>(element.size(), INT32_MAX));
    if (dtype == DType::kResource) {
      tensorflow::ResourceHandleProto handle;
      if (!handle.ParseFromArray(element.data(), size)) {
        return InvalidArgument("tensor_content holds a malformed resource handle at element ", i);
      }
      WEFT_ASSIGN_OR_RETURN(tensor.data<ResourceHandle>()[i], ResourceHandleFromProto(handle));
    } else {
      VariantTensorDataProto variant;
      if (!variant.ParseFromArray(element.data(), size)) {
        return InvalidArgument("tensor_content holds a malformed variant at element ", i);
      }
      WEFT_ASSIGN_OR_RETURN(tensor.data<Variant>()[i], DecodeVariant(variant, depth));
    }
  }
  return tensor;
}

template <typename T, typename Get>
StatusOr<Tensor> Decoder::FromValues(const Shape& shape, int64_t num_values, const char* field,
                                     const Get& get) {
  const int64_t count = shape.num_elements();
  if (count == 0) num_values = 0;  // clients write one value for none
  if (num_values > count) {
    return InvalidArgument(field, " has too many values: ", num_values, ", expected at most ",
                           count);
  }
  if (num_values < count) {
    int64_t size = 0;
    if (__builtin_mul_overflow(count, static_cast<int64_t>(sizeof(T)), &size) ||
        size > broadcast_bytes_left_) {
      return InvalidArgument(field, " has too few values: ", num_values, " to repeat over ", count,
                             " elements, more than the limit of ", broadcast_bytes_left_, " bytes");
    }
    broadcast_bytes_left_ -= size;
  }
  WEFT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(DTypeOf<T>, shape, allocator_));
  T* elements = tensor.data<T>();
  for (int64_t i = 0; i < num_values; ++i) {
    if (!get(static_cast<int>(i), &elements[i])) {
      return InvalidArgument(field, " holds a bad value at index ", i);
    }
  }
  if constexpr (std::is_trivially_copyable_v<T>) {
    const T last = num_values > 0 ? elements[num_values - 1] : T{};
    std::fill(elements + num_values, elements + count, last);
  } else if (num_values > 0) {
    std::fill(elements + num_values, elements + count, elements[num_values - 1]);
  }
  return tensor;
}

template <typename T, typename Field>
StatusOr<Tensor> Decoder::FromField(const Shape& shape, const Field& values, const char* field) {
  return FromValues<T>(shape, values.size(), field, [&](int i, T* element) {
    *element = values.Get(i);
    return true;
  });
}

template <typename T>
StatusOr<Tensor> Decoder::FromIntVal(const TensorProto& proto, const Shape& shape) {
  return FromValues<T>(shape, proto.int_val_size(), "int_val", [&](int i, T* element) {
    using Range = IntRange<T>;
    const int64_t value = proto.int_val(i);
    if (value < Range::kLow || value > Range::kHigh) return false;
    *element = T{static_cast<typename Range::Storage>(value)};
    return true;
  });
}

template <typename T>
StatusOr<Tensor> Decoder::FromHalfVal(const TensorProto& proto, const Shape& shape) {
  return FromValues<T>(shape, proto.half_val_size(), "half_val", [&](int i, T* element) {
    const int32_t bits = proto.half_val(i);
    *element = T::FromBits(static_cast<uint16_t>(bits));
    return bits >= 0 && bits <= 0xffff;
  });
}

template <typename T>
StatusOr<Tensor> Decoder::FromFloat8Val(const TensorProto& proto, const Shape& shape) {
  const std::string& bytes = proto.float8_val();
  return FromValues<T>(shape, static_cast<int64_t>(bytes.size()), "float8_val",
                       [&](int i, T* element) {
                         element->bits = static_cast<uint8_t>(bytes[i]);
                         return true;
                       });
}

template <typename T, typename Field>
StatusOr<Tensor> Decoder::FromPairs(const Shape& shape, const Field& values, const char* field) {
  if (values.size() % 2 != 0) {
    return InvalidArgument(field, " has half a complex number: ", values.size(), " values");
  }
  return FromValues<T>(shape, values.size() / 2, field, [&](int i, T* element) {
    *element = T(values.Get(2 * i), values.Get(2 * i + 1));
    return true;
  });
}

StatusOr<Tensor> Decoder::DecodeValues(const TensorProto& proto, DType dtype, const Shape& shape,
                                       int depth) {
  switch (dtype) {
    case DType::kFloat:
      return FromField<float>(shape, proto.float_val(), "float_val");
    case DType::kDouble:
      return FromField<double>(shape, proto.double_val(), "double_val");
    case DType::kInt64:
      return FromField<int64_t>(shape, proto.int64_val(), "int64_val");
    case DType::kBool:
      return FromField<bool>(shape, proto.bool_val(), "bool_val");
    case DType::kUint32:
      return FromField<uint32_t>(shape, proto.uint32_val(), "uint32_val");
    case DType::kUint64:
      return FromField<uint64_t>(shape, proto.uint64_val(), "uint64_val");
    case DType::kString:
      return FromField<std::string>(shape, proto.string_val(), "string_val");
    case DType::kComplex64:
      return FromPairs<Complex64>(shape, proto.scomplex_val(), "scomplex_val");
    case DType::kComplex128:
      return FromPairs<Complex128>(shape, proto.dcomplex_val(), "dcomplex_val");
    case DType::kHalf:
      return FromHalfVal<Half>(proto, shape);
    case DType::kBfloat16:
      return FromHalfVal<Bfloat16>(proto, shape);
    case DType::kFloat8E5m2:
      return FromFloat8Val<Float8E5m2>(proto, shape);
    case DType::kFloat8E4m3fn:
      return FromFloat8Val<Float8E4m3fn>(proto, shape);
    case DType::kFloat8E4m3fnuz:
      return FromFloat8Val<Float8E4m3fnuz>(proto, shape);
    case DType::kFloat8E4m3b11fnuz:
      return FromFloat8Val<Float8E4m3b11fnuz>(proto, shape);
    case DType::kFloat8E5m2fnuz:
      return FromFloat8Val<Float8E5m2fnuz>(proto, shape);
    case DType::kInt32:
      return FromIntVal<int32_t>(proto, shape);
    case DType::kInt16:
      return FromIntVal<int16_t>(proto, shape);
    case DType::kInt8:
      return FromIntVal<int8_t>(proto, shape);
    case DType::kUint16:
      return FromIntVal<uint16_t>(proto, shape);
    case DType::kUint8:
      return FromIntVal<uint8_t>(proto, shape);
    case DType::kQint8:
      return FromIntVal<Qint8>(proto, shape);
    case DType::kQuint8:
      return FromIntVal<Quint8>(proto, shape);
    case DType::kQint16:
      return FromIntVal<Qint16>(proto, shape);
    case DType::kQuint16:
      return FromIntVal<Quint16>(proto, shape);
    case DType::kQint32:
      return FromIntVal<Qint32>(proto, shape);
    case DType::kInt4:
      return FromIntVal<Int4>(proto, shape);
    case DType::kUint4:
      return FromIntVal<Uint4>(proto, shape);
    case DType::kInt2:
      return FromIntVal<Int2>(proto, shape);
    case DType::kUint2:
      return FromIntVal<Uint2>(proto, shape);
    case DType::kResource:
    case DType::kVariant:
      return DecodeObjects(proto, dtype, shape, depth);
    case DType::kInvalid:
      break;
  }
  return InvalidArgument("DataType has no values: ", static_cast<int>(dtype));
}

StatusOr<Tensor> Decoder::DecodeObjects(const TensorProto& proto, DType dtype, const Shape& shape,
                                        int depth) {
  Status status;  // why the last element was bad
  const auto keep = [&status](auto decoded, auto* element) {
    status = decoded.status();
    if (decoded.ok()) *element = *std::move(decoded);
    return status.ok();
  };
  const auto get_handle = [&](int i, ResourceHandle* element) {
    return keep(ResourceHandleFromProto(proto.resource_handle_val(i)), element);
  };
  const auto get_variant = [&](int i, Variant* element) {
    return keep(DecodeVariant(proto.variant_val(i), depth), element);
  };
  StatusOr<Tensor> tensor =
      dtype == DType::kResource
          ? FromValues<ResourceHandle>(shape, proto.resource_handle_val_size(),
                                       "resource_handle_val", get_handle)
          : FromValues<Variant>(shape, proto.variant_val_size(), "variant_val", get_variant);
  return status.ok() ? std::move(tensor) : status;
}

StatusOr<Variant> Decoder::DecodeVariant(const VariantTensorDataProto& proto, int depth) {
  if (proto.type_name().empty() && proto.metadata().empty() && proto.tensors().empty()) {
    return Variant();
  }
  std::vector<Tensor> tensors;
  for (const TensorProto& tensor_proto : proto.tensors()) {
    // TensorFlow marks an absent element of a list by a tensor of no dtype.
    if (tensor_proto.dtype() == tensorflow::DT_INVALID) {
      tensors.emplace_back();
      continue;
    }
    WEFT_ASSIGN_OR_RETURN(Tensor tensor, Decode(tensor_proto, depth + 1));
    tensors.push_back(std::move(tensor));
  }
  return Variant{MakeRef<EncodedVariant>(proto.type_name(), proto.metadata(), std::move(tensors))};
}

Status EncodeVariant(const Variant& variant, VariantTensorDataProto* proto, int depth);

Status Encode(const Tensor& tensor, TensorProto* proto, int depth) {
  proto->Clear();
  if (!tensor.IsInitialized()) return InvalidArgument("Tensor to serialize is not initialized");
  if (depth > kMaxDepth) {
    return InvalidArgument("Variant to serialize nests tensors too deeply: more than ", kMaxDepth);
  }
  proto->set_dtype(static_cast<tensorflow::DataType>(tensor.dtype()));
  ShapeToProto(tensor.shape(), proto->mutable_tensor_shape());
  switch (tensor.dtype()) {
    case DType::kString:
      proto->mutable_string_val()->Reserve(static_cast<int>(tensor.num_elements()));
      for (const std::string& text : tensor.span<std::string>()) proto->add_string_val(text);
      return absl::OkStatus();
    case DType::kResource:
      for (const ResourceHandle& handle : tensor.span<ResourceHandle>()) {
        ResourceHandleToProto(handle, proto->add_resource_handle_val());
      }
      return absl::OkStatus();
    case DType::kVariant:
      for (const Variant& variant : tensor.span<Variant>()) {
        WEFT_RETURN_IF_ERROR(EncodeVariant(variant, proto->add_variant_val(), depth));
      }
      return absl::OkStatus();
    default:
      if (tensor.size_bytes() > std::numeric_limits<int32_t>::max()) {
        return InvalidArgument("Tensor is over the 2 GB that a protobuf can carry: ",
                               DTypeName(tensor.dtype()), " ", tensor.shape().ToString());
      }
      if (tensor.size_bytes() > 0) {
        proto->set_tensor_content(tensor.bytes(), tensor.size_bytes());
      }
      return absl::OkStatus();
  }
}

Status EncodeVariant(const Variant& variant, VariantTensorDataProto* proto, int depth) {
  if (!variant.value) return absl::OkStatus();
  proto->set_type_name(std::string(variant.value->type_name()));
  WEFT_ASSIGN_OR_RETURN(*proto->mutable_metadata(), variant.value->Encode());
  for (const Tensor& tensor : variant.value->EncodeTensors()) {
    TensorProto* tensor_proto = proto->add_tensors();
    if (!tensor.IsInitialized()) continue;
    WEFT_RETURN_IF_ERROR(Encode(tensor, tensor_proto, depth + 1));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Tensor> TensorFromProto(const TensorProto& proto, const TensorProtoLimits& limits,
                                 Allocator& allocator) {
  try {
    return Decoder(limits.broadcast_bytes, allocator).Decode(proto, 0);
  } catch (...) {
    return StatusOfException();
  }
}

// Messages take their memory with new: a tensor of many short strings takes far more than its own.
Status TensorToProto(const Tensor& tensor, TensorProto* proto) {
  try {
    return Encode(tensor, proto, 0);
  } catch (...) {
    return StatusOfException();
  }
}

StatusOr<std::string> SerializeTensorProto(const Tensor& tensor) {
  tensorflow::TensorProto proto;
  WEFT_RETURN_IF_ERROR(TensorToProto(tensor, &proto));
  try {
    return proto.SerializeAsString();
  } catch (...) {
    return StatusOfException();
  }
}

StatusOr<Tensor> ParseTensorProto(absl::string_view bytes, const TensorProtoLimits& limits,
                                  Allocator& allocator) {
  tensorflow::TensorProto proto;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("Could not parse ", bytes.size(), " bytes as a TensorProto");
  }
  return TensorFromProto(proto, limits, allocator);
}

void ResourceHandleToProto(const ResourceHandle& handle, tensorflow::ResourceHandleProto* proto) {
  proto->Clear();
  proto->set_device(handle.device);
  proto->set_container(handle.container);
  proto->set_name(handle.name);
  proto->set_hash_code(handle.hash_code);
  proto->set_maybe_type_name(handle.type_name);
  for (const auto& [dtype, shape] : handle.dtypes_and_shapes) {
    auto* known = proto->add_dtypes_and_shapes();
    known->set_dtype(static_cast<tensorflow::DataType>(dtype));
    ShapeToProto(shape, known->mutable_shape());
  }
}

StatusOr<ResourceHandle> ResourceHandleFromProto(const tensorflow::ResourceHandleProto& proto) {
  ResourceHandle handle;
  handle.device = proto.device();
  handle.container = proto.container();
  handle.name = proto.name();
  handle.hash_code = proto.hash_code();
  handle.type_name = proto.maybe_type_name();
  for (const auto& known : proto.dtypes_and_shapes()) {
    WEFT_ASSIGN_OR_RETURN(const DType dtype, DTypeFromNumber(known.dtype()));
    WEFT_ASSIGN_OR_RETURN(PartialShape shape, PartialShapeFromProto(known.shape()));
    handle.dtypes_and_shapes.emplace_back(dtype, std::move(shape));
  }
  return handle;
}

}  // namespace weft
