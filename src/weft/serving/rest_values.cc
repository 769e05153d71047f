// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/rest_values.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

namespace weft::serving {
namespace {

// What ParseRestBody puts in place of NaN and its like, which JSON has not: a client that sends the
// same as a text says the same.
constexpr char kNan[] = "\x01NaN", kInfinity[] = "\x01Infinity", kMinusInfinity[] = "\x01-Infinity";

const char* KindName(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::kNull:
      return "Null";
    case Json::Kind::kBool:
      return value.AsBool().value_or(false) ? "True" : "False";
    case Json::Kind::kInt:
    case Json::Kind::kDouble:
      return "Number";
    case Json::Kind::kString:
      return "String";
    case Json::Kind::kArray:
      return "Array";
    case Json::Kind::kObject:
      return "Object";
  }
  return "";
}

// For messages: cut short.
std::string Shown(const Json& value) {
  constexpr size_t kMost = 256;
  if (value.size() > 32) return value.Describe();
  std::string text = value.Dump();
  if (text.size() > kMost) text.resize(kMost);
  return text;
}

Status TypeError(const Json& value, DType dtype) {
  return InvalidArgument("JSON Value: ", Shown(value), " Type: ", KindName(value),
                         " is not of expected type: ", DTypeName(dtype));
}

bool IsBase64(const Json& value) {
  const Json* const bytes = value.Find("b64");
  return bytes != nullptr && bytes->is_string() && value.size() == 1;
}

StatusOr<std::string> DecodeBase64(const Json& value) {
  if (!IsBase64(value))
    return InvalidArgument("JSON Value: ", Shown(value),
                           " not formatted correctly for base64 data");
  std::string bytes;
  if (!absl::Base64Unescape(value.Find("b64")->AsString().value_or(""), &bytes))
    return InvalidArgument("Unable to base64 decode");
  return bytes;
}

// One element of a tensor.
template <typename T>
bool Convert(const Json& value, T* element) {
  if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_bool()) return false;
    *element = value.AsBool().value_or(false);
    return true;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (value.is_string()) {
      const std::string text = value.AsString().value_or("");
      if (text == kNan) *element = std::numeric_limits<T>::quiet_NaN();
      if (text == kInfinity) *element = std::numeric_limits<T>::infinity();
      if (text == kMinusInfinity) *element = -std::numeric_limits<T>::infinity();
      return text == kNan || text == kInfinity || text == kMinusInfinity;
    }
    if (!value.is_number()) return false;
    *element = static_cast<T>(value.AsDouble().value_or(0));
    return true;
  } else {
    if (!value.is_int()) return false;
    const int64_t number = value.AsInt().value_or(0);
    if (!std::in_range<T>(number)) return false;
    *element = static_cast<T>(number);
    return true;
  }
}

// Elements of one tensor, row after row, of values that are nested alike. Memory grows with what
// came, whatever the outer lists' lengths promise.
template <typename T>
class Elements {
 public:
  explicit Elements(DType dtype) : dtype_(dtype) {}

  // `dims` is the shape that `value` must have from `level` on.
  Status Add(const Json& value, const std::vector<int64_t>& dims, size_t level) {
    if (!value.is_array()) {
      if (level != dims.size())
        return InvalidArgument("JSON Value: ", Shown(value),
                               " found at incorrect level: ", level + 1,
                               " in the JSON DOM. Expected at level: ", dims.size());
      return AddLeaf(value);
    }
    if (level >= dims.size())
      return InvalidArgument("Encountered list at unexpected level: ", level, " expected < ",
                             dims.size());
    if (static_cast<int64_t>(value.size()) != dims[level])
      return InvalidArgument("Encountered list at unexpected size: ", value.size(),
                             " at level: ", level, " expected size: ", dims[level]);
    for (const Json& item : value.items()) WEFT_RETURN_IF_ERROR(Add(item, dims, level + 1));
    return absl::OkStatus();
  }

  StatusOr<Tensor> ToTensor(const std::vector<int64_t>& dims) {
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    if (shape.num_elements() != static_cast<int64_t>(elements_.size()))
      return InvalidArgument("Expecting tensor size: ", shape.num_elements(),
                             " but got: ", elements_.size());
    WEFT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(dtype_, shape));
    std::move(elements_.begin(), elements_.end(), tensor.data<T>());
    return tensor;
  }

 private:
  Status AddLeaf(const Json& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      std::string text;
      if (value.is_object()) {
        WEFT_ASSIGN_OR_RETURN(text, DecodeBase64(value));
      } else if (value.is_string()) {
        text = value.AsString().value_or("");
      } else {
        return TypeError(value, dtype_);
      }
      elements_.push_back(std::move(text));
    } else {
      T element = T();
      if (!Convert(value, &element)) return TypeError(value, dtype_);
      elements_.push_back(element);
    }
    return absl::OkStatus();
  }

  const DType dtype_;
  std::vector<T> elements_;
};

using RestTypes = TypeList<float, double, int32_t, int64_t, uint8_t, int8_t, int16_t, uint16_t,
                           uint32_t, uint64_t, bool, std::string>;

// The shape that the first of all items promise.
std::vector<int64_t> ShapeOf(const Json& value) {
  std::vector<int64_t> dims;
  for (const Json* at = &value; at->is_array(); at = &at->items().front()) {
    dims.push_back(static_cast<int64_t>(at->size()));
    if (at->size() == 0) break;
  }
  return dims;
}

std::string ShapeText(const std::vector<int64_t>& dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

// One tensor of `rows`, each of them one row, or of the one value that is all of it.
StatusOr<Tensor> ToTensor(const std::vector<const Json*>& rows, bool is_row, DType dtype) {
  std::vector<int64_t> dims = ShapeOf(*rows[0]);
  Status status;
  StatusOr<Tensor> tensor =
      Unimplemented("Conversion of JSON Value: ", Shown(*rows[0]), " to type: ", DTypeName(dtype));
  VisitDType(dtype, RestTypes(), [&]<typename T>() {
    Elements<T> elements(dtype);
    for (const Json* row : rows) {
      const std::vector<int64_t> own = ShapeOf(*row);
      if (own != dims)
        status = InvalidArgument("Expecting shape ", ShapeText(dims), " but got: ", ShapeText(own));
      if (status.ok()) status = elements.Add(*row, dims, 0);
      if (!status.ok()) return;
    }
    if (is_row) dims.insert(dims.begin(), static_cast<int64_t>(rows.size()));
    tensor = elements.ToTensor(dims);
  });
  if (!status.ok()) return status;
  return tensor;
}

bool IsNamed(const Json& value) { return value.is_object() && !IsBase64(value); }

Status CheckKeys(const Json& item, size_t index, const train::Signature& signature) {
  bool fits = item.size() == signature.inputs.size();
  for (const JsonMember& member : item.members()) {
    if (!signature.inputs.contains(member.name))
      return InvalidArgument("Failed to process element: ", index, " key: ", member.name,
                             " of 'instances' list. Error: INVALID_ARGUMENT: JSON object: does ",
                             "not have named input: ", member.name);
  }
  for (const auto& [name, unused] : signature.inputs) fits &= item.Find(name) != nullptr;
  if (fits) return absl::OkStatus();
  std::vector<std::string> names;
  for (const auto& [name, unused] : signature.inputs) names.push_back(name);
  return InvalidArgument("Failed to process element: ", index,
                         " of 'instances' list. JSON object: ", Shown(item),
                         " keys must be equal to: ", absl::StrJoin(names, ","));
}

Status ReadInstances(const Json& list, const train::Signature& signature, RestInputs* inputs) {
  if (!list.is_array()) return InvalidArgument("Expecting 'instances' to be an list/array");
  if (list.size() == 0) return InvalidArgument("No values in 'instances' array");
  const bool named = IsNamed(list.items()[0]);
  if (!named && signature.inputs.size() > 1) {
    return InvalidArgument(
        "instances is a plain list, but expecting list of objects as multiple input tensors "
        "required as per tensorinfo_map");
  }
  std::map<std::string, std::vector<const Json*>> rows;
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& item = list.items()[i];
    if (named != IsNamed(item))
      return InvalidArgument(named ? "Expecting object but got list at item "
                                   : "Expecting value/list but got object at item ",
                             i, " of input list");
    if (named) WEFT_RETURN_IF_ERROR(CheckKeys(item, i, signature));
    for (const auto& [name, unused] : signature.inputs)
      rows[name].push_back(named ? item.Find(name) : &item);
  }
  for (const auto& [name, info] : signature.inputs) {
    StatusOr<Tensor> tensor = ToTensor(rows[name], /*is_row=*/true, info.dtype);
    if (!tensor.ok())
      return Annotate(tensor.status(),
                      absl::StrCat("Failed to process 'instances' list, key: ", name));
    inputs->tensors[name] = *std::move(tensor);
  }
  return absl::OkStatus();
}

Status ReadColumns(const Json& value, const train::Signature& signature, RestInputs* inputs) {
  if (!IsNamed(value) && signature.inputs.size() > 1) {
    return InvalidArgument(
        "inputs is a plain value/list, but expecting an object as multiple input tensors required "
        "as per tensorinfo_map");
  }
  for (const auto& [name, info] : signature.inputs) {
    const Json* const given = IsNamed(value) ? value.Find(name) : &value;
    if (given == nullptr) {
      if (signature.defaults.contains(name)) continue;
      return InvalidArgument("Missing named input: ", name, " in 'inputs' object.");
    }
    WEFT_ASSIGN_OR_RETURN(inputs->tensors[name], ToTensor({given}, /*is_row=*/false, info.dtype));
  }
  return absl::OkStatus();
}

// Of one kind only, which the first value says.
Status AddToFeature(const Json& value, const std::string& name, tensorflow::Feature* feature) {
  const auto is_of = [&](tensorflow::Feature::KindCase kind) {
    return feature->kind_case() == tensorflow::Feature::KIND_NOT_SET ||
           feature->kind_case() == kind;
  };
  const Status mixed =
      InvalidArgument("Unexpected element type in feature: ", name, ", found ", Shown(value));
  if (value.is_bool() || value.is_int()) {
    if (!is_of(tensorflow::Feature::kInt64List)) return mixed;
    feature->mutable_int64_list()->add_value(value.is_bool() ? value.AsBool().value_or(false)
                                                             : value.AsInt().value_or(0));
    return absl::OkStatus();
  }
  float number = 0;
  if (Convert(value, &number)) {
    if (!is_of(tensorflow::Feature::kFloatList)) return mixed;
    feature->mutable_float_list()->add_value(number);
    return absl::OkStatus();
  }
  if (!value.is_string() && !IsBase64(value))
    return InvalidArgument("Feature: ", name,
                           " has element with unexpected JSON type: ", KindName(value));
  if (!is_of(tensorflow::Feature::kBytesList)) return mixed;
  std::string bytes = value.AsString().value_or("");
  if (!value.is_string()) {
    WEFT_ASSIGN_OR_RETURN(bytes, DecodeBase64(value));
  }
  feature->mutable_bytes_list()->add_value(std::move(bytes));
  return absl::OkStatus();
}

Status ReadExample(const Json& value, tensorflow::Example* example) {
  if (!value.is_object())
    return InvalidArgument("Example must be JSON object but got JSON ", KindName(value));
  for (const JsonMember& member : value.members()) {
    tensorflow::Feature& feature = (*example->mutable_features()->mutable_feature())[member.name];
    if (!member.value.is_array()) {
      WEFT_RETURN_IF_ERROR(AddToFeature(member.value, member.name, &feature));
      continue;
    }
    for (const Json& item : member.value.items())
      WEFT_RETURN_IF_ERROR(AddToFeature(item, member.name, &feature));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Json> ParseRestBody(absl::string_view text) {
  // NaN and its like outside texts become texts that no client sends by chance.
  std::string standard;
  if (absl::StrContains(text, "NaN") || absl::StrContains(text, "Infinity")) {
    bool in_text = false;
    for (size_t i = 0; i < text.size(); ++i) {
      if (in_text && text[i] == '\\' && i + 1 < text.size()) {
        absl::StrAppend(&standard, text.substr(i++, 2));
        continue;
      }
      in_text ^= text[i] == '"';
      const absl::string_view rest = text.substr(i);
      bool replaced = false;
      for (const absl::string_view word : {"NaN", "Infinity", "-Infinity"}) {
        if (in_text || !absl::StartsWith(rest, word)) continue;
        absl::StrAppend(&standard, "\"\\u0001", word, "\"");
        i += word.size() - 1;
        replaced = true;
        break;
      }
      if (!replaced) standard += text[i];
    }
    text = standard;
  }
  if (text.empty()) return InvalidArgument("JSON Parse error: The document is empty");
  StatusOr<Json> body = Json::Parse(text, {.max_bytes = text.size(), .max_depth = kMostJsonDepth});
  if (!body.ok()) return Annotate(body.status(), "JSON Parse error");
  if (!body->is_object()) return InvalidArgument("JSON Value: ", Shown(*body), " Is not object");
  return body;
}

StatusOr<std::string> SignatureNameOf(const Json& body) {
  const Json* const name = body.Find("signature_name");
  if (name == nullptr) return std::string();
  if (name->is_string()) return name->AsString();
  return InvalidArgument("JSON Value: ", Shown(body),
                         " not formatted correctly. 'signature_name' key must be a string value.");
}

StatusOr<RestInputs> ReadRestInputs(const Json& body, const train::Signature& signature) {
  RestInputs inputs;
  const Json* const instances = body.Find("instances");
  const Json* const columns = body.Find("inputs");
  if (instances != nullptr && columns != nullptr)
    return InvalidArgument("JSON Value: ", Shown(body),
                           " Not formatted correctly expecting only one of 'inputs' or "
                           "'instances' keys to exist ");
  if (instances == nullptr && columns == nullptr)
    return InvalidArgument("Missing 'inputs' or 'instances' key");
  if (signature.inputs.empty()) return InvalidArgument("The signature takes no inputs");
  inputs.by_row = instances != nullptr;
  WEFT_RETURN_IF_ERROR(inputs.by_row ? ReadInstances(*instances, signature, &inputs)
                                     : ReadColumns(*columns, signature, &inputs));
  return inputs;
}

Status ReadRestExamples(const Json& body, tensorflow::serving::Input* input) {
  const Json* const context = body.Find("context");
  if (context != nullptr)
    WEFT_RETURN_IF_ERROR(
        ReadExample(*context, input->mutable_example_list_with_context()->mutable_context()));
  const Json* const examples = body.Find("examples");
  if (examples == nullptr)
    return InvalidArgument("JSON Value: ", Shown(body), " When method is classify, key 'examples' ",
                           "is expected and was not found");
  if (!examples->is_array())
    return InvalidArgument("JSON Value: ", Shown(body),
                           " Expecting 'examples' value to be an list/array");
  if (examples->size() == 0)
    return InvalidArgument("JSON Value: ", Shown(body), " 'examples' value is an empty array");
  for (const Json& example : examples->items()) {
    WEFT_RETURN_IF_ERROR(ReadExample(
        example, context != nullptr ? input->mutable_example_list_with_context()->add_examples()
                                    : input->mutable_example_list()->add_examples()));
  }
  return absl::OkStatus();
}

}  // namespace weft::serving
