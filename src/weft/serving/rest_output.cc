// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

#include "weft/serving/rest_values.h"

namespace weft::serving {
namespace {

// The shortest text that reads as the same number, never without a sign that it is no integer.
template <typename T>
void AppendDecimal(T value, std::string* out) {
  if (std::isnan(value)) {
    *out += "NaN";
    return;
  }
  if (std::isinf(value)) {
    *out += std::signbit(value) ? "-Infinity" : "Infinity";
    return;
  }
  char text[64];
  const std::to_chars_result end = std::to_chars(text, text + sizeof(text), value);
  const absl::string_view written(text, static_cast<size_t>(end.ptr - text));
  absl::StrAppend(out, written);
  if (written.find_first_of(".e") == absl::string_view::npos) *out += ".0";
}

void AppendText(absl::string_view text, std::string* out) { *out += Json(text).Dump(); }

void AppendBytes(absl::string_view bytes, std::string* out) {
  absl::StrAppend(out, "{\"b64\": \"", absl::Base64Escape(bytes), "\"}");
}

// Writes the elements of one tensor, with the lists of its dimensions.
class TensorText {
 public:
  // Strings of outputs named so are bytes.
  TensorText(const std::string& name, const Tensor& tensor)
      : is_bytes_(absl::EndsWith(name, "_bytes")), tensor_(tensor) {}

  // The part from dimension `dim` on that begins at element `begin`.
  void Append(int dim, int64_t begin, std::string* out) const {
    if (dim == tensor_.rank()) return AppendElement(begin, out);
    int64_t stride = 1;
    for (int i = dim + 1; i < tensor_.rank(); ++i) stride *= tensor_.dim(i);
    *out += '[';
    for (int64_t i = 0; i < tensor_.dim(dim); ++i) {
      if (i > 0) *out += ", ";
      Append(dim + 1, begin + i * stride, out);
    }
    *out += ']';
  }
  void AppendRow(int64_t row, std::string* out) const {
    Append(1, tensor_.dim(0) == 0 ? 0 : row * (tensor_.num_elements() / tensor_.dim(0)), out);
  }
  static bool Holds(DType dtype) {
    return dtype == DType::kString || dtype == DType::kBool || dtype == DType::kFloat ||
           dtype == DType::kDouble || IsInteger(dtype);
  }

 private:
  void AppendElement(int64_t i, std::string* out) const {
    if (tensor_.dtype() == DType::kString) {
      const std::string& text = tensor_.data<std::string>()[i];
      return is_bytes_ ? AppendBytes(text, out) : AppendText(text, out);
    }
    if (tensor_.dtype() == DType::kBool) {
      *out += tensor_.data<bool>()[i] ? "true" : "false";
      return;
    }
    if (tensor_.dtype() == DType::kFloat) return AppendDecimal(tensor_.data<float>()[i], out);
    if (tensor_.dtype() == DType::kDouble) return AppendDecimal(tensor_.data<double>()[i], out);
    VisitDType(tensor_.dtype(), Integers(),
               [&]<typename T>() { absl::StrAppend(out, +tensor_.data<T>()[i]); });
  }

  const bool is_bytes_;
  const Tensor& tensor_;
};

Status CheckOutputs(const NamedTensors& outputs, bool by_row) {
  if (outputs.empty()) return InvalidArgument("Cannot convert empty tensor map to JSON");
  for (const auto& [name, tensor] : outputs) {
    if (!TensorText::Holds(tensor.dtype()))
      return InvalidArgument("Failed to write JSON value for tensor type: ",
                             DTypeName(tensor.dtype()));
    if (!by_row) continue;
    if (tensor.rank() == 0)
      return InvalidArgument("Tensor name: ", name, " has no shape information ");
    if (tensor.dim(0) != outputs[0].second.dim(0))
      return InvalidArgument("Tensor name: ", name, " has inconsistent batch size: ", tensor.dim(0),
                             " expecting: ", outputs[0].second.dim(0));
  }
  return absl::OkStatus();
}

// Each output, by its name if there are several.
template <typename Append>
void AppendNamed(const NamedTensors& outputs, std::string* out, Append append) {
  if (outputs.size() == 1) return append(outputs[0]);
  *out += '{';
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i > 0) *out += ", ";
    AppendText(outputs[i].first, out);
    *out += ": ";
    append(outputs[i]);
  }
  *out += '}';
}

}  // namespace

StatusOr<std::vector<std::string>> WriteRestRows(const NamedTensors& outputs) {
  WEFT_RETURN_IF_ERROR(CheckOutputs(outputs, /*by_row=*/true));
  std::vector<std::string> rows(static_cast<size_t>(outputs[0].second.dim(0)));
  for (size_t row = 0; row < rows.size(); ++row) {
    AppendNamed(outputs, &rows[row], [&](const auto& named) {
      TensorText(named.first, named.second).AppendRow(static_cast<int64_t>(row), &rows[row]);
    });
  }
  return rows;
}

StatusOr<std::string> WriteRestOutputs(const NamedTensors& outputs, bool by_row) {
  if (by_row) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> rows, WriteRestRows(outputs));
    return absl::StrCat("{\n    \"predictions\": [", absl::StrJoin(rows, ", "), "\n    ]\n}");
  }
  WEFT_RETURN_IF_ERROR(CheckOutputs(outputs, /*by_row=*/false));
  std::string out = "{\n    \"outputs\": ";
  AppendNamed(outputs, &out,
              [&](const auto& named) { TensorText(named.first, named.second).Append(0, 0, &out); });
  return out + "\n}";
}

std::string WriteRestClasses(const tensorflow::serving::ClassificationResult& result) {
  std::string out = "{\n    \"results\": [";
  for (int i = 0; i < result.classifications_size(); ++i) {
    out += i > 0 ? ", [" : "[";
    const auto& classes = result.classifications(i).classes();
    for (int c = 0; c < classes.size(); ++c) {
      out += c > 0 ? ", [" : "[";
      AppendText(classes[c].label(), &out);
      out += ", ";
      AppendDecimal(classes[c].score(), &out);
      out += ']';
    }
    out += ']';
  }
  return out + "\n    ]\n}";
}

std::string WriteRestValues(const tensorflow::serving::RegressionResult& result) {
  std::string out = "{\n    \"results\": [";
  for (int i = 0; i < result.regressions_size(); ++i) {
    if (i > 0) out += ", ";
    const tensorflow::serving::Regression& one = result.regressions(i);
    AppendDecimal(one.value(), &out);
  }
  return out + "]\n}";
}

std::string WriteRestError(const Status& status) {
  std::string out = "{\n    \"error\": ";
  AppendText(status.message(), &out);
  return out + "\n}";
}

}  // namespace weft::serving
