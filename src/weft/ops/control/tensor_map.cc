// SPDX-License-Identifier: Apache-2.0
// Maps from tensors to tensors as ops.
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/control/tensor_map_kernel.h"
#include "weft/ops/elements.h"

namespace weft::ops::control::tensor_map {
namespace {

StatusOr<const TensorMap*> MapOfInput(const KernelContext& c) {
  if (const TensorMap* map = FindTensorMap(c.input(0))) return map;
  return InvalidArgument(
      "Input handle is not a map: ", c.call().op(), " got ",
      c.input(0).shape().IsScalar() ? "another variant" : c.input(0).shape().ToString());
}

class EmptyKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    c.SetOutput(0, TensorOf(MakeRef<TensorMap>(TensorMap::Entries())));
    return absl::OkStatus();
  }
};

class InsertKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const TensorMap* map, MapOfInput(c));
    WEFT_ASSIGN_OR_RETURN(std::string name, TensorMap::NameOf(c.input(1)));
    const Tensor& value = c.input(2);
    if (!IsPlain(value.dtype()) && value.dtype() != DType::kString) {
      return InvalidArgument("A value of a map cannot be a ", DTypeName(value.dtype()));
    }
    TensorMap::Entries entries = map->entries();
    entries.insert_or_assign(std::move(name), TensorMap::Entry{c.input(1), value});
    c.SetOutput(0, TensorOf(MakeRef<TensorMap>(std::move(entries))));
    return absl::OkStatus();
  }
};

class LookupKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const TensorMap* map, MapOfInput(c));
    WEFT_ASSIGN_OR_RETURN(const std::string name, TensorMap::NameOf(c.input(1)));
    const auto found = map->entries().find(name);
    if (found == map->entries().end()) {
      return InvalidArgument("Trying to lookup non-existent key. Could not find key \"",
                             c.input(1).ToString(), "\".");
    }
    if (found->second.value.dtype() != c.output_dtype(0)) {
      return InvalidArgument("The value is ", DTypeName(found->second.value.dtype()), ", not ",
                             DTypeName(c.output_dtype(0)));
    }
    c.SetOutput(0, found->second.value);
    return absl::OkStatus();
  }
};

class EraseKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const TensorMap* map, MapOfInput(c));
    WEFT_ASSIGN_OR_RETURN(const std::string name, TensorMap::NameOf(c.input(1)));
    TensorMap::Entries entries = map->entries();
    if (entries.erase(name) == 0) {
      return InvalidArgument("Trying to erase non-existent item. Could not find key \"",
                             c.input(1).ToString(), "\".");
    }
    c.SetOutput(0, TensorOf(MakeRef<TensorMap>(std::move(entries))));
    return absl::OkStatus();
  }
};

class HasKeyKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const TensorMap* map, MapOfInput(c));
    WEFT_ASSIGN_OR_RETURN(const std::string name, TensorMap::NameOf(c.input(1)));
    c.SetOutput(0, Tensor::Scalar(map->entries().contains(name)));
    return absl::OkStatus();
  }
};

class SizeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const TensorMap* map, MapOfInput(c));
    c.SetOutput(0, Tensor::Scalar(static_cast<int32_t>(map->entries().size())));
    return absl::OkStatus();
  }
};

class StackKeysKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const TensorMap* map, MapOfInput(c));
    const TensorMap::Entries& entries = map->entries();
    if (entries.empty()) {
      return InvalidArgument("TensorMapStackKeys cannot be called on empty map.");
    }
    const Tensor& first = entries.begin()->second.key;
    Dims sizes{static_cast<int64_t>(entries.size())};
    sizes.insert(sizes.end(), first.shape().dims().begin(), first.shape().dims().end());
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    for (const auto& [name, entry] : entries) {
      if (entry.key.dtype() != c.output_dtype(0)) {
        return InvalidArgument("Key does not match requested dtype.");
      }
      if (entry.key.shape() != first.shape()) {
        return InvalidArgument("Keys must all have the same shape.");
      }
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * keys, c.AllocateOutput(0, shape));
    int64_t at = 0;
    for (const auto& [name, entry] : entries) {
      CopyElements(entry.key, 0, entry.key.num_elements(), keys, at);
      at += entry.key.num_elements();
    }
    return absl::OkStatus();
  }
};

Status LookupGradient(GradientContext& c) {
  c.set_input(0, c.Op("TensorMapInsert", {c.Op("EmptyTensorMap", {}), c.input(1), c.gradient()}));
  return absl::OkStatus();
}

// The gradient of a map with a zero for `key` added, whose value was `value`: ops that read a map
// give gradients of the keys that they read, and sums those of keys that only others have.
Endpoint WithZero(GradientContext& c, Endpoint key, Endpoint value) {
  const Endpoint zero =
      c.Op("TensorMapInsert", {c.Op("EmptyTensorMap", {}), key, c.Op("ZerosLike", {value})});
  return c.Op("AddN", {std::vector<Endpoint>{c.gradient(), zero}});
}

Status InsertGradient(GradientContext& c) {
  const AttrValue dtype = c.node().input_type(2).dtype;
  const Endpoint all = WithZero(c, c.input(1), c.input(2));
  c.set_input(0, c.Op("TensorMapErase", {all, c.input(1)}, {{"value_dtype", dtype}}));
  c.set_input(2, c.Op("TensorMapLookup", {all, c.input(1)}, {{"value_dtype", dtype}}));
  return absl::OkStatus();
}

Status EraseGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("value_dtype"));
  const Endpoint value =
      c.Op("TensorMapLookup", {c.input(0), c.input(1)}, {{"value_dtype", dtype}});
  c.set_input(0, c.Op("TensorMapErase", {WithZero(c, c.input(1), value), c.input(1)},
                      {{"value_dtype", dtype}}));
  return absl::OkStatus();
}

OpSpec OnMap(const char* name, const char* documentation) {
  OpSpec spec(name);
  spec.Doc(documentation).Input("input_handle: variant");
  return spec;
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("EmptyTensorMap")
                    .Doc("A map from tensors to tensors without any.")
                    .Output("handle: variant")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<EmptyKernel>(), KernelCost::kInline));
  catalogue.Add(std::move(OnMap("TensorMapInsert", "The map with this value under this key.")
                              .Input("key: key_dtype")
                              .Input("value: value_dtype")
                              .Output("output_handle: variant")
                              .Attr("key_dtype: type")
                              .Attr("value_dtype: type")
                              .Shape(shapes::Scalar)
                              .Gradient(InsertGradient)
                              .Kernel(MakeKernel<InsertKernel>(), KernelCost::kInline)));
  catalogue.Add(std::move(
      OnMap("TensorMapLookup", "The value under a key.\nInvalidArgument if there is none.")
          .Input("key: key_dtype")
          .Output("value: value_dtype")
          .Attr("key_dtype: type")
          .Attr("value_dtype: type")
          .Shape(shapes::Unknown)
          .Gradient(LookupGradient)
          .Kernel(MakeKernel<LookupKernel>(), KernelCost::kInline)));
  catalogue.Add(std::move(
      OnMap("TensorMapErase", "The map without this key.\nInvalidArgument if it has none.")
          .Input("key: key_dtype")
          .Output("output_handle: variant")
          .Attr("key_dtype: type")
          .Attr("value_dtype: type")
          .Shape(shapes::Scalar)
          .Gradient(EraseGradient)
          .Kernel(MakeKernel<EraseKernel>(), KernelCost::kInline)));
  catalogue.Add(std::move(OnMap("TensorMapHasKey", "Whether the map has this key.")
                              .Input("key: key_dtype")
                              .Output("has_key: bool")
                              .Attr("key_dtype: type")
                              .Shape(shapes::Scalar)
                              .NoGradient()
                              .Kernel(MakeKernel<HasKeyKernel>(), KernelCost::kInline)));
  catalogue.Add(std::move(OnMap("TensorMapSize", "How many keys the map has.")
                              .Output("size: int32")
                              .HostOutput("size")
                              .Shape(shapes::Scalar)
                              .NoGradient()
                              .Kernel(MakeKernel<SizeKernel>(), KernelCost::kInline)));
  catalogue.Add(std::move(OnMap("TensorMapStackKeys",
                                "All keys, stacked, in no order.\nInvalidArgument for a map "
                                "without keys and for keys that differ in shape.")
                              .Output("keys: key_dtype")
                              .Attr("key_dtype: type")
                              .Shape(shapes::Unknown)
                              .NoGradient()
                              .Kernel(MakeKernel<StackKeysKernel>(), KernelCost::kInline)));
}

}  // namespace weft::ops::control::tensor_map
