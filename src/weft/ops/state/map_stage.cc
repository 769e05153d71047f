// SPDX-License-Identifier: Apache-2.0
// Staging maps as ops: tuples by key, which come and go in pieces.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/named_resource.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/state/staging_map_kernel.h"

namespace weft::ops::state::map_stage {
namespace {

// What every node of a map says; the first to run makes it.
class Map {
 public:
  explicit Map(const KernelConstruction& c)
      : resource_(c),
        width_(c.AttrOr<AttrValue::TypeList>("dtypes", {}).size()),
        capacity_(c.AttrOr<int64_t>("capacity", 0)),
        memory_limit_(c.AttrOr<int64_t>("memory_limit", 0)) {}

  StatusOr<Ref<StagingMap>> Get(const KernelContext& c) {
    return resource_.Get(c, [&]() -> StatusOr<Ref<StagingMap>> {
      return MakeRef<StagingMap>(resource_.name(), width_, capacity_, memory_limit_);
    });
  }

 private:
  NamedResource<StagingMap> resource_;
  const size_t width_;
  const int64_t capacity_;
  const int64_t memory_limit_;
};

StatusOr<int64_t> KeyOf(const Tensor& key) {
  if (key.num_elements() == 1) return key.scalar<int64_t>();
  return InvalidArgument("Key must be an int64 scalar, got shape ", key.shape().ToString());
}

StatusOr<std::vector<int32_t>> IndicesOf(const StagingMap& map, const Tensor& indices) {
  const absl::Span<const int32_t> all = indices.span<int32_t>();
  WEFT_RETURN_IF_ERROR(map.CheckIndices(all));
  return std::vector<int32_t>(all.begin(), all.end());
}

class PutKernel final : public AsyncOpKernel {
 public:
  explicit PutKernel(const KernelConstruction& c) : map_(c) {}
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<PutKernel>(c);
  }

  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<Ref<StagingMap>> map = map_.Get(c);
    if (!map.ok()) return done(map.status());
    const StatusOr<int64_t> key = KeyOf(c.input(0));
    if (!key.ok()) return done(key.status());
    StatusOr<std::vector<int32_t>> indices = IndicesOf(**map, c.input(1));
    if (!indices.ok()) return done(indices.status());
    std::vector<Tensor> components;
    for (int i = 2; i < c.num_inputs(); ++i) components.push_back(c.input(i));
    if (components.size() != indices->size()) {
      return done(InvalidArgument("The number of indices, ", indices->size(),
                                  ", is not that of the values, ", components.size()));
    }
    (*map)->Put(Caller::Of(c), *key, *std::move(indices), std::move(components),
                [done = std::move(done)](StatusOr<StagingMap::Item> result) mutable {
                  done(result.status());
                });
  }

 private:
  Map map_;
};

enum class Use { kTake, kTakeFirst, kPeek };

template <Use use>
class GetKernel final : public AsyncOpKernel {
 public:
  explicit GetKernel(const KernelConstruction& c) : map_(c) {}
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<GetKernel>(c);
  }

  void ComputeAsync(KernelContext& c, Done done) override {
    StatusOr<Ref<StagingMap>> map = map_.Get(c);
    if (!map.ok()) return done(map.status());
    constexpr int kIndices = use == Use::kTakeFirst ? 0 : 1;
    StatusOr<std::vector<int32_t>> indices = IndicesOf(**map, c.input(kIndices));
    if (!indices.ok()) return done(indices.status());
    std::optional<int64_t> key;
    if constexpr (use != Use::kTakeFirst) {
      const StatusOr<int64_t> given = KeyOf(c.input(0));
      if (!given.ok()) return done(given.status());
      key = *given;
    }
    auto give = [&c, done = std::move(done)](StatusOr<StagingMap::Item> item) mutable {
      done(item.ok() ? Give(c, *std::move(item)) : item.status());
    };
    if constexpr (use == Use::kPeek) {
      (*map)->Peek(Caller::Of(c), *key, *std::move(indices), std::move(give));
    } else {
      (*map)->Take(Caller::Of(c), key, *std::move(indices), std::move(give));
    }
  }

 private:
  static Status Give(KernelContext& c, StagingMap::Item item) {
    constexpr int kFirst = use == Use::kTakeFirst ? 1 : 0;
    if (static_cast<int>(item.components.size()) != c.num_outputs() - kFirst) {
      return InvalidArgument("output/indices size mismatch: ", c.num_outputs() - kFirst, " vs. ",
                             item.components.size());
    }
    if (kFirst == 1) c.SetOutput(0, Tensor::Scalar(item.key));
    for (int i = kFirst; i < c.num_outputs(); ++i) {
      Tensor& component = item.components[static_cast<size_t>(i - kFirst)];
      if (component.dtype() != c.call().output_type(i).dtype) {
        return InvalidArgument("Component ", i - kFirst, " is ", DTypeName(component.dtype()),
                               ", expected ", DTypeName(c.call().output_type(i).dtype));
      }
      c.SetOutput(i, std::move(component));
    }
    return absl::OkStatus();
  }

  Map map_;
};

template <int64_t (StagingMap::*size)() const>
class SizeKernel final : public OpKernel {
 public:
  explicit SizeKernel(const KernelConstruction& c) : map_(c) {}
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<SizeKernel>(c);
  }
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<StagingMap> map, map_.Get(c));
    c.SetOutput(0, Tensor::Scalar(static_cast<int32_t>((map.get()->*size)())));
    return absl::OkStatus();
  }

 private:
  Map map_;
};

class ClearKernel final : public OpKernel {
 public:
  explicit ClearKernel(const KernelConstruction& c) : map_(c) {}
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<ClearKernel>(c);
  }
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<StagingMap> map, map_.Get(c));
    map->Clear();
    return absl::OkStatus();
  }

 private:
  Map map_;
};

// The attributes that all nodes of a map share. `dtypes` is the signature's line.
OpSpec MapOp(const std::string& name, const char* dtypes, const char* documentation) {
  OpSpec spec(name);
  spec.Doc(documentation)
      .Attr("capacity: int >= 0 = 0")
      .Attr("memory_limit: int >= 0 = 0")
      .Attr(dtypes);
  return spec;
}

void Add(Catalogue& catalogue, OpSpec& spec) {
  catalogue.Add(std::move(spec.Attr("container: string = ''")
                              .Attr("shared_name: string = ''")
                              .Stateful()
                              .NoGradient()));
}

void AddGet(Catalogue& catalogue, OpSpec spec, KernelFactory factory) {
  Add(catalogue, spec.Output("values: dtypes")
                     .HostInput("indices")
                     .Shape(shapes::Unknown)
                     .Kernel(std::move(factory), KernelCost::kInline));
}

// Both kinds: the keys of ours are always in order.
void AddMap(Catalogue& catalogue, const std::string& prefix) {
  constexpr char kSome[] = "dtypes: list(type) >= 1";
  constexpr char kAny[] = "dtypes: list(type)";
  Add(catalogue,
      MapOp(prefix + "Stage", kAny,
            "Puts components of the tuple of `key` into the staging map of this container and "
            "shared name; waits, where they make it whole, while the map is full.\nInvalidArgument "
            "for a component that is there already.")
          .Input("key: int64")
          .Input("indices: int32")
          .Input("values: fake_dtypes")
          .HostInput("key")
          .HostInput("indices")
          .Attr("fake_dtypes: list(type) >= 1")
          .Shape(shapes::NoOutputs)
          .Kernel(MakeKernel<PutKernel>(), KernelCost::kInline));
  AddGet(catalogue,
         std::move(MapOp(prefix + "Unstage", kSome,
                         "Takes components of the tuple of `key` out of the staging map; waits "
                         "until it is whole.\nInvalidArgument for one that was taken.")
                       .Input("key: int64")
                       .Input("indices: int32")
                       .HostInput("key")),
         MakeKernel<GetKernel<Use::kTake>>());
  AddGet(catalogue,
         std::move(MapOp(prefix + "UnstageNoKey", kSome,
                         "Takes components of the tuple with the smallest key out of the staging "
                         "map; waits until there is one.")
                       .Input("indices: int32")
                       .Output("key: int64")
                       .HostOutput("key")),
         MakeKernel<GetKernel<Use::kTakeFirst>>());
  AddGet(catalogue,
         std::move(MapOp(prefix + "Peek", kSome,
                         "Components of the tuple of `key`, which stay in the staging map; waits "
                         "until it is whole.")
                       .Input("key: int64")
                       .Input("indices: int32")
                       .HostInput("key")),
         MakeKernel<GetKernel<Use::kPeek>>());
  Add(catalogue, MapOp(prefix + "Size", kAny, "How many whole tuples the staging map holds.")
                     .Output("size: int32")
                     .HostOutput("size")
                     .Shape(shapes::Scalar)
                     .Kernel(MakeKernel<SizeKernel<&StagingMap::size>>(), KernelCost::kInline));
  Add(catalogue,
      MapOp(prefix + "IncompleteSize", kAny,
            "How many tuples of the staging map still lack components.")
          .Output("size: int32")
          .HostOutput("size")
          .Shape(shapes::Scalar)
          .Kernel(MakeKernel<SizeKernel<&StagingMap::incomplete_size>>(), KernelCost::kInline));
  Add(catalogue, MapOp(prefix + "Clear", kAny, "Empties the staging map.")
                     .Shape(shapes::NoOutputs)
                     .Kernel(MakeKernel<ClearKernel>(), KernelCost::kInline));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddMap(catalogue, "Map");
  AddMap(catalogue, "OrderedMap");
}

}  // namespace weft::ops::state::map_stage
