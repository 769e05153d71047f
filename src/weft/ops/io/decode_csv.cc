// SPDX-License-Identifier: Apache-2.0
// Lines of comma-separated values to one tensor for each column.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"

#include "weft/kernel/op_spec.h"

namespace weft::ops::io::decode_csv {
namespace {

struct Format {
  char delimiter = ',';
  bool quotes = true;
  std::string missing;         // stands for no value, beside the empty field
  AttrValue::IntList columns;  // the ones to read, in order; empty: all
};

// Splits one record into fields, one character after the other.
class FieldReader {
 public:
  FieldReader(absl::string_view record, const Format& format) : rest_(record), format_(format) {}

  // Appends the wanted fields.
  Status Read(std::vector<std::string>* fields) {
    const bool ends_open = !rest_.empty() && rest_.back() == format_.delimiter;
    while (!rest_.empty()) {
      if (rest_[0] == '\n' || rest_[0] == '\r') {
        rest_.remove_prefix(1);
        continue;
      }
      std::string field;
      const bool quoted = format_.quotes && rest_[0] == '"';
      WEFT_RETURN_IF_ERROR(quoted ? ReadQuoted(&field) : ReadPlain(&field));
      if (!Keep(std::move(field), fields)) return absl::OkStatus();
    }
    // A delimiter at the end is followed by an empty field.
    if (ends_open) Keep("", fields);
    return absl::OkStatus();
  }

 private:
  // False when all that are wanted are there.
  bool Keep(std::string field, std::vector<std::string>* fields) {
    const int64_t column = column_++;
    if (!format_.columns.empty() && format_.columns[next_] != column) return true;
    fields->push_back(std::move(field));
    return ++next_ != format_.columns.size() || format_.columns.empty();
  }

  Status ReadPlain(std::string* field) {
    const size_t end = std::min(rest_.find(format_.delimiter), rest_.size());
    const absl::string_view text = rest_.substr(0, end);
    if (text.find_first_of(format_.quotes ? "\"\n\r" : "\n\r") != absl::string_view::npos) {
      return InvalidArgument("Unquoted fields cannot have quotes/CRLFs inside: '", text, "'");
    }
    *field = std::string(text);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return absl::OkStatus();
  }

  // Two quotes in a row stand for one.
  Status ReadQuoted(std::string* field) {
    size_t at = 1;
    const auto closes = [&] {
      return rest_[at] == '"' && (at + 1 == rest_.size() || rest_[at + 1] == format_.delimiter);
    };
    while (at < rest_.size() && !closes()) {
      if (rest_[at] == '"') {
        if (rest_[at + 1] != '"') {
          return InvalidArgument("Quote inside a string has to be escaped by another quote: '",
                                 rest_, "'");
        }
        ++at;
      }
      field->push_back(rest_[at++]);
    }
    if (at >= rest_.size()) {
      return InvalidArgument("Quoted field has to end with quote followed by delim or end: '",
                             rest_, "'");
    }
    rest_.remove_prefix(std::min(at + 2, rest_.size()));
    return absl::OkStatus();
  }

  absl::string_view rest_;
  const Format& format_;
  int64_t column_ = 0;
  size_t next_ = 0;  // of format_.columns
};

bool ParseField(const std::string& text, int32_t* to) { return absl::SimpleAtoi(text, to); }
bool ParseField(const std::string& text, int64_t* to) { return absl::SimpleAtoi(text, to); }
bool ParseField(const std::string& text, float* to) { return absl::SimpleAtof(text, to); }
bool ParseField(const std::string& text, double* to) { return absl::SimpleAtod(text, to); }
bool ParseField(const std::string& text, std::string* to) {
  *to = text;
  return true;
}

class DecodeKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    Format format;
    const std::string delimiter = c.AttrOr<std::string>("field_delim", ",");
    if (delimiter.size() != 1) {
      return InvalidArgument("field_delim should be only 1 char, got '", delimiter, "'");
    }
    format.delimiter = delimiter[0];
    format.quotes = c.AttrOr("use_quote_delim", true);
    format.missing = c.AttrOr<std::string>("na_value", "");
    WEFT_ASSIGN_OR_RETURN(format.columns, c.Attr<AttrValue::IntList>("select_cols"));
    WEFT_ASSIGN_OR_RETURN(const AttrValue::TypeList types, c.Attr<AttrValue::TypeList>("OUT_TYPE"));
    if (!format.columns.empty() && format.columns.size() != types.size()) {
      return InvalidArgument("select_cols should match output size: ", format.columns.size(),
                             " columns, ", types.size(), " outputs");
    }
    for (size_t i = 0; i < format.columns.size(); ++i) {
      if (format.columns[i] >= 0 && (i == 0 || format.columns[i] > format.columns[i - 1])) continue;
      return InvalidArgument("select_cols should be strictly increasing indices >= 0");
    }
    return std::make_unique<DecodeKernel>(std::move(format));
  }
  explicit DecodeKernel(Format format) : format_(std::move(format)) {}

  Status Compute(KernelContext& c) override {
    for (int i = 0; i < c.num_outputs(); ++i) {
      const Tensor& fallback = c.input(1 + i);
      if (fallback.rank() <= 1 && fallback.num_elements() <= 1) continue;
      return InvalidArgument("There should be at most 1 default per field but field ", i, " has ",
                             fallback.num_elements());
    }
    const Tensor& records = c.input(0);
    std::vector<Tensor*> outputs;
    for (int i = 0; i < c.num_outputs(); ++i) {
      WEFT_ASSIGN_OR_RETURN(outputs.emplace_back(), c.AllocateOutput(i, records.shape()));
    }
    for (int64_t row = 0; row < records.num_elements(); ++row) {
      std::vector<std::string> fields;
      const absl::string_view record = records.data<std::string>()[row];
      WEFT_RETURN_IF_ERROR(
          Annotate(FieldReader(record, format_).Read(&fields), absl::StrCat("Record ", row)));
      if (static_cast<int>(fields.size()) != c.num_outputs()) {
        return InvalidArgument("Expect ", c.num_outputs(), " fields but have ", fields.size(),
                               " in record ", row, ": '", record.substr(0, 200), "'");
      }
      for (int i = 0; i < c.num_outputs(); ++i) {
        const auto field = static_cast<size_t>(i);
        WEFT_RETURN_IF_ERROR(Put(c.input(1 + i), i, row, fields[field], outputs[field]));
      }
    }
    return absl::OkStatus();
  }

 private:
  using Types = TypeList<float, double, int32_t, int64_t, std::string>;

  Status Put(const Tensor& fallback, int field, int64_t row, const std::string& text,
             Tensor* out) const {
    Status status;
    VisitDType(out->dtype(), Types(), [&]<typename T>() {
      T& to = out->data<T>()[row];
      if (text.empty() || text == format_.missing) {
        if (fallback.num_elements() == 1) {
          to = fallback.data<T>()[0];
        } else {
          status =
              InvalidArgument("Field ", field, " is required but missing in record ", row, "!");
        }
      } else if (!ParseField(text, &to)) {
        status = InvalidArgument("Field ", field, " in record ", row, " is not a valid ",
                                 DTypeName(out->dtype()), ": ", text);
      }
    });
    return status;
  }

  const Format format_;
};

Status DecodeShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(0));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("DecodeCSV")
          .Doc("Splits lines of separated values: one output for each column, of the records' "
               "shape.\nA field may stand in quotes, where two quotes mean one. An empty field, or "
               "na_value, takes its column's default; InvalidArgument where that is empty, for "
               "another number of fields, and for a field that is not of its column's type.")
          .Input("records: string")
          .Input("record_defaults: OUT_TYPE")
          .Output("output: OUT_TYPE")
          .Attr("OUT_TYPE: list({float, double, int32, int64, string}) >= 1")
          .Attr("field_delim: string = ','")
          .Attr("use_quote_delim: bool = true")
          .Attr("na_value: string = ''")
          .Attr("select_cols: list(int) = []")
          .Shape(DecodeShape)
          .NoGradient()
          .Kernel(MakeKernel<DecodeKernel>()));
}

}  // namespace weft::ops::io::decode_csv
