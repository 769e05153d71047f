// SPDX-License-Identifier: Apache-2.0
#include "weft/wire/tensor_frame.h"

#include <cstring>
#include <limits>

#include "proto/tensorflow/tensor.pb.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::wire {
namespace {

constexpr uint8_t kDead = 1;
constexpr uint8_t kProto = 2;

// Little-endian on the wire, as every machine we run on.
struct FixedPart {
  uint8_t dtype;
  uint8_t flags;
  uint8_t rank;
  uint8_t zero[5];
  uint64_t frame;
  int64_t iteration;
};
static_assert(sizeof(FixedPart) == 24);

}  // namespace

std::string TensorMeta::Encode() const {
  FixedPart fixed{};
  fixed.dtype = static_cast<uint8_t>(dtype);
  fixed.flags = static_cast<uint8_t>((is_dead ? kDead : 0) | (is_proto ? kProto : 0));
  fixed.rank = static_cast<uint8_t>(shape.rank());
  fixed.frame = frame;
  fixed.iteration = iteration;
  std::string bytes(sizeof(fixed) + sizeof(int64_t) * static_cast<size_t>(shape.rank()), '\0');
  std::memcpy(bytes.data(), &fixed, sizeof(fixed));
  if (shape.rank() > 0) {
    std::memcpy(bytes.data() + sizeof(fixed), shape.dims().data(), bytes.size() - sizeof(fixed));
  }
  return bytes;
}

StatusOr<TensorMeta> TensorMeta::Parse(absl::string_view bytes, uint64_t body_bytes) {
  FixedPart fixed;
  if (bytes.size() < sizeof(fixed)) return InvalidArgument("Tensor frame: its meta is too short");
  std::memcpy(&fixed, bytes.data(), sizeof(fixed));
  if (bytes.size() != sizeof(fixed) + sizeof(int64_t) * fixed.rank ||
      fixed.flags > (kDead | kProto)) {
    return InvalidArgument("Tensor frame: its meta is malformed");
  }
  TensorMeta meta;
  meta.is_dead = (fixed.flags & kDead) != 0;
  meta.is_proto = (fixed.flags & kProto) != 0;
  meta.frame = fixed.frame;
  meta.iteration = fixed.iteration;
  if (meta.is_dead) return meta;
  WEFT_ASSIGN_OR_RETURN(meta.dtype, DTypeFromNumber(fixed.dtype));
  if (meta.is_proto) return meta;
  Dims dims(fixed.rank);
  if (fixed.rank > 0) {
    std::memcpy(dims.data(), bytes.data() + sizeof(fixed), sizeof(int64_t) * fixed.rank);
  }
  WEFT_ASSIGN_OR_RETURN(meta.shape, Shape::Make(dims));
  WEFT_ASSIGN_OR_RETURN(
      const int64_t expected,
      MultiplySizes(meta.shape.num_elements(), static_cast<int64_t>(DTypeSize(meta.dtype))));
  if (!IsPlain(meta.dtype) || static_cast<uint64_t>(expected) != body_bytes) {
    return InvalidArgument("Tensor frame: ", body_bytes, " bytes for ", DTypeName(meta.dtype), " ",
                           meta.shape.ToString());
  }
  return meta;
}

StatusOr<transport::Region> AllocateBody(uint64_t bytes) {
  Ref<Buffer> buffer = HostAllocator().Allocate(bytes);
  if (!buffer) return ResourceExhausted("Out of memory for a received tensor of bytes: ", bytes);
  std::byte* data = buffer->data();
  return transport::Region(data, bytes, std::move(buffer));
}

StatusOr<TensorFrame> MakeTensorFrame(int64_t step, const RendezvousKey& key, const Tensor& tensor,
                                      bool is_dead) {
  if (key.number < 0 || key.number > std::numeric_limits<uint32_t>::max()) {
    return Internal("Edge ", key.edge, " has no number that a frame can carry: ", key.number);
  }
  TensorMeta meta;
  meta.is_dead = is_dead;
  meta.frame = key.frame;
  meta.iteration = key.iteration;
  TensorFrame frame;
  frame.header.kind = transport::FrameKind::kTensor;
  frame.header.step = static_cast<uint64_t>(step);
  frame.header.key = static_cast<uint32_t>(key.number);
  if (!is_dead) {
    meta.dtype = tensor.dtype();
    meta.is_proto = !IsPlain(tensor.dtype());
    if (meta.is_proto) {
      tensorflow::TensorProto proto;
      WEFT_RETURN_IF_ERROR(TensorToProto(tensor, &proto));
      WEFT_ASSIGN_OR_RETURN(transport::Region body, AllocateBody(proto.ByteSizeLong()));
      if (!proto.SerializeToArray(body.data, static_cast<int>(body.size))) {
        return Internal("A tensor could not be serialised");
      }
      frame.body.push_back(std::move(body));
    } else {
      meta.shape = tensor.shape();
      if (tensor.size_bytes() > 0) {
        frame.body.push_back(
            transport::Region::Of({tensor.bytes(), tensor.size_bytes()}, tensor.buffer()));
      }
    }
  }
  frame.meta = meta.Encode();
  return frame;
}

StatusOr<Tensor> TensorFromBody(const TensorMeta& meta, const transport::Region& body) {
  if (meta.is_dead) return Tensor();
  if (meta.is_proto) {
    tensorflow::TensorProto proto;
    if (!proto.ParseFromArray(body.data, static_cast<int>(body.size))) {
      return InvalidArgument("Tensor frame: its body is no TensorProto");
    }
    return TensorFromProto(proto);
  }
  if (body.size == 0) return Tensor::Allocate(meta.dtype, meta.shape);
  // Counting owners of the buffer itself keeps a kernel from writing into a tensor that its
  // producer still holds.
  if (auto* buffer = dynamic_cast<Buffer*>(body.keep.get())) {
    return Tensor(meta.dtype, meta.shape, Ref<Buffer>(buffer),
                  static_cast<size_t>(body.data - buffer->data()));
  }
  if (body.read_only) {
    return Tensor(meta.dtype, meta.shape, WrapReadOnly(body.data, body.size, body.keep), 0);
  }
  WEFT_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(meta.dtype, meta.shape));
  std::memcpy(copy.bytes(), body.data, body.size);
  return copy;
}

}  // namespace weft::wire
