// SPDX-License-Identifier: Apache-2.0
#include "weft/wire/tensor_wire.h"

#include <limits>
#include <optional>

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include "proto/tensorflow/tensor.pb.h"
#include "weft/tensor/shape_proto.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::wire {
namespace {

using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using Wire = google::protobuf::internal::WireFormatLite;

constexpr size_t kCopied = 4096;  // below, a slice of its own costs more than the copy

// Types whose bytes in memory are their tensor_content.
bool HasFlatContent(DType dtype) {
  return IsPlain(dtype) && dtype != DType::kInt4 && dtype != DType::kUint4 &&
         dtype != DType::kInt2 && dtype != DType::kUint2;
}

void PutVarint(uint64_t value, std::string* out) {
  uint8_t bytes[10];
  const uint8_t* end = CodedOutputStream::WriteVarint64ToArray(value, bytes);
  out->append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(end - bytes));
}
void PutTag(int field, Wire::WireType type, std::string* out) {
  PutVarint(Wire::MakeTag(field, type), out);
}
void PutDelimited(int field, uint64_t size, std::string* out) {
  PutTag(field, Wire::WIRETYPE_LENGTH_DELIMITED, out);
  PutVarint(size, out);
}

// A TensorProto up to where its content's bytes follow.
std::string TensorHead(const Tensor& tensor) {
  std::string head;
  PutTag(tensorflow::TensorProto::kDtypeFieldNumber, Wire::WIRETYPE_VARINT, &head);
  PutVarint(static_cast<uint64_t>(tensor.dtype()), &head);
  tensorflow::TensorShapeProto shape;
  ShapeToProto(tensor.shape(), &shape);
  const std::string shape_bytes = shape.SerializeAsString();
  PutDelimited(tensorflow::TensorProto::kTensorShapeFieldNumber, shape_bytes.size(), &head);
  head += shape_bytes;
  if (tensor.size_bytes() > 0) {
    PutDelimited(tensorflow::TensorProto::kTensorContentFieldNumber, tensor.size_bytes(), &head);
  }
  return head;
}

// `before`: what stands in front of the tensor's field inside its message.
Status Append(int field, const Tensor& tensor, std::string before, int outer_field,
              Payload* payload) {
  std::string body;
  size_t shared = 0;
  if (tensor.IsInitialized() && HasFlatContent(tensor.dtype())) {
    body = TensorHead(tensor);
    if (tensor.size_bytes() <= kCopied) {
      body.append(reinterpret_cast<const char*>(tensor.bytes()), tensor.size_bytes());
    } else {
      shared = tensor.size_bytes();
    }
  } else {
    tensorflow::TensorProto proto;
    WEFT_RETURN_IF_ERROR(TensorToProto(tensor, &proto));
    if (!proto.SerializeToString(&body)) return Internal("A tensor could not be serialised");
  }
  const size_t size = body.size() + shared;
  if (size > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("A tensor is over 2 GB, which a message cannot carry: ",
                           DTypeName(tensor.dtype()), " ", tensor.shape().ToString());
  }
  PutDelimited(field, size, &before);
  std::string head;
  if (outer_field > 0) PutDelimited(outer_field, before.size() + size, &head);
  head += before;
  head += body;
  payload->Append(std::move(head));
  if (shared > 0) payload->AppendShared(tensor.bytes(), shared, tensor.buffer());
  return absl::OkStatus();
}

}  // namespace

Status AppendTensor(int field, const Tensor& tensor, Payload* payload) {
  return Append(field, tensor, std::string(), 0, payload);
}

Status AppendNamedTensor(int field, absl::string_view name, const Tensor& tensor,
                         Payload* payload) {
  std::string before;
  PutDelimited(tensorflow::NamedTensorProto::kNameFieldNumber, name.size(), &before);
  before.append(name.data(), name.size());
  const Status status = Append(tensorflow::NamedTensorProto::kTensorFieldNumber, tensor,
                               std::move(before), field, payload);
  return Annotate(status, absl::StrCat("Tensor ", name));
}

void AppendBytes(int field, absl::string_view bytes, Payload* payload) {
  std::string head;
  PutDelimited(field, bytes.size(), &head);
  head.append(bytes.data(), bytes.size());
  payload->Append(std::move(head));
}

void AppendVarint(int field, uint64_t value, Payload* payload) {
  std::string head;
  PutTag(field, Wire::WIRETYPE_VARINT, &head);
  PutVarint(value, &head);
  payload->Append(std::move(head));
}

namespace {

Status Truncated() { return InvalidArgument("A tensor's message is cut short or malformed"); }

// Reads a TensorProto field by field; at the first thing that the short way does not know, hands
// what is left to protobuf.
class TensorReader {
 public:
  TensorReader(CodedInputStream* in, int size) : in_(in), left_end_(in->CurrentPosition() + size) {}

  StatusOr<Tensor> Read() {
    while (in_->CurrentPosition() < left_end_) {
      const uint32_t tag = in_->ReadTag();
      switch (tag) {
        case 0:
          return Truncated();
        case kDtypeTag: {
          uint32_t number = 0;
          if (!in_->ReadVarint32(&number)) return Truncated();
          proto_.set_dtype(static_cast<tensorflow::DataType>(number));
          break;
        }
        case kShapeTag: {
          WEFT_RETURN_IF_ERROR(ReadShape());
          break;
        }
        case kContentTag: {
          if (!flat_dtype() || !shape_) return ReadRest(tag);
          WEFT_RETURN_IF_ERROR(ReadContent());
          break;
        }
        default:
          return ReadRest(tag);
      }
    }
    if (tensor_) return *std::move(tensor_);
    return TensorFromProto(proto_);
  }

 private:
  static constexpr uint32_t kDtypeTag = (1 << 3) | 0;
  static constexpr uint32_t kShapeTag = (2 << 3) | 2;
  static constexpr uint32_t kContentTag = (4 << 3) | 2;

  std::optional<DType> flat_dtype() const {
    StatusOr<DType> dtype = DTypeFromNumber(proto_.dtype());
    if (!dtype.ok() || !HasFlatContent(*dtype)) return std::nullopt;
    return *dtype;
  }

  Status ReadShape() {
    uint32_t size = 0;
    if (!in_->ReadVarint32(&size)) return Truncated();
    std::string bytes;
    if (!in_->ReadString(&bytes, static_cast<int>(size)) ||
        !proto_.mutable_tensor_shape()->MergeFromString(bytes)) {
      return Truncated();
    }
    WEFT_ASSIGN_OR_RETURN(shape_, ShapeFromProto(proto_.tensor_shape()));
    return absl::OkStatus();
  }

  Status ReadContent() {
    uint32_t size = 0;
    if (!in_->ReadVarint32(&size) ||
        in_->CurrentPosition() + static_cast<int64_t>(size) > left_end_) {
      return Truncated();
    }
    const DType dtype = *flat_dtype();
    WEFT_ASSIGN_OR_RETURN(
        const int64_t expected,
        MultiplySizes(shape_->num_elements(), static_cast<int64_t>(DTypeSize(dtype))));
    if (expected != static_cast<int64_t>(size)) {
      return InvalidArgument("A tensor's content has the wrong size: ", size, " bytes for ",
                             DTypeName(dtype), " ", shape_->ToString(), ", which has ", expected);
    }
    WEFT_ASSIGN_OR_RETURN(tensor_, Tensor::Allocate(dtype, *shape_));
    if (size > 0 && !in_->ReadRaw(tensor_->bytes(), static_cast<int>(size))) return Truncated();
    if (dtype == DType::kBool) {
      for (size_t i = 0; i < size; ++i) {
        auto& byte = reinterpret_cast<uint8_t&>(tensor_->bytes()[i]);
        byte = byte != 0;
      }
    }
    return absl::OkStatus();
  }

  StatusOr<Tensor> ReadRest(uint32_t tag) {
    std::string bytes;
    PutVarint(tag, &bytes);
    std::string rest;
    if (!in_->ReadString(&rest, left_end_ - in_->CurrentPosition())) return Truncated();
    bytes += rest;
    if (tensor_) proto_.set_tensor_content(tensor_->bytes(), tensor_->size_bytes());
    if (!proto_.MergeFromString(bytes)) return Truncated();
    return TensorFromProto(proto_);
  }

  CodedInputStream* const in_;
  const int left_end_;
  tensorflow::TensorProto proto_;
  std::optional<Shape> shape_;
  std::optional<Tensor> tensor_;
};

}  // namespace

StatusOr<Tensor> ReadTensor(CodedInputStream* in, int size) {
  const CodedInputStream::Limit limit = in->PushLimit(size);
  StatusOr<Tensor> tensor = TensorReader(in, size).Read();
  in->PopLimit(limit);
  return tensor;
}

StatusOr<NamedTensor> ReadNamedTensor(CodedInputStream* in, int size) {
  NamedTensor named;
  bool has_tensor = false;
  const CodedInputStream::Limit limit = in->PushLimit(size);
  while (const uint32_t tag = in->ReadTag()) {
    uint32_t length = 0;
    const int field = Wire::GetTagFieldNumber(tag);
    const bool known = Wire::GetTagWireType(tag) == Wire::WIRETYPE_LENGTH_DELIMITED &&
                       (field == tensorflow::NamedTensorProto::kNameFieldNumber ||
                        field == tensorflow::NamedTensorProto::kTensorFieldNumber);
    if (!known) {
      if (!Wire::SkipField(in, tag)) return Truncated();
      continue;
    }
    if (!in->ReadVarint32(&length)) return Truncated();
    if (field == tensorflow::NamedTensorProto::kNameFieldNumber) {
      if (!in->ReadString(&named.name, static_cast<int>(length))) return Truncated();
      continue;
    }
    StatusOr<Tensor> tensor = ReadTensor(in, static_cast<int>(length));
    if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("Tensor '", named.name, "'"));
    named.tensor = *std::move(tensor);
    has_tensor = true;
  }
  if (!in->ConsumedEntireMessage()) return Truncated();
  in->PopLimit(limit);
  if (!has_tensor) return InvalidArgument("Tensor '", named.name, "' has no value");
  return named;
}

}  // namespace weft::wire
