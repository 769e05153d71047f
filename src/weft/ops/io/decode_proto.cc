// SPDX-License-Identifier: Apache-2.0
// Fields of serialized messages as tensors.
#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "weft/kernel/op_spec.h"
#include "weft/ops/io/message_type_kernel.h"

namespace weft::ops::io::decode_proto {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// The values of one field in all messages, in the order of the messages.
struct Column {
  Column(const FieldDescriptor* descriptor, DType type)
      : field(descriptor),
        dtype(type),
        wire(WireFormatLite::WireTypeForFieldType(
            static_cast<WireFormatLite::FieldType>(descriptor->type()))) {}

  void BeginMessage() { sizes.push_back(0); }
  // Of a field that may stand once, the last value counts.
  template <typename T>
  void Add(std::vector<T>* values, T value) {
    if (sizes.back() == 1 && !field->is_repeated()) {
      values->back() = std::move(value);
      return;
    }
    ++sizes.back();
    values->push_back(std::move(value));
  }

  const FieldDescriptor* field;
  DType dtype;
  WireFormatLite::WireType wire;
  std::vector<int32_t> sizes;      // by message
  std::vector<uint64_t> numbers;   // as they stand on the wire
  std::vector<std::string> texts;  // of strings, bytes and messages
};

bool ReadNumber(CodedInputStream* in, WireFormatLite::WireType wire, uint64_t* value) {
  if (wire == WireFormatLite::WIRETYPE_VARINT) return in->ReadVarint64(value);
  if (wire == WireFormatLite::WIRETYPE_FIXED64) return in->ReadLittleEndian64(value);
  uint32_t narrow = 0;
  if (!in->ReadLittleEndian32(&narrow)) return false;
  *value = narrow;
  return true;
}

bool ReadPacked(CodedInputStream* in, const std::string& bytes, Column* column) {
  uint32_t length = 0;
  if (column->wire == WireFormatLite::WIRETYPE_START_GROUP || !in->ReadVarint32(&length) ||
      length > bytes.size() - static_cast<size_t>(in->CurrentPosition())) {
    return false;
  }
  const CodedInputStream::Limit limit = in->PushLimit(static_cast<int>(length));
  while (in->BytesUntilLimit() > 0) {
    uint64_t value = 0;
    if (!ReadNumber(in, column->wire, &value)) return false;
    column->Add(&column->numbers, value);
  }
  in->PopLimit(limit);
  return true;
}

// The bytes between the tags of a group.
bool ReadGroup(CodedInputStream* in, const std::string& bytes, uint32_t tag, Column* column) {
  const auto begin = static_cast<size_t>(in->CurrentPosition());
  if (!WireFormatLite::SkipField(in, tag)) return false;
  const auto end = static_cast<size_t>(in->CurrentPosition());
  const size_t end_tag = google::protobuf::io::CodedOutputStream::VarintSize32(tag);
  if (end - begin < end_tag) return false;
  column->Add(&column->texts, bytes.substr(begin, end - begin - end_tag));
  return true;
}

bool ReadValue(CodedInputStream* in, const std::string& bytes, uint32_t tag, Column* column) {
  const WireFormatLite::WireType wire = WireFormatLite::GetTagWireType(tag);
  if (wire != column->wire) {
    if (wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) return ReadPacked(in, bytes, column);
    return WireFormatLite::SkipField(in, tag);
  }
  if (wire == WireFormatLite::WIRETYPE_START_GROUP) return ReadGroup(in, bytes, tag, column);
  if (wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
    std::string text;
    uint32_t length = 0;
    if (!in->ReadVarint32(&length) ||
        length > static_cast<uint32_t>(std::numeric_limits<int>::max()) ||
        !in->ReadString(&text, static_cast<int>(length))) {
      return false;
    }
    column->Add(&column->texts, std::move(text));
    return true;
  }
  uint64_t value = 0;
  if (!ReadNumber(in, wire, &value)) return false;
  column->Add(&column->numbers, value);
  return true;
}

// Adds the values of one message to the columns. Other fields are passed over.
Status ReadMessage(const std::string& bytes, std::vector<Column>* columns) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return InvalidArgument("A message of ", bytes.size(), " bytes is too long");
  }
  for (Column& column : *columns) column.BeginMessage();
  CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  while (const uint32_t tag = in.ReadTag()) {
    if (WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_END_GROUP) break;
    const int number = WireFormatLite::GetTagFieldNumber(tag);
    const auto found = std::find_if(columns->begin(), columns->end(), [&](const Column& column) {
      return column.field->number() == number;
    });
    if (found == columns->end()) {
      if (!WireFormatLite::SkipField(&in, tag)) {
        return DataLoss("Failed skipping unrequested field");
      }
    } else if (!ReadValue(&in, bytes, tag, &*found)) {
      return DataLoss("Failed reading field ", found->field->full_name());
    }
  }
  if (!in.ConsumedEntireMessage()) return DataLoss("Failed to consume entire buffer");
  return absl::OkStatus();
}

// The value of a field as it stands on the wire, as a number.
template <typename T>
T FromWire(FieldDescriptor::Type type, uint64_t bits) {
  switch (type) {
    case FieldDescriptor::TYPE_DOUBLE:
      return static_cast<T>(std::bit_cast<double>(bits));
    case FieldDescriptor::TYPE_FLOAT:
      return static_cast<T>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case FieldDescriptor::TYPE_SINT32:
      return static_cast<T>(WireFormatLite::ZigZagDecode32(static_cast<uint32_t>(bits)));
    case FieldDescriptor::TYPE_SINT64:
      return static_cast<T>(WireFormatLite::ZigZagDecode64(bits));
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_SFIXED32:
    case FieldDescriptor::TYPE_ENUM:
      return static_cast<T>(static_cast<int32_t>(bits));
    case FieldDescriptor::TYPE_UINT32:
    case FieldDescriptor::TYPE_FIXED32:
      return static_cast<T>(static_cast<uint32_t>(bits));
    default:
      return static_cast<T>(bits);
  }
}

template <typename T>
T DefaultOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return static_cast<T>(field.default_value_double());
    case FieldDescriptor::CPPTYPE_FLOAT:
      return static_cast<T>(field.default_value_float());
    case FieldDescriptor::CPPTYPE_INT32:
      return static_cast<T>(field.default_value_int32());
    case FieldDescriptor::CPPTYPE_INT64:
      return static_cast<T>(field.default_value_int64());
    case FieldDescriptor::CPPTYPE_UINT32:
      return static_cast<T>(field.default_value_uint32());
    case FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<T>(field.default_value_uint64());
    case FieldDescriptor::CPPTYPE_BOOL:
      return static_cast<T>(field.default_value_bool());
    case FieldDescriptor::CPPTYPE_ENUM:
      return static_cast<T>(field.default_value_enum()->number());
    default:
      return T();
  }
}

// Row i of `to` gets the values of message i, and defaults behind them.
template <typename T, typename Value, typename Convert>
void FillRows(const Column& column, const std::vector<Value>& values, const T& fallback,
              const Convert& convert, Tensor* to) {
  const int64_t width = to->shape().dim(to->rank() - 1);
  T* out = to->data<T>();
  size_t at = 0;
  for (const int32_t size : column.sizes) {
    T* const end = out + width;
    for (int32_t i = 0; i < size; ++i) *out++ = convert(values[at++]);
    std::fill(out, end, fallback);
    out = end;
  }
}

Status Give(KernelContext& c, const Column& column, int output) {
  int32_t width = 1;
  for (const int32_t size : column.sizes) width = std::max(width, size);
  Dims dims(c.input(0).shape().dims().begin(), c.input(0).shape().dims().end());
  dims.push_back(width);
  WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(output, shape));
  if (column.dtype == DType::kString) {
    const bool has_default = column.field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    FillRows<std::string>(
        column, column.texts, has_default ? column.field->default_value_string() : "",
        [](const std::string& text) { return text; }, out);
    return absl::OkStatus();
  }
  using Numbers = TypeList<float, double, int32_t, int64_t, uint32_t, uint64_t, bool>;
  VisitDType(column.dtype, Numbers(), [&]<typename T>() {
    const FieldDescriptor::Type type = column.field->type();
    FillRows<T>(
        column, column.numbers, DefaultOf<T>(*column.field),
        [type](uint64_t bits) { return FromWire<T>(type, bits); }, out);
  });
  return absl::OkStatus();
}

class DecodeKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    auto kernel = std::make_unique<DecodeKernel>(c);
    WEFT_ASSIGN_OR_RETURN(kernel->types_, c.Attr<AttrValue::TypeList>("output_types"));
    WEFT_ASSIGN_OR_RETURN(kernel->names_, c.Attr<std::vector<std::string>>("field_names"));
    if (kernel->names_.size() != kernel->types_.size()) {
      return InvalidArgument("field_names and output_types attributes must have the same length");
    }
    const std::string format = c.AttrOr<std::string>("message_format", "binary");
    if (format != "binary" && format != "text") {
      return InvalidArgument("format must be one of binary or text");
    }
    kernel->is_text_ = format == "text";
    kernel->sanitizes_ = c.AttrOr<bool>("sanitize", false);
    return kernel;
  }
  explicit DecodeKernel(const KernelConstruction& c)
      : type_(c.AttrOr<std::string>("descriptor_source", "local://"),
              c.AttrOr<std::string>("message_type", "")) {}

  Status Compute(KernelContext& c) override {
    const Tensor& messages = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const MessageType* type, type_.Get(c));
    if (messages.num_elements() < 1) {
      return InvalidArgument("Bufs argument must contain at least one value");
    }
    WEFT_ASSIGN_OR_RETURN(std::vector<Column> columns, ColumnsOf(*type));
    for (int64_t i = 0; i < messages.num_elements(); ++i) {
      const std::string& bytes = messages.data<std::string>()[i];
      if (is_text_ || sanitizes_) {
        WEFT_ASSIGN_OR_RETURN(const std::string safe, type->Reserialize(bytes, is_text_));
        WEFT_RETURN_IF_ERROR(ReadMessage(safe, &columns));
      } else {
        WEFT_RETURN_IF_ERROR(ReadMessage(bytes, &columns));
      }
    }
    WEFT_RETURN_IF_ERROR(GiveSizes(c, columns));
    for (size_t i = 0; i < columns.size(); ++i) {
      WEFT_RETURN_IF_ERROR(Give(c, columns[i], static_cast<int>(i) + 1));
    }
    return absl::OkStatus();
  }

 private:
  StatusOr<std::vector<Column>> ColumnsOf(const MessageType& type) const {
    std::vector<Column> columns;
    for (size_t i = 0; i < names_.size(); ++i) {
      WEFT_ASSIGN_OR_RETURN(const FieldDescriptor* field, type.Field(names_[i]));
      const DType dtype = types_[i];
      if (!FieldHolds(field->type(), dtype)) {
        return InvalidArgument("Unexpected output type for ", field->full_name(), ": ",
                               field->type_name(), " to ", DTypeName(dtype));
      }
      columns.emplace_back(field, dtype);
    }
    return columns;
  }

  static Status GiveSizes(KernelContext& c, const std::vector<Column>& columns) {
    Dims dims(c.input(0).shape().dims().begin(), c.input(0).shape().dims().end());
    dims.push_back(static_cast<int64_t>(columns.size()));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    int32_t* at = out->data<int32_t>();
    for (int64_t message = 0; message < c.input(0).num_elements(); ++message) {
      for (const Column& column : columns) *at++ = column.sizes[static_cast<size_t>(message)];
    }
    return absl::OkStatus();
  }

  NamedMessageType type_;
  std::vector<std::string> names_;
  AttrValue::TypeList types_;
  bool is_text_ = false;
  bool sanitizes_ = false;
};

// The shape of the messages, and one dimension more.
Status DecodedShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const auto names, c.Attr<std::vector<std::string>>("field_names"));
  if (!c.input(0).known_rank()) return absl::OkStatus();
  for (int i = 0; i < c.num_outputs(); ++i) {
    PartialShape shape = c.input(0);
    shape.AddDim(i == 0 ? static_cast<int64_t>(names.size()) : -1);
    c.set_output(i, std::move(shape));
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("DecodeProtoV2")
          .Doc("Fields of serialized protocol buffer messages.\n"
               "`sizes` has the shape of `bytes` and one column a field: how often it stands in "
               "the message. `values` have one row a message, as wide as its longest, at least 1, "
               "with the field's default behind the values. InvalidArgument for a descriptor, "
               "message type or field that is not there; DataLoss for bytes that are no message.")
          .Input("bytes: string")
          .Output("sizes: int32")
          .Output("values: output_types")
          .Attr("message_type: string")
          .Attr("field_names: list(string)")
          .Attr("output_types: list(type) >= 0")
          .Attr("descriptor_source: string = 'local://'")
          .Attr("message_format: string = 'binary'")
          .Attr("sanitize: bool = false")
          .Shape(DecodedShape)
          .NoGradient()
          .Kernel(MakeKernel<DecodeKernel>()));
}

}  // namespace weft::ops::io::decode_proto
