// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/attr_proto.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "weft/graph/graph_proto.h"
#include "weft/tensor/shape_proto.h"
#include "weft/tensor/tensor_proto.h"

namespace weft {
namespace {

// Reference types name their base type: whether an edge is a reference is said by the op.
std::optional<DType> TypeFromNumber(int number) {
  if (number == 0) return DType::kInvalid;
  StatusOr<DType> dtype = DTypeFromNumber(number > kRefOffset ? number - kRefOffset : number);
  if (!dtype.ok()) return std::nullopt;
  return *dtype;
}

AttrValue KeptAsBytes(const tensorflow::AttrValue& proto) {
  return OpaqueAttr{proto.SerializeAsString()};
}

template <typename Protos, typename Convert>
auto ConvertAll(const Protos& protos, Convert convert)
    -> StatusOr<std::vector<typename decltype(convert(*protos.begin()))::value_type>> {
  std::vector<typename decltype(convert(*protos.begin()))::value_type> out;
  out.reserve(static_cast<size_t>(protos.size()));
  for (const auto& proto : protos) {
    auto converted = convert(proto);
    if (!converted.ok()) return converted.status();
    out.push_back(*std::move(converted));
  }
  return out;
}

}  // namespace

StatusOr<Tensor> AttrReader::ReadTensor(const tensorflow::TensorProto& proto) {
  const TensorProtoLimits limits = {
      .broadcast_bytes = std::min(growth_left_, TensorProtoLimits().broadcast_bytes)};
  WEFT_ASSIGN_OR_RETURN(Tensor tensor, TensorFromProto(proto, limits));
  const auto carried = static_cast<int64_t>(proto.tensor_content().size());
  growth_left_ -= std::max<int64_t>(0, static_cast<int64_t>(tensor.size_bytes()) - carried);
  growth_left_ = std::max<int64_t>(0, growth_left_);
  return tensor;
}

StatusOr<FunctionRef> AttrReader::ReadFunction(const tensorflow::NameAttrList& proto) {
  FunctionRef function;
  function.name = proto.name();
  if (!proto.attr().empty()) {
    AttrMap attrs;
    WEFT_RETURN_IF_ERROR(ReadMap(proto.attr(), &attrs));
    function.attrs = std::make_shared<const AttrMap>(std::move(attrs));
  }
  return function;
}

StatusOr<AttrValue> AttrReader::ReadList(const tensorflow::AttrValue& proto) {
  const tensorflow::AttrValue::ListValue& list = proto.list();
  const int members = !list.s().empty() + !list.i().empty() + !list.f().empty() +
                      !list.b().empty() + !list.type().empty() + !list.shape().empty() +
                      !list.tensor().empty() + !list.func().empty();
  if (members > 1) return InvalidArgument("A list holds values of more than one kind");
  if (!list.s().empty()) return AttrValue(AttrValue::StringList(list.s().begin(), list.s().end()));
  if (!list.i().empty()) return AttrValue(AttrValue::IntList(list.i().begin(), list.i().end()));
  if (!list.f().empty()) return AttrValue(AttrValue::FloatList(list.f().begin(), list.f().end()));
  if (!list.b().empty()) return AttrValue(AttrValue::BoolList(list.b().begin(), list.b().end()));
  if (!list.type().empty()) {
    AttrValue::TypeList types;
    for (int number : list.type()) {
      const std::optional<DType> dtype = TypeFromNumber(number);
      if (!dtype) return KeptAsBytes(proto);
      types.push_back(*dtype);
    }
    return AttrValue(std::move(types));
  }
  if (!list.shape().empty()) {
    WEFT_ASSIGN_OR_RETURN(AttrValue::ShapeList shapes,
                          ConvertAll(list.shape(), PartialShapeFromProto));
    return AttrValue(std::move(shapes));
  }
  if (!list.tensor().empty()) {
    WEFT_ASSIGN_OR_RETURN(AttrValue::TensorList tensors,
                          ConvertAll(list.tensor(), [&](const auto& t) { return ReadTensor(t); }));
    return AttrValue(std::move(tensors));
  }
  if (!list.func().empty()) {
    WEFT_ASSIGN_OR_RETURN(AttrValue::FunctionList functions,
                          ConvertAll(list.func(), [&](const auto& f) { return ReadFunction(f); }));
    return AttrValue(std::move(functions));
  }
  return AttrValue(AttrValue::EmptyList());
}

StatusOr<AttrValue> AttrReader::Read(const tensorflow::AttrValue& proto) {
  switch (proto.value_case()) {
    case tensorflow::AttrValue::kList:
      return ReadList(proto);
    case tensorflow::AttrValue::kS:
      return AttrValue(proto.s());
    case tensorflow::AttrValue::kI:
      return AttrValue(int64_t{proto.i()});
    case tensorflow::AttrValue::kF:
      return AttrValue(proto.f());
    case tensorflow::AttrValue::kB:
      return AttrValue(proto.b());
    case tensorflow::AttrValue::kType: {
      const std::optional<DType> dtype = TypeFromNumber(proto.type());
      return dtype ? AttrValue(*dtype) : KeptAsBytes(proto);
    }
    case tensorflow::AttrValue::kShape: {
      WEFT_ASSIGN_OR_RETURN(PartialShape shape, PartialShapeFromProto(proto.shape()));
      return AttrValue(std::move(shape));
    }
    case tensorflow::AttrValue::kTensor: {
      WEFT_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(proto.tensor()));
      return AttrValue(std::move(tensor));
    }
    case tensorflow::AttrValue::kPlaceholder:
      return AttrValue(AttrPlaceholder{proto.placeholder()});
    case tensorflow::AttrValue::kFunc: {
      WEFT_ASSIGN_OR_RETURN(FunctionRef function, ReadFunction(proto.func()));
      return AttrValue(std::move(function));
    }
    case tensorflow::AttrValue::VALUE_NOT_SET:
      break;
  }
  return KeptAsBytes(proto);
}

Status AttrReader::ReadMap(const ProtoMap& protos, AttrMap* attrs) {
  for (const auto& [name, proto] : protos) {
    StatusOr<AttrValue> value = Read(proto);
    if (!value.ok()) return Annotate(value.status(), absl::StrCat("Attribute '", name, "'"));
    attrs->insert_or_assign(name, *std::move(value));
  }
  return absl::OkStatus();
}

StatusOr<AttrValue> AttrValueFromProto(const tensorflow::AttrValue& proto) {
  AttrReader reader;
  return reader.Read(proto);
}

namespace {

// One overload for each alternative of AttrValue::Value.
struct Writer {
  tensorflow::AttrValue* proto;

  tensorflow::AttrValue::ListValue* list() const { return proto->mutable_list(); }

  static Status Write(const FunctionRef& function, tensorflow::NameAttrList* out) {
    out->set_name(function.name);
    if (function.attrs == nullptr) return absl::OkStatus();
    for (const auto& [name, value] : *function.attrs) {
      WEFT_RETURN_IF_ERROR(AttrValueToProto(value, &(*out->mutable_attr())[name]));
    }
    return absl::OkStatus();
  }

  Status operator()(std::monostate) const { return absl::OkStatus(); }
  Status operator()(const std::string& text) const { return proto->set_s(text), absl::OkStatus(); }
  Status operator()(int64_t number) const { return proto->set_i(number), absl::OkStatus(); }
  Status operator()(float number) const { return proto->set_f(number), absl::OkStatus(); }
  Status operator()(bool flag) const { return proto->set_b(flag), absl::OkStatus(); }
  Status operator()(DType dtype) const {
    proto->set_type(static_cast<tensorflow::DataType>(dtype));
    return absl::OkStatus();
  }
  Status operator()(const PartialShape& shape) const {
    ShapeToProto(shape, proto->mutable_shape());
    return absl::OkStatus();
  }
  Status operator()(const Tensor& tensor) const {
    return TensorToProto(tensor, proto->mutable_tensor());
  }
  Status operator()(const FunctionRef& function) const {
    return Write(function, proto->mutable_func());
  }
  Status operator()(const AttrValue::StringList& values) const {
    for (const std::string& value : values) list()->add_s(value);
    return list(), absl::OkStatus();
  }
  Status operator()(const AttrValue::IntList& values) const {
    for (int64_t value : values) list()->add_i(value);
    return list(), absl::OkStatus();
  }
  Status operator()(const AttrValue::FloatList& values) const {
    for (float value : values) list()->add_f(value);
    return list(), absl::OkStatus();
  }
  Status operator()(const AttrValue::BoolList& values) const {
    for (bool value : values) list()->add_b(value);
    return list(), absl::OkStatus();
  }
  Status operator()(const AttrValue::TypeList& values) const {
    for (DType value : values) list()->add_type(static_cast<tensorflow::DataType>(value));
    return list(), absl::OkStatus();
  }
  Status operator()(const AttrValue::ShapeList& values) const {
    for (const PartialShape& value : values) ShapeToProto(value, list()->add_shape());
    return list(), absl::OkStatus();
  }
  Status operator()(const AttrValue::TensorList& values) const {
    for (const Tensor& value : values) {
      WEFT_RETURN_IF_ERROR(TensorToProto(value, list()->add_tensor()));
    }
    return list(), absl::OkStatus();
  }
  Status operator()(const AttrValue::FunctionList& values) const {
    for (const FunctionRef& value : values) WEFT_RETURN_IF_ERROR(Write(value, list()->add_func()));
    return list(), absl::OkStatus();
  }
  Status operator()(AttrValue::EmptyList) const { return list(), absl::OkStatus(); }
  Status operator()(const AttrPlaceholder& placeholder) const {
    return proto->set_placeholder(placeholder.name), absl::OkStatus();
  }
  Status operator()(const OpaqueAttr& opaque) const {
    if (proto->ParseFromString(opaque.serialized)) return absl::OkStatus();
    return Internal("An attribute kept as bytes does not parse any more");
  }
};

}  // namespace

Status AttrValueToProto(const AttrValue& value, tensorflow::AttrValue* proto) {
  proto->Clear();
  return value.Visit(Writer{proto});
}

}  // namespace weft
