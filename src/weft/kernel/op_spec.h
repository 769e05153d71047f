// SPDX-License-Identifier: Apache-2.0
// OpSpec: everything about one op in one place; Catalogue: all of them.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/graph/gradient.h"
#include "weft/graph/op_registry.h"
#include "weft/graph/shape_inference.h"
#include "weft/kernel/kernel_registry.h"

namespace weft {

// Makes a factory of a kernel class whose constructor takes what `K::Create` computes, or, without
// a Create, of one that is default-constructible.
template <typename K>
KernelFactory MakeKernel() {
  return [](KernelConstruction& c) -> StatusOr<std::unique_ptr<OpKernel>> {
    if constexpr (requires { K::Create(c); }) {
      return K::Create(c);
    } else if constexpr (std::is_constructible_v<K, KernelConstruction&>) {
      return std::make_unique<K>(c);
    } else {
      return std::make_unique<K>();
    }
  };
}

// The types an OpSpec kernel is for: DTypesOf<float, double>().
template <typename... Ts>
std::vector<DType> DTypesOf() {
  return {DTypeOf<Ts>...};
}
template <typename... Ts>
std::vector<DType> DTypesOf(TypeList<Ts...>) {
  return {DTypeOf<Ts>...};
}

// Builds one op. Text is in the signature language of op_schema.h and must equal TensorFlow's
// registration. Declare attributes after inputs or before, in TensorFlow's order.
//
//   catalogue.Add(OpSpec("Softplus")
//       .Doc("Computes log(exp(features) + 1) element-wise.")
//       .Input("features: T").Output("activations: T").Attr("T: {half, bfloat16, float, double}")
//       .Shape(shapes::SameAsInput)
//       .Gradient([](GradientContext& c) { ...; return absl::OkStatus(); })
//       .Kernel({.types = {{"T", DTypesOf<float, double>()}}, .factory =
//       MakeKernel<SoftplusKernel>()}));
class OpSpec {
 public:
  explicit OpSpec(absl::string_view name);

  OpSpec& Input(absl::string_view text);
  OpSpec& Output(absl::string_view text);
  OpSpec& Attr(absl::string_view text);
  OpSpec& Stateful();
  OpSpec& Commutative();
  OpSpec& Aggregate();
  OpSpec& AllowsUninitializedInput();
  OpSpec& DistributedCommunication();
  // The input or output of this name (shapes, axes, sizes, seeds, ...) stays in the host's memory
  // where the op runs on a device with a memory of its own.
  OpSpec& HostInput(absl::string_view name);
  OpSpec& HostOutput(absl::string_view name);
  // What the compiler may know of it: graph/op_traits.h.
  OpSpec& Traits(OpTraits traits);
  // Its kernels only pass tensors on (KernelDef::any_device).
  OpSpec& AnyDevice();
  OpSpec& Deprecated(int since, absl::string_view explanation);
  // First line: what it computes. Then shapes, and errors.
  OpSpec& Doc(absl::string_view text);
  OpSpec& Shape(ShapeFunction function);
  OpSpec& Gradient(GradientFunction function);
  OpSpec& NoGradient();
  // `def.op` is filled in.
  OpSpec& Kernel(KernelDef def);
  // A CPU kernel for all types.
  OpSpec& Kernel(KernelFactory factory, KernelCost cost = KernelCost::kParallel);
  OpSpec& Tile(TileBody body);

 private:
  friend class Catalogue;
  std::string name_;
  std::vector<std::string> inputs_;
  std::vector<std::string> outputs_;
  std::vector<std::string> attrs_;
  std::vector<std::string> host_inputs_;
  std::vector<std::string> host_outputs_;
  bool any_device_ = false;
  OpDefinition definition_;
  std::vector<KernelDef> kernels_;
  std::vector<TileBody> tiles_;
};

// The ops and kernels of a process. Filled once by the generated catalogue, then read-only.
class Catalogue {
 public:
  // The first error sticks in status(), so that files register without checks of their own.
  void Add(OpSpec spec);
  const Status& status() const { return status_; }
  OpRegistry& ops() { return ops_; }
  const OpRegistry& ops() const { return ops_; }
  KernelRegistry& kernels() { return kernels_; }
  const KernelRegistry& kernels() const { return kernels_; }

 private:
  Status TryAdd(OpSpec spec);
  OpRegistry ops_;
  KernelRegistry kernels_;
  Status status_;
};

}  // namespace weft
