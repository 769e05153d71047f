// SPDX-License-Identifier: Apache-2.0
// The records of files of separated values, a tensor for each column.
#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"

#include "weft/data/csv_reader.h"
#include "weft/data/dataset_op.h"

namespace weft::data::csv {
namespace {

struct Plan {
  std::vector<std::string> names;
  storage::Compression compression = storage::Compression::kNone;
  bool has_header = false;
  CsvForm form;
  std::string missing;          // stands for no value, beside the empty field
  std::vector<int64_t> wanted;  // columns to read, in order; empty: all but the unwanted
  std::vector<int64_t> unwanted;
  Element fallbacks;  // by output; of no elements where a value must be there
};

bool ParseField(const std::string& text, int32_t* to) { return absl::SimpleAtoi(text, to); }
bool ParseField(const std::string& text, int64_t* to) { return absl::SimpleAtoi(text, to); }
bool ParseField(const std::string& text, float* to) { return absl::SimpleAtof(text, to); }
bool ParseField(const std::string& text, double* to) { return absl::SimpleAtod(text, to); }
bool ParseField(const std::string& text, std::string* to) {
  *to = text;
  return true;
}

class Csv final : public Dataset {
 public:
  Csv(ElementSpec spec, Plan plan) : Dataset(std::move(spec)), plan_(std::move(plan)) {}
  StatusOr<IteratorPtr> MakeIterator(const ContextPtr& context) const override {
    return std::make_unique<Iterator>(Ref<const Csv>(this), context);
  }

 private:
  class Iterator final : public DatasetIterator {
   public:
    Iterator(Ref<const Csv> dataset, ContextPtr context)
        : dataset_(std::move(dataset)), context_(std::move(context)) {}
    StatusOr<bool> Next(Element* element) override {
      std::vector<std::string> fields;
      while (true) {
        WEFT_RETURN_IF_ERROR(context_->Check());
        if (reader_ == nullptr) {
          if (file_ == dataset_->plan_.names.size()) return false;
          WEFT_RETURN_IF_ERROR(Open(dataset_->plan_.names[file_++]));
        }
        WEFT_ASSIGN_OR_RETURN(const bool found, reader_->Next(&fields));
        if (found) break;
        reader_.reset();
      }
      WEFT_ASSIGN_OR_RETURN(*element, dataset_->ElementOf(fields));
      return true;
    }

   private:
    Status Open(const std::string& path) {
      const Plan& plan = dataset_->plan_;
      WEFT_ASSIGN_OR_RETURN(FileSystem* const files, context_->files());
      WEFT_ASSIGN_OR_RETURN(auto file, files->OpenRead(path));
      auto reader = std::make_unique<CsvReader>(
          plan.form, storage::MakeSource(std::move(file), path, plan.compression));
      if (plan.has_header) {
        std::vector<std::string> header;
        const StatusOr<bool> found = reader->Next(&header);
        if (!found.ok() || !*found) return InvalidArgument("Can't read header of file");
      }
      reader_ = std::move(reader);
      return absl::OkStatus();
    }

    const Ref<const Csv> dataset_;
    const ContextPtr context_;
    size_t file_ = 0;
    std::unique_ptr<CsvReader> reader_;
  };

  StatusOr<Element> ElementOf(const std::vector<std::string>& fields) const {
    const size_t width = spec().types.size();
    Element element;
    size_t next_wanted = 0, next_unwanted = 0;
    for (size_t column = 0; column < fields.size(); ++column) {
      const auto is_next = [column](const std::vector<int64_t>& columns, size_t* next) {
        if (*next == columns.size() || columns[*next] != static_cast<int64_t>(column)) return false;
        return ++*next, true;
      };
      if (!plan_.wanted.empty() && !is_next(plan_.wanted, &next_wanted)) continue;
      if (is_next(plan_.unwanted, &next_unwanted)) continue;
      if (element.size() == width) {
        return InvalidArgument("Expect ", width, " fields but have more in record");
      }
      WEFT_ASSIGN_OR_RETURN(Tensor value, ValueOf(element.size(), fields[column]));
      element.push_back(std::move(value));
    }
    if (element.size() == width) return element;
    return InvalidArgument("Expect ", width, " fields but have ", element.size(), " in record");
  }

  StatusOr<Tensor> ValueOf(size_t output, const std::string& text) const {
    const DType dtype = spec().types[output];
    WEFT_ASSIGN_OR_RETURN(Tensor value, Tensor::Allocate(dtype, Shape()));
    Status status;
    VisitDType(dtype, TypeList<float, double, int32_t, int64_t, std::string>(), [&]<typename T>() {
      if (text.empty() || text == plan_.missing) {
        const Tensor& fallback = plan_.fallbacks[output];
        if (fallback.num_elements() == 1) {
          *value.data<T>() = *fallback.data<T>();
        } else {
          status = InvalidArgument("Field ", output, " is required but missing in record!");
        }
      } else if (!ParseField(text, value.data<T>())) {
        status = InvalidArgument("Field ", output, " in record is not a valid ", DTypeName(dtype),
                                 ": ", text);
      }
    });
    WEFT_RETURN_IF_ERROR(status);
    return value;
  }

  const Plan plan_;
};

Status CheckColumns(const std::vector<int64_t>& columns, absl::string_view what) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] < 0 || (i > 0 && columns[i] <= columns[i - 1])) {
      return InvalidArgument(what, " should be strictly increasing indices of columns");
    }
  }
  return absl::OkStatus();
}

StatusOr<Plan> PlanOf(KernelContext& c) {
  Plan plan;
  WEFT_ASSIGN_OR_RETURN(plan.names, VectorInput<std::string>(c, "filenames"));
  WEFT_ASSIGN_OR_RETURN(const std::string kind, ScalarInput<std::string>(c, "compression_type"));
  const StatusOr<storage::Compression> compression = storage::CompressionFromName(kind);
  if (!compression.ok()) return InvalidArgument("Unsupported compression_type: ", kind, ".");
  plan.compression = *compression;
  WEFT_ASSIGN_OR_RETURN(const int64_t buffer, ScalarInput<int64_t>(c, "buffer_size"));
  if (buffer <= 0) return InvalidArgument("buffer_size should be positive");
  WEFT_ASSIGN_OR_RETURN(plan.has_header, ScalarInput<bool>(c, "header"));
  WEFT_ASSIGN_OR_RETURN(const std::string delimiter, ScalarInput<std::string>(c, "field_delim"));
  if (delimiter.size() != 1) return InvalidArgument("field_delim should be only 1 char");
  plan.form.delimiter = delimiter[0];
  WEFT_ASSIGN_OR_RETURN(plan.form.quotes, ScalarInput<bool>(c, "use_quote_delim"));
  WEFT_ASSIGN_OR_RETURN(plan.missing, ScalarInput<std::string>(c, "na_value"));
  WEFT_ASSIGN_OR_RETURN(plan.wanted, VectorInput<int64_t>(c, "select_cols"));
  WEFT_RETURN_IF_ERROR(CheckColumns(plan.wanted, "select_cols"));
  if (InputsNamed(c, "exclude_cols").ok()) {
    WEFT_ASSIGN_OR_RETURN(plan.unwanted, VectorInput<int64_t>(c, "exclude_cols"));
    WEFT_RETURN_IF_ERROR(CheckColumns(plan.unwanted, "exclude_cols"));
    if (!plan.wanted.empty() && !plan.unwanted.empty()) {
      return InvalidArgument("Either select_cols or exclude_cols should be empty");
    }
  }
  WEFT_ASSIGN_OR_RETURN(plan.fallbacks, ListInput(c, "record_defaults"));
  return plan;
}

StatusOr<DatasetRef> Make(KernelContext& c) {
  WEFT_ASSIGN_OR_RETURN(Plan plan, PlanOf(c));
  WEFT_ASSIGN_OR_RETURN(ElementSpec spec, DeclaredSpec(c));
  for (size_t i = 0; i < plan.fallbacks.size(); ++i) {
    if (plan.fallbacks[i].rank() > 1) {
      return InvalidArgument("Each record default should be at most rank 1");
    }
    if (plan.fallbacks[i].num_elements() < 2) continue;
    return InvalidArgument("There should only be 1 default per field but field ", i, " has ",
                           plan.fallbacks[i].num_elements());
  }
  if (!plan.wanted.empty() && plan.wanted.size() != spec.types.size()) {
    return InvalidArgument("select_cols should match output size");
  }
  return DatasetRef(MakeRef<Csv>(std::move(spec), std::move(plan)));
}

DatasetOpSpec Spec(const char* name, const char* doc) {
  return {.name = name,
          .doc = doc,
          .inputs = {"filenames: string", "compression_type: string", "buffer_size: int64",
                     "header: bool", "field_delim: string", "use_quote_delim: bool",
                     "na_value: string", "select_cols: int64", "record_defaults: output_types"},
          .attrs = {"output_types: list({float, double, int32, int64, string}) >= 1",
                    "output_shapes: list(shape) >= 1"},
          .is_stateful = true,
          .make = Make};
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddDataset(catalogue,
             Spec("CSVDataset",
                  "A dataset of the records of files of separated values: a scalar for each "
                  "column.\nAn empty field, or na_value, takes its column's default; "
                  "InvalidArgument where that is empty, for another number of fields, and for a "
                  "field that is not of its column's type. The record behind such a one comes "
                  "next."));
  AddDataset(catalogue, Spec("ExperimentalCSVDataset", "CSVDataset under its first name."));
  DatasetOpSpec second =
      Spec("CSVDatasetV2",
           "A dataset of the records of files of separated values, as CSVDataset gives, which may "
           "also name the columns to leave out.");
  second.inputs.push_back("exclude_cols: int64");
  AddDataset(catalogue, std::move(second));
}

}  // namespace weft::data::csv
