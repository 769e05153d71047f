// SPDX-License-Identifier: Apache-2.0
// Tensors as fields of serialized messages.
#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include "weft/kernel/op_spec.h"
#include "weft/ops/io/message_type_kernel.h"

namespace weft::ops::io::encode_proto {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

// A number as it stands on the wire.
template <typename T>
uint64_t ToWire(FieldDescriptor::Type type, T value) {
  switch (type) {
    case FieldDescriptor::TYPE_DOUBLE:
      return std::bit_cast<uint64_t>(static_cast<double>(value));
    case FieldDescriptor::TYPE_FLOAT:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case FieldDescriptor::TYPE_SINT32:
      return WireFormatLite::ZigZagEncode32(static_cast<int32_t>(value));
    case FieldDescriptor::TYPE_SINT64:
      return WireFormatLite::ZigZagEncode64(static_cast<int64_t>(value));
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_ENUM:
      // Negative ones fill ten bytes, as if they were wider.
      return static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(value)));
    case FieldDescriptor::TYPE_UINT32:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
      return static_cast<uint32_t>(value);
    default:
      return static_cast<uint64_t>(value);
  }
}

void WriteNumber(WireFormatLite::WireType wire, uint64_t bits, CodedOutputStream* out) {
  if (wire == WireFormatLite::WIRETYPE_VARINT) {
    out->WriteVarint64(bits);
  } else if (wire == WireFormatLite::WIRETYPE_FIXED64) {
    out->WriteLittleEndian64(bits);
  } else {
    out->WriteLittleEndian32(static_cast<uint32_t>(bits));
  }
}

void WriteNumbers(const FieldDescriptor& field, const std::vector<uint64_t>& numbers,
                  CodedOutputStream* out) {
  const auto wire =
      WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field.type()));
  if (!field.options().packed()) {
    for (const uint64_t bits : numbers) {
      out->WriteTag(WireFormatLite::MakeTag(field.number(), wire));
      WriteNumber(wire, bits, out);
    }
    return;
  }
  size_t length = 0;
  for (const uint64_t bits : numbers) {
    length += wire == WireFormatLite::WIRETYPE_VARINT    ? CodedOutputStream::VarintSize64(bits)
              : wire == WireFormatLite::WIRETYPE_FIXED64 ? 8
                                                         : 4;
  }
  out->WriteTag(WireFormatLite::MakeTag(field.number(), WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
  out->WriteVarint64(length);
  for (const uint64_t bits : numbers) WriteNumber(wire, bits, out);
}

void WriteText(const FieldDescriptor& field, const std::string& text, CodedOutputStream* out) {
  const bool is_group = field.type() == FieldDescriptor::TYPE_GROUP;
  out->WriteTag(WireFormatLite::MakeTag(
      field.number(),
      is_group ? WireFormatLite::WIRETYPE_START_GROUP : WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
  if (!is_group) out->WriteVarint64(text.size());
  out->WriteString(text);
  if (is_group) {
    out->WriteTag(WireFormatLite::MakeTag(field.number(), WireFormatLite::WIRETYPE_END_GROUP));
  }
}

// The first `size` values of row `message`.
void WriteField(const FieldDescriptor& field, const Tensor& values, int64_t message, int32_t size,
                CodedOutputStream* out) {
  const int64_t begin = message * values.shape().dim(values.rank() - 1);
  if (values.dtype() == DType::kString) {
    for (int32_t i = 0; i < size; ++i) {
      WriteText(field, values.data<std::string>()[begin + i], out);
    }
    return;
  }
  using Numbers = TypeList<float, double, int32_t, int64_t, uint32_t, uint64_t, bool>;
  std::vector<uint64_t> numbers;
  VisitDType(values.dtype(), Numbers(), [&]<typename T>() {
    for (int32_t i = 0; i < size; ++i) {
      numbers.push_back(ToWire<T>(field.type(), values.data<T>()[begin + i]));
    }
  });
  WriteNumbers(field, numbers, out);
}

class EncodeKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    auto kernel = std::make_unique<EncodeKernel>(c);
    WEFT_ASSIGN_OR_RETURN(kernel->names_, c.Attr<std::vector<std::string>>("field_names"));
    if (static_cast<int>(kernel->names_.size()) != c.num_inputs() - 1) {
      return InvalidArgument("Length of inputs list must match field_names");
    }
    return kernel;
  }
  explicit EncodeKernel(const KernelConstruction& c)
      : type_(c.AttrOr<std::string>("descriptor_source", "local://"),
              c.AttrOr<std::string>("message_type", "")) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const MessageType* type, type_.Get(c));
    std::vector<const FieldDescriptor*> fields;
    for (const std::string& name : names_) {
      WEFT_ASSIGN_OR_RETURN(fields.emplace_back(), type->Field(name));
    }
    WEFT_ASSIGN_OR_RETURN(const Shape batch, Check(c, fields));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, batch));
    std::vector<size_t> order(fields.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return fields[a]->number() < fields[b]->number(); });
    for (int64_t message = 0; message < batch.num_elements(); ++message) {
      std::string bytes;
      {
        google::protobuf::io::StringOutputStream stream(&bytes);
        CodedOutputStream coded(&stream);
        for (const size_t i : order) {
          const int32_t size = SizeOf(c, message, i);
          if (size == 0) continue;
          WriteField(*fields[i], c.input(static_cast<int>(i) + 1), message, size, &coded);
        }
      }
      out->data<std::string>()[message] = std::move(bytes);
    }
    return absl::OkStatus();
  }

 private:
  int32_t SizeOf(const KernelContext& c, int64_t message, size_t field) const {
    return c.input(0).data<int32_t>()[message * static_cast<int64_t>(names_.size()) +
                                      static_cast<int64_t>(field)];
  }

  // The shape of the messages, once all values are known to be of it and to have what is asked.
  StatusOr<Shape> Check(const KernelContext& c,
                        const std::vector<const FieldDescriptor*>& fields) const {
    Shape batch;
    for (size_t i = 0; i < fields.size(); ++i) {
      const Tensor& values = c.input(static_cast<int>(i) + 1);
      if (!FieldHolds(fields[i]->type(), values.dtype())) {
        return InvalidArgument("Incompatible type for field ", names_[i],
                               ".  Saw dtype: ", DTypeName(values.dtype()),
                               " but field type is: ", fields[i]->type_name());
      }
      if (values.rank() < 2) {
        return InvalidArgument("Invalid shape for field ", names_[i], ".  Saw shape ",
                               values.shape().ToString(), " but it should be at least a matrix.");
      }
      Shape prefix = values.shape();
      prefix.RemoveDim(prefix.rank() - 1);
      if (i == 0) batch = prefix;
      if (!(prefix == batch)) return InvalidArgument("Values must match up to the last dimension");
    }
    Shape expected = batch;
    expected.AddDim(static_cast<int64_t>(fields.size()));
    if (!(c.input(0).shape() == expected)) {
      return InvalidArgument("sizes should be batch_size + [len(field_names)].  Saw: ",
                             c.input(0).shape().ToString(), " but expected: ", expected.ToString());
    }
    for (size_t i = 0; i < fields.size(); ++i) {
      const Tensor& values = c.input(static_cast<int>(i) + 1);
      const int64_t width = values.shape().dim(values.rank() - 1);
      for (int64_t message = 0; message < batch.num_elements(); ++message) {
        const int32_t size = SizeOf(c, message, i);
        if (size >= 0 && size <= width) continue;
        return InvalidArgument(
            "Size to write must ",
            size < 0 ? "not be negative; but saw: " : "not be larger than value tensor; but saw: ",
            size, " > ", width, " at message ", message, " field ", i);
      }
    }
    return batch;
  }

  NamedMessageType type_;
  std::vector<std::string> names_;
};

// What all values have before their last dimension.
Status EncodedShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape batch, c.WithRankAtLeast(0, 1));
  if (!batch.known_rank()) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(batch, PartialShape::Make(batch.dims().first(batch.dims().size() - 1)));
  c.set_output(0, std::move(batch));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("EncodeProto")
          .Doc("Serialized protocol buffer messages of the given fields.\n"
               "`sizes` (one column a field) says how many values of each row of `values` count; "
               "all values have the same shape but for their last dimension, which the output "
               "lacks. InvalidArgument for a descriptor, message type or field that is not there, "
               "and for sizes that rows do not have.")
          .Input("sizes: int32")
          .Input("values: Tinput_types")
          .Output("bytes: string")
          .Attr("field_names: list(string)")
          .Attr("message_type: string")
          .Attr("descriptor_source: string = 'local://'")
          .Attr("Tinput_types: list(type) >= 1")
          .Shape(EncodedShape)
          .NoGradient()
          .Kernel(MakeKernel<EncodeKernel>()));
}

}  // namespace weft::ops::io::encode_proto
