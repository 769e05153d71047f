// SPDX-License-Identifier: Apache-2.0
// Tables whose keys or values are tensors, dense tables, and tables that only their handle leads
// to.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/state/lookup_table_kernel.h"
#include "weft/ops/state/table_output_kernel.h"

namespace weft::ops::state::tables_of_tensors {
namespace {

using Keys = TypeList<std::string, int32_t, int64_t>;

StatusOr<TableOptions> OptionsOf(KernelConstruction& c, bool is_fixed) {
  TableOptions options;
  WEFT_ASSIGN_OR_RETURN(options.key, c.Attr<DType>("key_dtype"));
  WEFT_ASSIGN_OR_RETURN(options.value, c.Attr<DType>("value_dtype"));
  options.is_fixed = is_fixed;
  options.name = c.name();
  const PartialShape shape = c.AttrOr<PartialShape>("value_shape", Shape());
  if (!shape.IsFullyDefined()) {
    return InvalidArgument("value_shape must be known, got ", shape.ToString());
  }
  WEFT_ASSIGN_OR_RETURN(options.value_shape, shape.ToShape());
  WEFT_RETURN_IF_ERROR(options.Check());
  return options;
}

class OwnTableKernel final : public OpKernel {
 public:
  explicit OwnTableKernel(TableOptions options) : options_(std::move(options)) {}
  Status Compute(KernelContext& c) override {
    GiveOwnTable(c, options_);
    return absl::OkStatus();
  }

 private:
  const TableOptions options_;
};

class SharedTableKernel final : public OpKernel {
 public:
  SharedTableKernel(const KernelConstruction& c, TableOptions options)
      : options_(std::move(options)), output_(c) {
    options_.name = output_.name();
  }
  Status Compute(KernelContext& c) override { return output_.Give(c, options_); }

 private:
  TableOptions options_;
  TableOutput output_;
};

// The keys that stand for nothing are inputs.
class DenseTableKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Make(KernelConstruction& c, bool is_shared) {
    WEFT_ASSIGN_OR_RETURN(TableOptions options, OptionsOf(c, false));
    WEFT_ASSIGN_OR_RETURN(const int64_t buckets, c.Attr<int64_t>("initial_num_buckets"));
    WEFT_ASSIGN_OR_RETURN(const float load, c.Attr<float>("max_load_factor"));
    return std::make_unique<DenseTableKernel>(c, std::move(options), buckets, load, is_shared);
  }
  DenseTableKernel(const KernelConstruction& c, TableOptions options, int64_t buckets, float load,
                   bool is_shared)
      : options_(std::move(options)), buckets_(buckets), load_(load) {
    if (!is_shared) return;
    output_ = std::make_unique<TableOutput>(c);
    options_.name = output_->name();
  }

  Status Compute(KernelContext& c) override {
    TableOptions options = options_;
    options.buckets = buckets_;
    options.max_load = load_;
    options.empty_key = c.input(0);
    options.key_shape = c.input(0).shape();
    if (options.key_shape.rank() > 1) {
      return InvalidArgument("Empty key must be a scalar or a vector, got shape ",
                             options.key_shape.ToString());
    }
    options.deleted_key = c.input(1);
    if (c.input(1).shape() != options.key_shape) {
      return InvalidArgument("Empty and deleted keys must have same shape, got shapes: ",
                             options.key_shape.ToString(), " and ", c.input(1).shape().ToString());
    }
    if (SameElements(c.input(0), c.input(1))) {
      return InvalidArgument("Empty and deleted keys cannot be equal");
    }
    if (buckets_ < 1 || (buckets_ & (buckets_ - 1)) != 0) {
      return InvalidArgument("Number of buckets must be a power of 2, got: ", buckets_);
    }
    if (!(load_ > 0 && load_ < 1)) {
      return InvalidArgument("max_load_factor must be between 0 and 1, got: ", load_);
    }
    WEFT_RETURN_IF_ERROR(options.Check());
    if (output_ != nullptr) return output_->Give(c, options);
    GiveOwnTable(c, std::move(options));
    return absl::OkStatus();
  }

 private:
  static bool SameElements(const Tensor& a, const Tensor& b) {
    if (a.dtype() == DType::kString) return a.span<std::string>() == b.span<std::string>();
    return std::equal(a.bytes(), a.bytes() + a.size_bytes(), b.bytes());
  }

  TableOptions options_;
  const int64_t buckets_;
  const float load_;
  std::unique_ptr<TableOutput> output_;  // null where the table is its handle's own
};

Status HandleShape(ShapeContext& c) {
  c.set_output(0, Shape{2});
  return absl::OkStatus();
}

enum class Handle { kNames, kResource, kOwn };

OpSpec TableOp(const std::string& name, Handle handle, const char* documentation) {
  OpSpec spec(name);
  spec.Doc(documentation).Stateful().NoGradient();
  spec.Output(handle == Handle::kNames ? "table_handle: Ref(string)" : "table_handle: resource");
  spec.Shape(handle == Handle::kNames ? ShapeFunction(HandleShape) : ShapeFunction(shapes::Scalar));
  if (handle != Handle::kOwn) {
    spec.Attr("container: string = ''")
        .Attr("shared_name: string = ''")
        .Attr("use_node_name_sharing: bool = false");
  }
  spec.Attr("key_dtype: type").Attr("value_dtype: type");
  return spec;
}

KernelDef ForKeys(KernelFactory factory) {
  return {.types = {{"key_dtype", DTypesOf(Keys())}}, .factory = std::move(factory)};
}

KernelDef OwnTable(bool is_fixed) {
  return ForKeys([is_fixed](KernelConstruction& c) -> StatusOr<std::unique_ptr<OpKernel>> {
    WEFT_ASSIGN_OR_RETURN(TableOptions options, OptionsOf(c, is_fixed));
    return std::make_unique<OwnTableKernel>(std::move(options));
  });
}

void AddTablesOfVectors(Catalogue& catalogue) {
  constexpr char kDocumentation[] =
      "A table that takes entries at any time, whose values are vectors.\nvalue_shape says of how "
      "many elements.";
  const auto add = [&](const std::string& name, Handle handle) {
    OpSpec spec = TableOp(name, handle, kDocumentation);
    spec.Attr("value_shape: shape = {}");
    spec.Kernel(ForKeys([handle](KernelConstruction& c) -> StatusOr<std::unique_ptr<OpKernel>> {
      WEFT_ASSIGN_OR_RETURN(TableOptions options, OptionsOf(c, false));
      if (options.value_shape.rank() != 1) {
        return InvalidArgument("Default value must be a vector, got shape ",
                               options.value_shape.ToString());
      }
      if (handle == Handle::kOwn) return std::make_unique<OwnTableKernel>(std::move(options));
      return std::make_unique<SharedTableKernel>(c, std::move(options));
    }));
    catalogue.Add(std::move(spec));
  };
  add("MutableHashTableOfTensors", Handle::kNames);
  add("MutableHashTableOfTensorsV2", Handle::kResource);
  add("AnonymousMutableHashTableOfTensors", Handle::kOwn);
}

void AddDenseTables(Catalogue& catalogue) {
  constexpr char kDocumentation[] =
      "A table that takes entries at any time, whose keys and values are tensors.\nThe keys "
      "empty_key and deleted_key mean that there is none: using them is InvalidArgument.";
  const auto add = [&](const std::string& name, Handle handle) {
    OpSpec spec = TableOp(name, handle, kDocumentation);
    spec.Input("empty_key: key_dtype");
    if (handle != Handle::kNames) spec.Input("deleted_key: key_dtype");
    spec.Attr("value_shape: shape = {}")
        .Attr("initial_num_buckets: int = 131072")
        .Attr("max_load_factor: float = 0.8");
    spec.Kernel(ForKeys([handle](KernelConstruction& c) -> StatusOr<std::unique_ptr<OpKernel>> {
      if (handle == Handle::kNames) {
        return InvalidArgument("Unknown input name: deleted_key. Use MutableDenseHashTableV2");
      }
      return DenseTableKernel::Make(c, handle != Handle::kOwn);
    }));
    catalogue.Add(std::move(spec));
  };
  // The older op lacks the deleted key, without which TensorFlow makes no such table either.
  add("MutableDenseHashTable", Handle::kNames);
  add("MutableDenseHashTableV2", Handle::kResource);
  add("AnonymousMutableDenseHashTable", Handle::kOwn);
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(std::move(TableOp("AnonymousHashTable", Handle::kOwn,
                                  "A table that gets its entries once, by an initializer, and "
                                  "lives as long as its handle.")
                              .Kernel(OwnTable(true))));
  catalogue.Add(std::move(TableOp("AnonymousMutableHashTable", Handle::kOwn,
                                  "A table that takes entries at any time and lives as long as "
                                  "its handle.")
                              .Kernel(OwnTable(false))));
  AddTablesOfVectors(catalogue);
  AddDenseTables(catalogue);
}

}  // namespace weft::ops::state::tables_of_tensors
