// SPDX-License-Identifier: Apache-2.0
// Tensors that belong together (ragged, sparse, extension types) as one variant.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"

namespace weft::ops::control::composite_variant {
namespace {

// Lists that lie in each other are walked one in the other.
constexpr int kMaxNesting = 16;

class CompositeValue final : public VariantValue {
 public:
  CompositeValue(std::string metadata, std::vector<Tensor> components, int nesting)
      : metadata_(std::move(metadata)), components_(std::move(components)), nesting_(nesting) {}
  absl::string_view type_name() const override { return "CompositeTensorVariant"; }
  const std::string& metadata() const { return metadata_; }
  const std::vector<Tensor>& components() const { return components_; }
  int nesting() const { return nesting_; }

 private:
  const std::string metadata_;
  const std::vector<Tensor> components_;
  const int nesting_;
};

const CompositeValue* CompositeOf(const Variant& variant) {
  return dynamic_cast<const CompositeValue*>(variant.value.get());
}

class EncodeKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(std::string metadata, c.Attr<std::string>("metadata"));
    return std::make_unique<EncodeKernel>(std::move(metadata));
  }
  explicit EncodeKernel(std::string metadata) : metadata_(std::move(metadata)) {}

  Status Compute(KernelContext& c) override {
    std::vector<Tensor> components;
    int nesting = 1;
    for (int i = 0; i < c.num_inputs(); ++i) {
      components.push_back(c.input(i));
      if (c.input(i).dtype() != DType::kVariant) continue;
      for (const Variant& variant : c.input(i).span<Variant>()) {
        if (!variant.value) continue;
        const CompositeValue* inside = CompositeOf(variant);
        if (inside == nullptr) {
          return Unimplemented("A component of a composite tensor cannot hold a ",
                               variant.value->type_name());
        }
        nesting = std::max(nesting, inside->nesting() + 1);
      }
    }
    if (nesting > kMaxNesting) {
      return InvalidArgument("Composite tensors lie in each other deeper than ", kMaxNesting);
    }
    c.SetOutput(0, Tensor::Scalar(Variant{
                       MakeRef<CompositeValue>(metadata_, std::move(components), nesting)}));
    return absl::OkStatus();
  }

 private:
  const std::string metadata_;
};

class DecodeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    if (!c.input(0).shape().IsScalar()) {
      return InvalidArgument("encoded must be a scalar, got shape ", c.input(0).shape().ToString());
    }
    const CompositeValue* value = CompositeOf(c.input(0).scalar<Variant>());
    if (value == nullptr) {
      return InvalidArgument("The input is not a composite tensor, but another variant");
    }
    const std::vector<Tensor>& components = value->components();
    if (static_cast<int>(components.size()) != c.num_outputs()) {
      return InvalidArgument("Encoded value has ", components.size(), " tensor components; ",
                             "expected ", c.num_outputs(), " components based on Tcomponents");
    }
    for (int i = 0; i < c.num_outputs(); ++i) {
      const Tensor& component = components[static_cast<size_t>(i)];
      if (component.dtype() != c.output_dtype(i)) {
        return InvalidArgument("Tensor component ", i, " had dtype ", DTypeName(component.dtype()),
                               "; expected dtype ", DTypeName(c.output_dtype(i)));
      }
    }
    for (int i = 0; i < c.num_outputs(); ++i) c.SetOutput(i, components[static_cast<size_t>(i)]);
    return absl::OkStatus();
  }
};

Status EncodeGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const std::string metadata, c.Attr<std::string>("metadata"));
  WEFT_ASSIGN_OR_RETURN(const auto types, c.Attr<AttrValue::TypeList>("Tcomponents"));
  Node* parts = c.builder().AddNode("CompositeTensorVariantToComponents", {c.gradient()},
                                    {{"metadata", metadata}, {"Tcomponents", types}});
  if (parts == nullptr) return c.builder().status();
  for (int i = 0; i < c.node().num_inputs(); ++i) c.set_input(i, {parts, i});
  return absl::OkStatus();
}

Status DecodeGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const std::string metadata, c.Attr<std::string>("metadata"));
  std::vector<Endpoint> parts;
  for (int i = 0; i < c.node().num_outputs(); ++i) {
    parts.push_back(c.gradient(i) ? c.gradient(i) : c.Op("ZerosLike", {c.output(i)}));
  }
  c.set_input(0, c.Op("CompositeTensorVariantFromComponents", {parts}, {{"metadata", metadata}}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("CompositeTensorVariantFromComponents")
                    .Doc("Tensors that belong together as one variant.\nmetadata says of what "
                         "type they are.")
                    .Input("components: Tcomponents")
                    .Output("encoded: variant")
                    .Attr("metadata: string")
                    .Attr("Tcomponents: list(type) >= 0")
                    .Shape(shapes::Scalar)
                    .Gradient(EncodeGradient)
                    .Kernel(MakeKernel<EncodeKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("CompositeTensorVariantToComponents")
                    .Doc("The tensors of which the variant was made.\nInvalidArgument if they are "
                         "others than Tcomponents says.")
                    .Input("encoded: variant")
                    .Output("components: Tcomponents")
                    .Attr("metadata: string")
                    .Attr("Tcomponents: list(type) >= 0")
                    .Shape(shapes::Unknown)
                    .Gradient(DecodeGradient)
                    .Kernel(MakeKernel<DecodeKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::control::composite_variant
