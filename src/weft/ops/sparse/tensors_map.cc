// SPDX-License-Identifier: Apache-2.0
// Sparse tensors kept by a device under numbers, so that what can hold numbers can pass them on.
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

#include "weft/kernel/named_resource.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/sparse/parts_kernel.h"

namespace weft::ops::sparse::tensors_map {
namespace {

// Thread-safe.
class TensorsMap final : public Resource {
 public:
  int64_t Add(SparseParts parts) {
    absl::MutexLock lock(&mutex_);
    parts_.emplace(next_, std::move(parts));
    return next_++;
  }
  // Takes it out.
  StatusOr<SparseParts> Take(int64_t number) {
    absl::MutexLock lock(&mutex_);
    const auto found = parts_.find(number);
    if (found == parts_.end()) {
      return InvalidArgument("Unable to find SparseTensor: ", number, " in map");
    }
    SparseParts parts = std::move(found->second);
    parts_.erase(found);
    return parts;
  }
  std::string DebugString() const override {
    absl::MutexLock lock(&mutex_);
    return absl::StrCat("A map of ", parts_.size(), " sparse tensors");
  }

 private:
  mutable absl::Mutex mutex_;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<int64_t, SparseParts> parts_ ABSL_GUARDED_BY(mutex_);
};

class MapKernel : public OpKernel {
 public:
  explicit MapKernel(KernelConstruction& k) : map_(k) {}

 protected:
  StatusOr<Ref<TensorsMap>> Map(const KernelContext& c) {
    return map_.Get(c, []() -> StatusOr<Ref<TensorsMap>> { return MakeRef<TensorsMap>(); });
  }

 private:
  NamedResource<TensorsMap> map_;
};

class AddKernel final : public MapKernel {
 public:
  using MapKernel::MapKernel;
  Status Compute(KernelContext& c) override {
    const SparseInput input{&c.input(0), &c.input(1), &c.input(2)};
    WEFT_RETURN_IF_ERROR(input.Check());
    WEFT_ASSIGN_OR_RETURN(const Ref<TensorsMap> map, Map(c));
    c.SetOutput(0, Tensor::Scalar<int64_t>(map->Add({c.input(0), c.input(1), c.input(2)})));
    return absl::OkStatus();
  }
};

class AddManyKernel final : public MapKernel {
 public:
  using MapKernel::MapKernel;
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const std::vector<SparseParts> rows,
                          SplitRows({&c.input(0), &c.input(1), &c.input(2)}));
    WEFT_ASSIGN_OR_RETURN(const Ref<TensorsMap> map, Map(c));
    const auto count = static_cast<int64_t>(rows.size());
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{count}));
    // Rows that hold something come first, as TensorFlow counts them.
    for (const bool is_empty : {false, true}) {
      for (int64_t i = 0; i < count; ++i) {
        if ((rows[i].values.num_elements() == 0) != is_empty) continue;
        out->data<int64_t>()[i] = map->Add(rows[i]);
      }
    }
    return absl::OkStatus();
  }
};

class TakeManyKernel final : public MapKernel {
 public:
  using MapKernel::MapKernel;
  Status Compute(KernelContext& c) override {
    const Tensor numbers = c.input(0);
    if (!numbers.shape().IsVector()) {
      return InvalidArgument("sparse_handles should be a vector but received shape ",
                             numbers.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const Ref<TensorsMap> map, Map(c));
    std::vector<SparseParts> parts;
    for (const int64_t number : numbers.span<int64_t>()) {
      WEFT_ASSIGN_OR_RETURN(SparseParts one, map->Take(number));
      WEFT_RETURN_IF_ERROR(CheckParts(one, c.output_dtype(1)));
      parts.push_back(std::move(one));
    }
    return GiveJoined(c, {numbers.dim(0)}, parts);
  }
};

OpSpec Named(const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(doc).Stateful();
  return spec;
}

OpSpec& AddNames(OpSpec& spec) {
  return spec.Attr("container: string = ''").Attr("shared_name: string = ''");
}

// What was kept comes back with a gradient for its values; adding has none of its own.
void RegisterAdding(Catalogue& catalogue) {
  OpSpec one = Named("AddSparseToTensorsMap", "Keeps a sparse tensor; the number it has there."),
         many = Named("AddManySparseToTensorsMap",
                      "Keeps each row of a sparse tensor; the numbers they have there.\nIts "
                      "positions must come in the order of rows.");
  for (OpSpec* spec : {&one, &many}) {
    spec->Input("sparse_indices: int64")
        .Input("sparse_values: T")
        .Input("sparse_shape: int64")
        .Attr("T: type")
        .NoGradient();
    AddNames(*spec);
  }
  one.Output("sparse_handle: int64").Shape(shapes::Scalar).Kernel(MakeKernel<AddKernel>());
  many.Output("sparse_handles: int64").Kernel(MakeKernel<AddManyKernel>());
  many.Shape([](ShapeContext& c) {
    c.set_output(0, PartialShape({-1}));
    return absl::OkStatus();
  });
  catalogue.Add(std::move(one));
  catalogue.Add(std::move(many));
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterAdding(catalogue);
  OpSpec take = Named("TakeManySparseFromTensorsMap",
                      "Takes out the sparse tensors with these numbers, as rows of one.\n"
                      "InvalidArgument where there is none, or of another type.");
  take.Input("sparse_handles: int64")
      .Output("sparse_indices: int64")
      .Output("sparse_values: dtype")
      .Output("sparse_shape: int64")
      .Attr("dtype: type")
      .NoGradient()
      .Shape([](ShapeContext& c) {
        c.set_output(0, PartialShape({-1, -1}));
        c.set_output(1, PartialShape({-1}));
        c.set_output(2, PartialShape({-1}));
        return absl::OkStatus();
      })
      .Kernel(MakeKernel<TakeManyKernel>());
  catalogue.Add(std::move(AddNames(take)));
}

}  // namespace weft::ops::sparse::tensors_map
