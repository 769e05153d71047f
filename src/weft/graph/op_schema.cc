// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/op_schema.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace weft {
namespace {

using D = DType;

const std::vector<DType>* NamedTypeSet(absl::string_view name) {
  static const auto* numbers = new std::vector<DType>{
      D::kFloat,  D::kDouble,     D::kInt32,  D::kUint8,  D::kInt16,    D::kInt8,   D::kComplex64,
      D::kInt64,  D::kQint8,      D::kQuint8, D::kQint32, D::kBfloat16, D::kQint16, D::kQuint16,
      D::kUint16, D::kComplex128, D::kHalf,   D::kUint32, D::kUint64};
  static const auto* reals = new std::vector<DType>{
      D::kFloat, D::kDouble,   D::kInt32,  D::kUint8, D::kInt16,  D::kInt8,
      D::kInt64, D::kBfloat16, D::kUint16, D::kHalf,  D::kUint32, D::kUint64};
  static const auto* quantized =
      new std::vector<DType>{D::kQint8, D::kQuint8, D::kQint32, D::kQint16, D::kQuint16};
  if (name == "numbertype") return numbers;
  if (name == "realnumbertype") return reals;
  if (name == "quantizedtype") return quantized;
  return nullptr;
}

std::string Unquote(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') &&
      text.back() == text.front()) {
    text = text.substr(1, text.size() - 2);
  }
  return std::string(text);
}

std::vector<std::string> SplitList(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (text.empty()) return {};
  return absl::StrSplit(text, ',');
}

StatusOr<Shape> ParseShapeLiteral(absl::string_view text) {
  absl::ConsumePrefix(&text, "{");
  absl::ConsumeSuffix(&text, "}");
  Dims dims;
  for (const std::string& piece : SplitList(text)) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(piece, &size)) return InvalidArgument("Bad shape literal: ", text);
    dims.push_back(size);
  }
  return Shape::Make(dims);
}

StatusOr<AttrValue> ParseScalar(absl::string_view kind, absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (kind == "string") return AttrValue(Unquote(text));
  if (kind == "int") {
    int64_t value = 0;
    if (absl::SimpleAtoi(text, &value)) return AttrValue(value);
  } else if (kind == "float") {
    float value = 0;
    if (absl::SimpleAtof(text, &value)) return AttrValue(value);
  } else if (kind == "bool") {
    if (text == "true" || text == "false") return AttrValue(text == "true");
  } else if (kind == "type") {
    WEFT_ASSIGN_OR_RETURN(DType dtype, DTypeFromName(text));
    return AttrValue(dtype);
  } else if (kind == "shape") {
    if (text == "unknown") return AttrValue(PartialShape());
    WEFT_ASSIGN_OR_RETURN(Shape shape, ParseShapeLiteral(text));
    return AttrValue(PartialShape(shape));
  } else if (kind == "func") {
    return AttrValue(FunctionRef{.name = Unquote(text)});
  }
  return InvalidArgument("Bad default '", text, "' for an attribute of kind ", kind);
}

// The default of an attribute of kind tensor, a vector of whole numbers: "color: tensor = uint8
// [255, 0]".
StatusOr<AttrValue> ParseTensorLiteral(absl::string_view text) {
  const size_t bracket = text.find('[');
  if (bracket == absl::string_view::npos || !absl::ConsumeSuffix(&text, "]")) {
    return InvalidArgument("Bad tensor default '", text, "', expected 'dtype [1, 2]'");
  }
  WEFT_ASSIGN_OR_RETURN(DType dtype,
                        DTypeFromName(absl::StripAsciiWhitespace(text.substr(0, bracket))));
  const std::vector<std::string> pieces = SplitList(text.substr(bracket + 1));
  WEFT_ASSIGN_OR_RETURN(Tensor tensor,
                        Tensor::Zeros(dtype, Shape{static_cast<int64_t>(pieces.size())}));
  for (size_t i = 0; i < pieces.size(); ++i) {
    int64_t value = 0;
    if (!absl::SimpleAtoi(pieces[i], &value))
      return InvalidArgument("Bad number '", pieces[i], "'");
    VisitDType(dtype, RealNumbers{},
               [&]<typename T>() { tensor.data<T>()[i] = static_cast<T>(value); });
  }
  return AttrValue(std::move(tensor));
}

StatusOr<AttrValue> ParseDefault(absl::string_view kind, absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  if (kind == "tensor") return ParseTensorLiteral(text);
  if (!absl::StartsWith(kind, "list(")) return ParseScalar(kind, text);
  if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]")) {
    return InvalidArgument("Bad list default '", text, "'");
  }
  const absl::string_view element = kind.substr(5, kind.size() - 6);
  const std::vector<std::string> pieces = SplitList(text);
  if (pieces.empty()) return AttrValue(AttrValue::EmptyList());
  AttrValue::StringList strings;
  AttrValue::IntList ints;
  AttrValue::FloatList floats;
  AttrValue::TypeList types;
  AttrValue::BoolList bools;
  for (const std::string& piece : pieces) {
    WEFT_ASSIGN_OR_RETURN(AttrValue value, ParseScalar(element, piece));
    if (const auto* s = value.As<std::string>()) strings.push_back(*s);
    if (const auto* i = value.As<int64_t>()) ints.push_back(*i);
    if (const auto* f = value.As<float>()) floats.push_back(*f);
    if (const auto* t = value.As<DType>()) types.push_back(*t);
    if (const auto* b = value.As<bool>()) bools.push_back(*b);
  }
  if (element == "string") return AttrValue(strings);
  if (element == "int") return AttrValue(ints);
  if (element == "float") return AttrValue(floats);
  if (element == "type") return AttrValue(types);
  if (element == "bool") return AttrValue(bools);
  return InvalidArgument("No default can be written for list(", element, ")");
}

// Splits "{a, b} = c" style right-hand sides at the '=' or '>=' that is outside braces and quotes.
struct Clauses {
  absl::string_view type;
  absl::string_view minimum;
  absl::string_view default_value;
};
Clauses SplitClauses(absl::string_view text) {
  Clauses clauses;
  int depth = 0;
  size_t end_of_type = text.size();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '(' || text[i] == '[') ++depth;
    if (text[i] == '}' || text[i] == ')' || text[i] == ']') --depth;
    if (depth != 0) continue;
    if (text[i] == '>' && i + 1 < text.size() && text[i + 1] == '=') {
      end_of_type = std::min(end_of_type, i);
      absl::string_view rest = text.substr(i + 2);
      const size_t equals = rest.find('=');
      clauses.minimum = absl::StripAsciiWhitespace(rest.substr(0, equals));
      if (equals != absl::string_view::npos) clauses.default_value = rest.substr(equals + 1);
      break;
    }
    if (text[i] == '=') {
      end_of_type = std::min(end_of_type, i);
      clauses.default_value = text.substr(i + 1);
      break;
    }
  }
  clauses.type = absl::StripAsciiWhitespace(text.substr(0, end_of_type));
  return clauses;
}

// Fills kind and allowed values from "{float, double}", "numbertype", "int", "list(...)".
Status ParseKind(absl::string_view type, AttrSchema* attr) {
  bool is_list = false;
  if (absl::ConsumePrefix(&type, "list(")) {
    is_list = true;
    if (!absl::ConsumeSuffix(&type, ")")) return InvalidArgument("Missing ')' in attribute kind");
    type = absl::StripAsciiWhitespace(type);
  }
  std::string element;
  if (const std::vector<DType>* set = NamedTypeSet(type)) {
    element = "type";
    attr->allowed_types = *set;
  } else if (absl::ConsumePrefix(&type, "{")) {
    absl::ConsumeSuffix(&type, "}");
    for (const std::string& piece : SplitList(type)) {
      const absl::string_view item = absl::StripAsciiWhitespace(piece);
      if (!item.empty() && (item.front() == '\'' || item.front() == '"')) {
        attr->allowed_strings.push_back(Unquote(item));
        continue;
      }
      if (const std::vector<DType>* named = NamedTypeSet(item)) {
        attr->allowed_types.insert(attr->allowed_types.end(), named->begin(), named->end());
        continue;
      }
      WEFT_ASSIGN_OR_RETURN(DType dtype, DTypeFromName(item));
      attr->allowed_types.push_back(dtype);
    }
    element = attr->allowed_strings.empty() ? "type" : "string";
  } else {
    element = std::string(type);
  }
  attr->kind = is_list ? absl::StrCat("list(", element, ")") : element;
  return absl::OkStatus();
}

}  // namespace

const AttrSchema* OpSchema::FindAttr(absl::string_view attr_name) const {
  for (const AttrSchema& attr : attrs) {
    if (attr.name == attr_name) return &attr;
  }
  return nullptr;
}

StatusOr<AttrSchema> ParseAttrSchema(absl::string_view text) {
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos)
    return InvalidArgument("Attribute needs 'name: kind': ", text);
  AttrSchema attr;
  attr.name = std::string(absl::StripAsciiWhitespace(text.substr(0, colon)));
  const Clauses clauses = SplitClauses(text.substr(colon + 1));
  WEFT_RETURN_IF_ERROR(ParseKind(clauses.type, &attr));
  if (!clauses.minimum.empty()) {
    int64_t minimum = 0;
    if (!absl::SimpleAtoi(clauses.minimum, &minimum)) {
      return InvalidArgument("Bad minimum in attribute: ", text);
    }
    attr.minimum = minimum;
  }
  if (!clauses.default_value.empty()) {
    WEFT_ASSIGN_OR_RETURN(attr.default_value, ParseDefault(attr.kind, clauses.default_value));
  }
  return attr;
}

StatusOr<ArgSchema> ParseArgSchema(absl::string_view text, const std::vector<AttrSchema>& attrs) {
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos)
    return InvalidArgument("Argument needs 'name: type': ", text);
  ArgSchema arg;
  arg.name = std::string(absl::StripAsciiWhitespace(text.substr(0, colon)));
  absl::string_view type = absl::StripAsciiWhitespace(text.substr(colon + 1));
  const size_t star = type.find('*');
  if (star != absl::string_view::npos) {
    arg.number_attr = std::string(absl::StripAsciiWhitespace(type.substr(0, star)));
    type = absl::StripAsciiWhitespace(type.substr(star + 1));
  }
  if (absl::ConsumePrefix(&type, "Ref(") && absl::ConsumeSuffix(&type, ")")) arg.is_ref = true;
  const auto attr =
      std::find_if(attrs.begin(), attrs.end(), [&](const AttrSchema& a) { return a.name == type; });
  if (attr == attrs.end()) {
    WEFT_ASSIGN_OR_RETURN(arg.dtype, DTypeFromName(type));
  } else if (attr->kind == "list(type)") {
    arg.type_list_attr = attr->name;
  } else {
    arg.type_attr = attr->name;
  }
  return arg;
}

StatusOr<std::vector<ArgType>> ResolveArgs(const std::vector<ArgSchema>& args,
                                           const AttrMap& attrs) {
  std::vector<ArgType> types;
  for (const ArgSchema& arg : args) {
    if (!arg.type_list_attr.empty()) {
      WEFT_ASSIGN_OR_RETURN(auto list, FindAttr<AttrValue::TypeList>(attrs, arg.type_list_attr));
      for (DType dtype : list) types.push_back({dtype, arg.is_ref, arg.on_host});
      continue;
    }
    DType dtype = arg.dtype;
    if (!arg.type_attr.empty()) {
      WEFT_ASSIGN_OR_RETURN(dtype, FindAttr<DType>(attrs, arg.type_attr));
    }
    int64_t count = 1;
    if (!arg.number_attr.empty()) {
      WEFT_ASSIGN_OR_RETURN(count, FindAttr<int64_t>(attrs, arg.number_attr));
      if (count < 0 || count > (1 << 20)) {
        return InvalidArgument("Attribute '", arg.number_attr, "' is out of range: ", count);
      }
    }
    types.insert(types.end(), static_cast<size_t>(count), ArgType{dtype, arg.is_ref, arg.on_host});
  }
  return types;
}

namespace {

Status CheckAllowedType(const AttrSchema& schema, DType dtype) {
  if (schema.allowed_types.empty() ||
      std::find(schema.allowed_types.begin(), schema.allowed_types.end(), dtype) !=
          schema.allowed_types.end()) {
    return absl::OkStatus();
  }
  return InvalidArgument("Value for attr '", schema.name, "' of ", DTypeName(dtype),
                         " is not in the list of allowed values: ",
                         absl::StrJoin(schema.allowed_types, ", ", [](std::string* out, DType d) {
                           absl::StrAppend(out, DTypeName(d));
                         }));
}

Status CheckAttr(const AttrSchema& schema, const AttrValue& value) {
  if (value.As<AttrPlaceholder>() != nullptr) return absl::OkStatus();
  if (!value.HasKind(schema.kind)) {
    return InvalidArgument("Attr '", schema.name, "' must be ", schema.kind, ", got ",
                           value.KindName(), " ", value.ToString());
  }
  if (const DType* dtype = value.As<DType>()) return CheckAllowedType(schema, *dtype);
  if (const auto* types = value.As<AttrValue::TypeList>(); types && schema.kind == "list(type)") {
    for (DType dtype : *types) WEFT_RETURN_IF_ERROR(CheckAllowedType(schema, dtype));
    if (schema.minimum && static_cast<int64_t>(types->size()) < *schema.minimum) {
      return InvalidArgument("Length of attr '", schema.name, "' is ", types->size(), ", at least ",
                             *schema.minimum, " is needed");
    }
  }
  if (const std::string* text = value.As<std::string>();
      text && !schema.allowed_strings.empty() &&
      std::find(schema.allowed_strings.begin(), schema.allowed_strings.end(), *text) ==
          schema.allowed_strings.end()) {
    return InvalidArgument(
        "Value for attr '", schema.name, "' of \"", *text,
        "\" is not in the list of allowed values: ", absl::StrJoin(schema.allowed_strings, ", "));
  }
  if (const int64_t* number = value.As<int64_t>();
      number && schema.minimum && *number < *schema.minimum) {
    return InvalidArgument("Value for attr '", schema.name, "' of ", *number,
                           " must be at least minimum ", *schema.minimum);
  }
  return absl::OkStatus();
}

}  // namespace

Status CompleteAttrs(const OpSchema& schema, AttrMap* attrs) {
  for (const AttrSchema& attr : schema.attrs) {
    auto found = attrs->find(attr.name);
    if (found == attrs->end()) {
      if (!attr.default_value) {
        return InvalidArgument("Missing attr '", attr.name, "' of kind ", attr.kind, " for op ",
                               schema.name);
      }
      attrs->emplace(attr.name, *attr.default_value);
      continue;
    }
    WEFT_RETURN_IF_ERROR(Annotate(CheckAttr(attr, found->second), schema.name));
  }
  return absl::OkStatus();
}

}  // namespace weft
