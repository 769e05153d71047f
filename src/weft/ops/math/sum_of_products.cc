// SPDX-License-Identifier: Apache-2.0
// Sums of products of matrices that come one after the other, as the gradients of weights do in the
// iterations of a loop: what belongs to the sum is kept and multiplied in one call.
#include <memory>
#include <string>
#include <vector>

#include "weft/ops/fused_part.h"
#include "weft/ops/matrix_product.h"
#include "weft/ops/work_sharer.h"
#include "weft/tensor/variant.h"

namespace weft::ops::math::sum_of_products {
namespace {

// More than this is not kept: it is multiplied and added to the sum.
constexpr size_t kMostBytes = 4 << 20;
constexpr int kMostProducts = 256;

// A sum and what is to be added to it: immutable, longer ones share the shorter.
class Sum final : public VariantValue {
 public:
  explicit Sum(Tensor start) : start_(std::move(start)) {}
  Sum(Ref<Sum> rest, Tensor a, Tensor b)
      : rest_(std::move(rest)),
        a_(std::move(a)),
        b_(std::move(b)),
        bytes_(rest_->bytes_ + a_.size_bytes() + b_.size_bytes()),
        num_products_(rest_->num_products_ + 1) {}

  absl::string_view type_name() const override { return "weft::SumOfProducts"; }
  const Shape& shape() const { return rest_ ? rest_->shape() : start_.shape(); }
  bool is_full() const { return bytes_ >= kMostBytes || num_products_ >= kMostProducts; }
  int num_products() const { return num_products_; }
  const Sum* rest() const { return rest_.get(); }
  const Tensor& start() const { return start_; }
  const Tensor& a() const { return a_; }
  const Tensor& b() const { return b_; }

 private:
  const Tensor start_;   // where nothing is to be added
  const Ref<Sum> rest_;  // else what the product of these is added to
  const Tensor a_;
  const Tensor b_;
  const size_t bytes_ = 0;
  const int num_products_ = 0;
};

StatusOr<Ref<Sum>> SumOf(const KernelContext& c) {
  const Tensor& tensor = c.input(0);
  if (tensor.dtype() == DType::kVariant && tensor.num_elements() == 1) {
    if (auto* sum = dynamic_cast<Sum*>(tensor.scalar<Variant>().value.get())) return Ref<Sum>(sum);
  }
  return InvalidArgument("Expected a sum of products, got ", tensor.ToString(3));
}

Tensor TensorOf(Ref<Sum> sum) {
  return Tensor::Scalar<Variant>(Variant{Ref<VariantValue>(std::move(sum))});
}

template <typename T>
StatusOr<Tensor> CopyOf(const KernelContext& c, const Tensor& tensor) {
  WEFT_ASSIGN_OR_RETURN(Tensor copy, c.AllocateTemporary(DTypeOf<T>, tensor.shape()));
  std::copy_n(tensor.data<T>(), copy.num_elements(), copy.data<T>());
  return copy;
}

// All of the sum, in memory of its own unless there is nothing to add.
template <typename T>
StatusOr<Tensor> ValueOf(const KernelContext& c, const Sum& sum, bool transpose_a,
                         bool transpose_b) {
  std::vector<MatrixProduct<T>> products(sum.num_products());
  const Sum* at = &sum;
  for (auto product = products.rbegin(); product != products.rend(); ++product) {
    *product = ProductOf<T>(at->a(), at->b(), transpose_a, transpose_b);
    at = at->rest();
  }
  if (products.empty()) return at->start();
  WEFT_ASSIGN_OR_RETURN(Tensor value, CopyOf<T>(c, at->start()));
  for (MatrixProduct<T>& product : products) product.c = value.data<T>();
  const bool done = AddProducts<T>(products, SharerOf(c));
  if (!done) return ResourceExhausted("No memory for a product of ", value.shape().ToString());
  return value;
}

class StartKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    c.SetOutput(0, TensorOf(MakeRef<Sum>(c.input(0))));
    return absl::OkStatus();
  }
};

template <typename T>
class AddKernel final : public OpKernel {
 public:
  explicit AddKernel(KernelConstruction& k)
      : transpose_a_(k.AttrOr<bool>("transpose_a", false)),
        transpose_b_(k.AttrOr<bool>("transpose_b", false)),
        names_(k.AttrOr<AttrValue::StringList>("names", {})) {
    names_.resize(2);
  }

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<Sum> sum, SumOf(c));
    const Tensor& a = c.input(1);
    const Tensor& b = c.input(2);
    WEFT_RETURN_IF_ERROR(ErrorOfPart(names_[0], CheckProduct(a, b, transpose_a_, transpose_b_)));
    const MatrixProduct<T> product = ProductOf<T>(a, b, transpose_a_, transpose_b_);
    if (!(sum->shape() == Shape{product.m, product.n})) return Broadcast(c, *sum, product);
    auto longer = MakeRef<Sum>(std::move(sum), a, b);
    if (longer->is_full()) {
      WEFT_ASSIGN_OR_RETURN(Tensor value, ValueOf<T>(c, *longer, transpose_a_, transpose_b_));
      longer = MakeRef<Sum>(std::move(value));
    }
    c.SetOutput(0, TensorOf(std::move(longer)));
    return absl::OkStatus();
  }

 private:
  // A product with one row or column where the sum has several.
  Status Broadcast(KernelContext& c, const Sum& sum, MatrixProduct<T> p) const {
    const Shape shape = sum.shape();
    const Shape product_shape{p.m, p.n};
    if ((p.m != 1 && p.m != shape.dim(0)) || (p.n != 1 && p.n != shape.dim(1))) {
      return ErrorOfPart(names_[1], InvalidArgument("Incompatible shapes: ", shape.ToString(),
                                                    " vs. ", product_shape.ToString()));
    }
    WEFT_ASSIGN_OR_RETURN(Tensor product, c.AllocateTemporary(DTypeOf<T>, product_shape));
    p.c = product.data<T>();
    Multiply<T>(p);
    WEFT_ASSIGN_OR_RETURN(const Tensor before, ValueOf<T>(c, sum, transpose_a_, transpose_b_));
    WEFT_ASSIGN_OR_RETURN(Tensor value, CopyOf<T>(c, before));
    for (int64_t i = 0; i < shape.dim(0); ++i) {
      T* row = value.data<T>() + i * shape.dim(1);
      const T* added = p.c + (p.m == 1 ? 0 : i * p.n);
      for (int64_t j = 0; j < shape.dim(1); ++j) row[j] += added[p.n == 1 ? 0 : j];
    }
    c.SetOutput(0, TensorOf(MakeRef<Sum>(std::move(value))));
    return absl::OkStatus();
  }

  const bool transpose_a_;
  const bool transpose_b_;
  std::vector<std::string> names_;  // of the MatMul and the addition in the user's graph
};

template <typename T>
class EndKernel final : public OpKernel {
 public:
  explicit EndKernel(KernelConstruction& k)
      : transpose_a_(k.AttrOr<bool>("transpose_a", false)),
        transpose_b_(k.AttrOr<bool>("transpose_b", false)) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<Sum> sum, SumOf(c));
    WEFT_ASSIGN_OR_RETURN(Tensor value, ValueOf<T>(c, *sum, transpose_a_, transpose_b_));
    c.SetOutput(0, std::move(value));
    return absl::OkStatus();
  }

 private:
  const bool transpose_a_;
  const bool transpose_b_;
};

void AddTransposes(OpSpec& spec) {
  spec.Attr("transpose_a: bool = false").Attr("transpose_b: bool = false");
}

template <template <typename> class KernelT>
void AddKernels(OpSpec& spec) {
  spec.Kernel({.types = {{"T", {DType::kFloat}}}, .factory = MakeKernel<KernelT<float>>()})
      .Kernel({.types = {{"T", {DType::kDouble}}}, .factory = MakeKernel<KernelT<double>>()});
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("_SumOfProducts")
                    .Doc("A sum that begins with a matrix, to which products are added. Made by "
                         "the compiler; graphs of clients may not hold it.")
                    .Input("start: T")
                    .Output("sum: variant")
                    .Attr("T: {float, double}")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<StartKernel>(), KernelCost::kInline));
  OpSpec add("_AddProduct");
  add.Doc("Adds the product of two matrices to a sum of products, which may put it off.")
      .Input("sum: variant")
      .Input("a: T")
      .Input("b: T")
      .Output("longer: variant")
      .Attr("T: {float, double}")
      .Attr("names: list(string) = []")
      .Shape(shapes::Scalar)
      .NoGradient();
  AddTransposes(add);
  AddKernels<AddKernel>(add);
  catalogue.Add(std::move(add));
  OpSpec end("_ValueOfSum");
  end.Doc("What a sum of products is.")
      .Input("sum: variant")
      .Output("value: T")
      .Attr("T: {float, double}")
      .Shape(shapes::Unknown)
      .NoGradient();
  AddTransposes(end);
  AddKernels<EndKernel>(end);
  catalogue.Add(std::move(end));
}

}  // namespace weft::ops::math::sum_of_products
