// SPDX-License-Identifier: Apache-2.0
// Lookup tables as ops, in the form with resource handles and in the older one.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "base/files.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/state/lookup_table_kernel.h"
#include "weft/ops/state/resource_handle_kernel.h"
#include "weft/ops/state/table_output_kernel.h"

namespace weft::ops::state::lookup_table {
namespace {

using Keys = TypeList<std::string, int32_t, int64_t>;

class CreateKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Make(KernelConstruction& c, bool is_fixed) {
    TableOptions options;
    WEFT_ASSIGN_OR_RETURN(options.key, c.Attr<DType>("key_dtype"));
    WEFT_ASSIGN_OR_RETURN(options.value, c.Attr<DType>("value_dtype"));
    options.is_fixed = is_fixed;
    WEFT_RETURN_IF_ERROR(options.Check());
    return std::make_unique<CreateKernel>(c, std::move(options));
  }
  CreateKernel(KernelConstruction& c, TableOptions options)
      : options_(std::move(options)), output_(c) {
    options_.name = output_.name();
  }

  Status Compute(KernelContext& c) override { return output_.Give(c, options_); }

 private:
  TableOptions options_;
  TableOutput output_;
};

class FindKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<LookupTable> table, ResourceOfInput<LookupTable>(c));
    if (table->options().value != c.output_dtype(0)) {
      return InvalidArgument("The table holds ", DTypeName(table->options().value), ", not ",
                             DTypeName(c.output_dtype(0)));
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, table->ShapeOfValues(c.input(1)));
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(0, shape));
    return table->Find(c.input(1), c.input(2), values);
  }
};

using Change = Status (LookupTable::*)(const Tensor& keys, const Tensor& values);

template <Change change>
class ChangeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<LookupTable> table, ResourceOfInput<LookupTable>(c));
    return (table.get()->*change)(c.input(1), c.input(2));
  }
};

class InitializeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<LookupTable> table, ResourceOfInput<LookupTable>(c));
    const Tensor &keys = c.input(1), &values = c.input(2);
    if (keys.rank() != 1) {
      return InvalidArgument("Keys must be a vector, but received shape", keys.shape().ToString());
    }
    if (values.rank() != 1 || values.dim(0) != keys.dim(0)) {
      return InvalidArgument("Values must be a vector of ", keys.dim(0), ", but received shape",
                             values.shape().ToString());
    }
    return table->Initialize(keys, values);
  }
};

class RemoveKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<LookupTable> table, ResourceOfInput<LookupTable>(c));
    return table->Remove(c.input(1));
  }
};

class ExportKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<LookupTable> table, ResourceOfInput<LookupTable>(c));
    const TableOptions& options = table->options();
    if (options.key != c.output_dtype(0) || options.value != c.output_dtype(1)) {
      return InvalidArgument("The table maps ", DTypeName(options.key), " to ",
                             DTypeName(options.value));
    }
    Tensor keys, values;
    WEFT_RETURN_IF_ERROR(table->Export(&keys, &values));
    c.SetOutput(0, std::move(keys));
    c.SetOutput(1, std::move(values));
    return absl::OkStatus();
  }
};

class SizeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<LookupTable> table, ResourceOfInput<LookupTable>(c));
    WEFT_ASSIGN_OR_RETURN(Tensor * size, c.AllocateOutput(0, Shape()));
    *size->data<int64_t>() = table->size();
    return absl::OkStatus();
  }
};

// One line an entry; keys and values are columns of it, the whole line, or its number.
class InitializeFromFileKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t key, c.Attr<int64_t>("key_index"));
    WEFT_ASSIGN_OR_RETURN(const int64_t value, c.Attr<int64_t>("value_index"));
    const std::string delimiter = c.AttrOr<std::string>("delimiter", "\t");
    if (delimiter.size() != 1) {
      return InvalidArgument("delimiter should be only 1 char, got '", delimiter, "'");
    }
    return std::make_unique<InitializeFromFileKernel>(
        key, value, delimiter, c.AttrOr<int64_t>("vocab_size", -1), c.AttrOr<int64_t>("offset", 0));
  }
  InitializeFromFileKernel(int64_t key, int64_t value, std::string delimiter, int64_t most,
                           int64_t offset)
      : key_(key), value_(value), delimiter_(std::move(delimiter)), most_(most), offset_(offset) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<LookupTable> table, ResourceOfInput<LookupTable>(c));
    if (c.input(1).rank() != 0) {
      return InvalidArgument("filename should be a single string, but got ",
                             c.input(1).shape().ToString());
    }
    const std::string& name = c.input(1).scalar<std::string>();
    if (name.empty()) return InvalidArgument("filename cannot be empty.");
    if (c.environment().files == nullptr) {
      return FailedPrecondition("This session has no file system");
    }
    WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(*c.environment().files, name));
    std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
    if (lines.back().empty()) lines.pop_back();
    if (most_ >= 0 && static_cast<int64_t>(lines.size()) > most_) {
      lines.resize(static_cast<size_t>(most_));
    } else if (most_ > static_cast<int64_t>(lines.size())) {
      return InvalidArgument("Invalid vocab_size in ", name, ": expected ", most_, " but got ",
                             lines.size());
    }
    const Shape shape{static_cast<int64_t>(lines.size())};
    WEFT_ASSIGN_OR_RETURN(Tensor keys, Tensor::Allocate(table->options().key, shape));
    WEFT_ASSIGN_OR_RETURN(Tensor values, Tensor::Allocate(table->options().value, shape));
    for (size_t i = 0; i < lines.size(); ++i) {
      absl::string_view line = lines[i];
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      const auto number = static_cast<int64_t>(i);
      Status read = Read(line, number, key_, &keys);
      if (read.ok()) read = Read(line, number, value_, &values);
      WEFT_RETURN_IF_ERROR(Annotate(read, absl::StrCat(name, ", line ", i + 1)));
    }
    return table->Initialize(keys, values);
  }

 private:
  static constexpr int64_t kWholeLine = -2, kLineNumber = -1;

  Status Read(absl::string_view line, int64_t number, int64_t which, Tensor* to) const {
    if (which == kLineNumber) {
      if (to->dtype() != DType::kInt64) {
        return InvalidArgument("Line numbers are int64, but the table wants ",
                               DTypeName(to->dtype()));
      }
      to->data<int64_t>()[number] = number + offset_;
      return absl::OkStatus();
    }
    if (which == kWholeLine) {
      if (to->dtype() != DType::kString && to->dtype() != DType::kInt64) {
        return InvalidArgument("Whole lines are strings or int64, but the table wants ",
                               DTypeName(to->dtype()));
      }
      return Parse(line, number, to);
    }
    const std::vector<absl::string_view> columns = absl::StrSplit(line, delimiter_);
    if (which >= static_cast<int64_t>(columns.size())) {
      return InvalidArgument("Invalid number of columns: expected at least ", which + 1, " got ",
                             columns.size());
    }
    return Parse(columns[static_cast<size_t>(which)], number, to);
  }

  static Status Parse(absl::string_view text, int64_t i, Tensor* to) {
    bool parsed = false;
    switch (to->dtype()) {
      case DType::kString:
        to->data<std::string>()[i] = std::string(text);
        return absl::OkStatus();
      case DType::kInt32:
        parsed = absl::SimpleAtoi(text, to->data<int32_t>() + i);
        break;
      case DType::kInt64:
        parsed = absl::SimpleAtoi(text, to->data<int64_t>() + i);
        break;
      case DType::kFloat:
        parsed = absl::SimpleAtof(text, to->data<float>() + i);
        break;
      case DType::kDouble:
        parsed = absl::SimpleAtod(text, to->data<double>() + i);
        break;
      default:
        return InvalidArgument("Data type ", DTypeName(to->dtype()), " not supported.");
    }
    if (parsed) return absl::OkStatus();
    return InvalidArgument("'", text, "' is no ", DTypeName(to->dtype()));
  }

  const int64_t key_;
  const int64_t value_;
  const std::string delimiter_;
  const int64_t most_;
  const int64_t offset_;
};

Status HandleShape(ShapeContext& c) {
  c.set_output(0, Shape{2});
  return absl::OkStatus();
}

// Both forms of one op: its name with "V2" takes resource handles.
class Forms {
 public:
  Forms(Catalogue& catalogue, bool is_resource)
      : catalogue_(catalogue), is_resource_(is_resource) {}

  OpSpec Named(const std::string& name, const char* documentation) const {
    OpSpec spec(is_resource_ ? name + "V2" : name);
    spec.Doc(documentation).NoGradient();
    if (is_resource_) spec.Stateful();
    return spec;
  }
  OpSpec OnTable(const std::string& name, const char* documentation) const {
    OpSpec spec = Named(name, documentation);
    spec.Input(is_resource_ ? "table_handle: resource" : "table_handle: Ref(string)");
    return spec;
  }

  void AddTable(const char* name, const char* documentation, bool is_fixed) const {
    OpSpec spec = Named(name, documentation);
    spec.Stateful()
        .Output(is_resource_ ? "table_handle: resource" : "table_handle: Ref(string)")
        .Attr("container: string = ''")
        .Attr("shared_name: string = ''")
        .Attr("use_node_name_sharing: bool = false")
        .Attr("key_dtype: type")
        .Attr("value_dtype: type")
        .Shape(is_resource_ ? ShapeFunction(shapes::Scalar) : ShapeFunction(HandleShape));
    spec.Kernel(
        {.types = {{"key_dtype", DTypesOf(Keys())}},
         .factory = [is_fixed](KernelConstruction& c) { return CreateKernel::Make(c, is_fixed); }});
    catalogue_.Add(std::move(spec));
  }

  void AddUses() const {
    catalogue_.Add(OnTable("LookupTableFind",
                           "The value of each key, default_value where the table has none.\n"
                           "FailedPrecondition before the table is initialized.")
                       .Input("keys: Tin")
                       .Input("default_value: Tout")
                       .Output("values: Tout")
                       .Attr("Tin: type")
                       .Attr("Tout: type")
                       .Shape(shapes::Unknown)
                       .Kernel(MakeKernel<FindKernel>()));
    catalogue_.Add(OnTable("LookupTableSize", "How many entries the table has.")
                       .Output("size: int64")
                       .Shape(shapes::Scalar)
                       .Kernel(MakeKernel<SizeKernel>(), KernelCost::kInline));
    catalogue_.Add(OnTable("LookupTableExport", "All keys and their values, in no order.")
                       .Output("keys: Tkeys")
                       .Output("values: Tvalues")
                       .Attr("Tkeys: type")
                       .Attr("Tvalues: type")
                       .Shape(shapes::Unknown)
                       .Kernel(MakeKernel<ExportKernel>()));
    AddChange<&LookupTable::Insert>("LookupTableInsert",
                                    "Gives each key its value, also one that had another.");
    AddChange<&LookupTable::Import>(
        "LookupTableImport",
        "Replaces all of the table by these entries; gives a table that "
        "is initialized once its entries.");
  }

  void AddInitializers() const {
    catalogue_.Add(OnTable("InitializeTable",
                           "Gives a table its entries: vectors of keys and of values.\nA second "
                           "time it does nothing. FailedPrecondition for a key with two values.")
                       .Input("keys: Tkey")
                       .Input("values: Tval")
                       .Attr("Tkey: type")
                       .Attr("Tval: type")
                       .Shape(shapes::NoOutputs)
                       .Kernel(MakeKernel<InitializeKernel>()));
    catalogue_.Add(
        OnTable("InitializeTableFromTextFile",
                "Gives a table its entries, one a line of a file.\nkey_index and value_index name "
                "columns, from 0; -1 is the line's number, from `offset`; -2 the whole line. At "
                "most vocab_size lines, unless that is -1.")
            .Input("filename: string")
            .Attr("key_index: int >= -2")
            .Attr("value_index: int >= -2")
            .Attr("vocab_size: int >= -1 = -1")
            .Attr("delimiter: string = '\t'")
            .Attr("offset: int = 0")
            .Shape(shapes::NoOutputs)
            .Kernel(MakeKernel<InitializeFromFileKernel>(), KernelCost::kBlocking));
  }

 private:
  template <Change change>
  void AddChange(const char* name, const char* documentation) const {
    catalogue_.Add(OnTable(name, documentation)
                       .Input("keys: Tin")
                       .Input("values: Tout")
                       .Attr("Tin: type")
                       .Attr("Tout: type")
                       .Shape(shapes::NoOutputs)
                       .Kernel(MakeKernel<ChangeKernel<change>>()));
  }

  Catalogue& catalogue_;
  const bool is_resource_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  for (const bool is_resource : {false, true}) {
    const Forms forms(catalogue, is_resource);
    forms.AddTable("HashTable",
                   "A table that gets its entries once, by an initializer.\nOne for each container "
                   "and shared name.",
                   true);
    forms.AddTable("MutableHashTable",
                   "A table that takes entries at any time.\nOne for each container and shared "
                   "name.",
                   false);
    forms.AddUses();
    forms.AddInitializers();
  }
  catalogue.Add(Forms(catalogue, true)
                    .OnTable("LookupTableRemove", "Removes the entries of these keys, if any.")
                    .Input("keys: Tin")
                    .Attr("Tin: type")
                    .Shape(shapes::NoOutputs)
                    .Kernel(MakeKernel<RemoveKernel>()));
}

}  // namespace weft::ops::state::lookup_table
