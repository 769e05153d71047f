// SPDX-License-Identifier: Apache-2.0
// MatMul, a bias and an activation in one call: what the compiler makes of the three.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "weft/ops/fused_part.h"
#include "weft/ops/matrix_product.h"
#include "weft/ops/work_sharer.h"

namespace weft::ops::math::fused_product {
namespace {

template <typename T>
class FusedProductKernel final : public OpKernel {
 public:
  FusedProductKernel(KernelConstruction& k, const TileBody& add, const TileBody* activation)
      : transpose_a_(k.AttrOr<bool>("transpose_a", false)),
        transpose_b_(k.AttrOr<bool>("transpose_b", false)),
        strict_(k.AttrOr<std::string>("bias_op", "") == "BiasAdd"),
        bias_is_left_(k.AttrOr<bool>("bias_is_left", false)),
        names_(k.AttrOr<AttrValue::StringList>("names", {})),
        add_(add.run),
        activation_(activation == nullptr ? nullptr : activation->run) {
    names_.resize(2);
  }

  Status Compute(KernelContext& c) override {
    const Tensor& a = c.input(0);
    const Tensor& b = c.input(1);
    const Tensor& bias = c.input(2);
    WEFT_RETURN_IF_ERROR(ErrorOfPart(names_[0], CheckProduct(a, b, transpose_a_, transpose_b_)));
    MatrixProduct<T> p = ProductOf<T>(a, b, transpose_a_, transpose_b_);
    if (!strict_ && bias.shape() == Shape{p.m, p.n}) return AddTo(c, p, bias);
    if (bias.rank() != 1 || bias.dim(0) != p.n) return Broadcast(c, p, bias);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{p.m, p.n}));
    p.c = out->data<T>();
    Multiply<T>(p, {.bias = bias.data<T>(), .activation = activation_}, SharerOf(c));
    return absl::OkStatus();
  }

 private:
  // A matrix in place of the bias, as where two products are added.
  Status AddTo(KernelContext& c, MatrixProduct<T> p, const Tensor& added) const {
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.ForwardOrAllocateOutput(2, 0, added.shape()));
    p.c = out->data<T>();
    if (p.c != added.data<T>()) std::copy_n(added.data<T>(), added.num_elements(), p.c);
    const bool done = AddProducts<T>({p}, SharerOf(c));
    if (!done) return ResourceExhausted("No memory for a product of ", out->shape().ToString());
    if (activation_ != nullptr) {
      auto* bytes = reinterpret_cast<std::byte*>(p.c);
      activation_(bytes, 1, nullptr, 0, bytes, out->num_elements());
    }
    return absl::OkStatus();
  }

  // A bias that is no row: the parts one after the other.
  Status Broadcast(KernelContext& c, MatrixProduct<T> p, const Tensor& bias) const {
    const Shape product_shape{p.m, p.n};
    if (strict_) {
      if (bias.rank() != 1) {
        return ErrorOfPart(names_[1],
                           InvalidArgument("Biases must be 1D: ", bias.shape().ToString()));
      }
      return ErrorOfPart(
          names_[1],
          InvalidArgument("Must provide as many biases as the last dimension of the input tensor: ",
                          bias.shape().ToString(), " vs. ", product_shape.ToString()));
    }
    WEFT_ASSIGN_OR_RETURN(Tensor product, c.AllocateTemporary(DTypeOf<T>, product_shape));
    p.c = product.data<T>();
    Multiply<T>(p);
    return AddBroadcast<T>(c, {names_[1], bias_is_left_, add_, activation_}, product, bias);
  }

  const bool transpose_a_;
  const bool transpose_b_;
  const bool strict_;  // BiasAdd: the bias must be a row
  const bool bias_is_left_;
  std::vector<std::string> names_;  // of the MatMul and the addition in the user's graph
  decltype(TileBody::run) const add_;
  decltype(TileBody::run) const activation_;
};

template <typename T>
KernelDef KernelFor(const KernelRegistry* kernels) {
  return {.types = {{"T", {DTypeOf<T>}}},
          .factory = [kernels](KernelConstruction& k) -> StatusOr<std::unique_ptr<OpKernel>> {
            const TileBody* add = kernels->FindTile("AddV2", DTypeOf<T>);
            const std::string activation = k.AttrOr<std::string>("activation", "");
            const TileBody* tile =
                activation.empty() ? nullptr : kernels->FindTile(activation, DTypeOf<T>);
            if (add == nullptr || (tile == nullptr && !activation.empty())) {
              return NotFound("No element-wise body of '", activation, "' for ",
                              DTypeName(DTypeOf<T>));
            }
            return std::make_unique<FusedProductKernel<T>>(k, *add, tile);
          }};
}

// That of the product, unless what is added broadcasts it.
Status FusedProductShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape a, c.WithRank(0, 2));
  WEFT_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(1, 2));
  WEFT_ASSIGN_OR_RETURN(const bool transpose_a, c.Attr<bool>("transpose_a"));
  WEFT_ASSIGN_OR_RETURN(const bool transpose_b, c.Attr<bool>("transpose_b"));
  const int64_t columns = b.dim(transpose_b ? 0 : 1);
  const PartialShape& added = c.input(2);
  if (added.rank() != 1 || columns < 0 || added.dim(0) != columns) {
    return shapes::Unknown(c);
  }
  c.set_output(0, PartialShape{a.dim(transpose_a ? 1 : 0), columns});
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  const KernelRegistry* kernels = &catalogue.kernels();
  catalogue.Add(
      OpSpec("_FusedProduct")
          .Doc("The product of two matrices plus a bias, through an activation. Made by the "
               "compiler; graphs of clients may not hold it.")
          .Input("a: T")
          .Input("b: T")
          .Input("bias: T")
          .Output("product: T")
          .Attr("transpose_a: bool = false")
          .Attr("transpose_b: bool = false")
          .Attr("T: {float, double}")
          .Attr("bias_op: {'BiasAdd', 'Add', 'AddV2'}")
          .Attr("bias_is_left: bool = false")
          .Attr("activation: string = ''")
          .Attr("names: list(string) = []")
          .Shape(FusedProductShape)
          .NoGradient()
          .Kernel(KernelFor<float>(kernels))
          .Kernel(KernelFor<double>(kernels)));
}

}  // namespace weft::ops::math::fused_product
