// SPDX-License-Identifier: Apache-2.0
// Sums of products that an equation describes.
#include <algorithm>
#include <complex>
#include <map>
#include <set>
#include <utility>

#include "weft/device/cpu/gemm.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/gradients.h"
#include "weft/ops/linalg/einsum_kernel.h"

namespace weft::ops::linalg::einsum {
namespace {

using EinsumTypes =
    TypeList<float, double, Half, Bfloat16, int32_t, int64_t, Complex64, Complex128>;
using Sizes = std::map<int, int64_t>;
using Strides = std::map<int, int64_t>;

// How far apart neighbours along each label lie; labels that come twice step along the diagonal.
// What is broadcast stays where it is.
Strides StridesOf(const Labels& labels, const Shape& shape, const Sizes& sizes) {
  Strides strides;
  int64_t step = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    const bool is_broadcast = shape.dim(d) == 1 && sizes.at(labels[d]) != 1;
    strides[labels[d]] += is_broadcast ? 0 : step;
    step *= shape.dim(d);
  }
  return strides;
}

Strides DenseStrides(const Labels& labels, const Sizes& sizes) {
  Strides strides;
  int64_t step = 1;
  for (auto at = labels.rbegin(); at != labels.rend(); ++at) {
    strides[*at] += step;
    step *= sizes.at(*at);
  }
  return strides;
}

int64_t Product(const Labels& labels, const Sizes& sizes) {
  int64_t product = 1;
  for (const int label : labels) product *= sizes.at(label);
  return product;
}

int64_t StrideIn(const Strides& strides, int label) {
  const auto found = strides.find(label);
  return found == strides.end() ? 0 : found->second;
}

// Calls visit(offset in a, offset in b) for each combination of the labels, the last one fastest.
template <typename Visit>
void ForEach(const Labels& labels, const Sizes& sizes, const Strides& a, const Strides& b,
             const Visit& visit) {
  if (Product(labels, sizes) == 0) return;
  std::vector<int64_t> index(labels.size(), 0);
  int64_t at_a = 0, at_b = 0;
  for (;;) {
    visit(at_a, at_b);
    size_t d = labels.size();
    for (; d > 0; --d) {
      const int label = labels[d - 1];
      at_a += StrideIn(a, label);
      at_b += StrideIn(b, label);
      if (++index[d - 1] < sizes.at(label)) break;
      at_a -= StrideIn(a, label) * sizes.at(label);
      at_b -= StrideIn(b, label) * sizes.at(label);
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

// What sums are computed in.
template <typename T>
using SumType = std::conditional_t<sizeof(T) == 2, float, T>;

// The operand with its dimensions in the order `wanted`, summed over its other ones.
template <typename T>
StatusOr<Tensor> Arranged(KernelContext& c, const Tensor& operand, const Labels& labels,
                          const Labels& wanted, const Sizes& sizes) {
  WEFT_ASSIGN_OR_RETURN(Tensor out, c.AllocateTemporary(DTypeOf<T>, Shape{Product(wanted, sizes)}));
  const Strides from = StridesOf(labels, operand.shape(), sizes);
  const Strides to = DenseStrides(wanted, sizes);
  Labels summed;
  for (const auto& [label, stride] : from) {
    if (std::find(wanted.begin(), wanted.end(), label) == wanted.end()) summed.push_back(label);
  }
  const T* values = operand.data<T>();
  ForEach(wanted, sizes, from, to, [&](int64_t at, int64_t place) {
    if (summed.empty()) {
      out.data<T>()[place] = values[at];
      return;
    }
    SumType<T> sum{};
    ForEach(summed, sizes, from, {},
            [&](int64_t offset, int64_t) { sum += static_cast<SumType<T>>(values[at + offset]); });
    out.data<T>()[place] = static_cast<T>(sum);
  });
  return out;
}

// The labels of an equation of two operands by where they are.
struct Roles {
  Labels batch;       // in both operands and the output
  Labels left;        // in the first operand and the output
  Labels right;       // in the second operand and the output
  Labels contracted;  // in both operands alone

  static bool Has(const Labels& labels, int label) {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  }
  Roles(const Labels& a, const Labels& b, const Labels& output) {
    std::set<int> seen;
    for (const Labels* operand : {&a, &b}) {
      for (const int label : *operand) {
        if (!seen.insert(label).second) continue;
        const bool in_output = Has(output, label);
        // What an ellipsis stands for broadcasts: an operand without it has it as size 1.
        if (label < 0 || (Has(a, label) && Has(b, label))) {
          (in_output ? batch : contracted).push_back(label);
        } else if (in_output) {
          (operand == &a ? left : right).push_back(label);
        }
      }
    }
  }
};

Labels Joined(Labels a, const Labels& b, const Labels& c) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

// As T the sum of products, with dimensions in the order that it returns in `order`.
template <typename T>
StatusOr<Tensor> Contracted(KernelContext& c, const std::vector<Labels>& labels,
                            const Labels& output, const Sizes& sizes, Labels* order) {
  if (labels.size() == 1) {
    order->clear();
    for (const int label : output) {
      if (!Roles::Has(*order, label)) order->push_back(label);
    }
    return Arranged<T>(c, c.input(0), labels[0], *order, sizes);
  }
  const Roles roles(labels[0], labels[1], output);
  *order = Joined(roles.batch, roles.left, roles.right);
  WEFT_ASSIGN_OR_RETURN(const Tensor a,
                        Arranged<T>(c, c.input(0), labels[0],
                                    Joined(roles.batch, roles.left, roles.contracted), sizes));
  WEFT_ASSIGN_OR_RETURN(const Tensor b,
                        Arranged<T>(c, c.input(1), labels[1],
                                    Joined(roles.batch, roles.contracted, roles.right), sizes));
  WEFT_ASSIGN_OR_RETURN(Tensor product,
                        c.AllocateTemporary(DTypeOf<T>, Shape{Product(*order, sizes)}));
  MatrixProduct<T> p{.m = Product(roles.left, sizes),
                     .n = Product(roles.right, sizes),
                     .k = Product(roles.contracted, sizes)};
  p.a_stride = p.k;
  p.b_stride = p.c_stride = p.n;
  if (product.num_elements() == 0) return product;
  const int64_t batch = Product(roles.batch, sizes);
  const int64_t work = p.m * p.n * std::max<int64_t>(1, p.k);
  c.ParallelFor(batch, std::max<int64_t>(1, (1 << 18) / work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      MatrixProduct<T> one = p;
      one.a = a.data<T>() + i * p.m * p.k;
      one.b = b.data<T>() + i * p.k * p.n;
      one.c = product.data<T>() + i * p.m * p.n;
      Multiply(one);
    }
  });
  return product;
}

class EinsumKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& k) {
    WEFT_ASSIGN_OR_RETURN(const std::string text, k.Attr<std::string>("equation"));
    WEFT_ASSIGN_OR_RETURN(Equation equation, Equation::Parse(text, k.num_inputs()));
    return std::make_unique<EinsumKernel>(std::move(equation));
  }
  explicit EinsumKernel(Equation equation) : equation_(std::move(equation)) {}

  Status Compute(KernelContext& c) override {
    std::vector<Labels> labels;
    std::vector<PartialShape> shapes;
    int broadcast = 0;
    for (int i = 0; i < c.num_inputs(); ++i) {
      const std::string& text = equation_.operands[i];
      WEFT_ASSIGN_OR_RETURN(Labels found, OperandLabels(text, c.input(i).rank()));
      for (const int label : found) broadcast = std::max(broadcast, -label);
      labels.push_back(std::move(found));
      shapes.emplace_back(c.input(i).shape());
    }
    WEFT_ASSIGN_OR_RETURN(const Sizes sizes, LabelSizes(labels, shapes));
    const Labels output = OutputLabels(equation_.output, broadcast);
    Dims dims;
    for (const int label : output) dims.push_back(sizes.at(label));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    Status status;
    VisitDType(c.input_dtype(0), EinsumTypes(),
               [&]<typename T>() { status = Write<T>(c, labels, output, sizes, shape); });
    return status;
  }

 private:
  // Labels that the output has twice are its diagonals; the rest is zero.
  template <typename T>
  static Status Write(KernelContext& c, const std::vector<Labels>& labels, const Labels& output,
                      const Sizes& sizes, const Shape& shape) {
    Labels order;
    WEFT_ASSIGN_OR_RETURN(const Tensor found, Contracted<T>(c, labels, output, sizes, &order));
    if (order == output) {
      WEFT_ASSIGN_OR_RETURN(Tensor whole, found.Reshaped(shape));
      c.SetOutput(0, std::move(whole));
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (order.size() < output.size()) std::fill_n(out->data<T>(), out->num_elements(), T());
    const Strides to = DenseStrides(output, sizes);
    ForEach(order, sizes, DenseStrides(order, sizes), to,
            [&](int64_t at, int64_t place) { out->data<T>()[place] = found.data<T>()[at]; });
    return absl::OkStatus();
  }

  const Equation equation_;
};

Status EinsumShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, c.Attr<std::string>("equation"));
  WEFT_ASSIGN_OR_RETURN(const Equation equation, Equation::Parse(text, c.num_inputs()));
  std::vector<Labels> labels;
  std::vector<PartialShape> shapes;
  int broadcast = 0;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.input(i).known_rank()) return shapes::Unknown(c);
    WEFT_ASSIGN_OR_RETURN(Labels found, OperandLabels(equation.operands[i], c.input(i).rank()));
    for (const int label : found) broadcast = std::max(broadcast, -label);
    labels.push_back(std::move(found));
    shapes.push_back(c.input(i));
  }
  WEFT_ASSIGN_OR_RETURN(const Sizes sizes, LabelSizes(labels, shapes));
  PartialShape shape{Shape()};
  for (const int label : OutputLabels(equation.output, broadcast)) shape.AddDim(sizes.at(label));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Where each label is in the output or the other operand, once, the gradient is an equation, too.
Status EinsumGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, c.Attr<std::string>("equation"));
  WEFT_ASSIGN_OR_RETURN(const Equation equation, Equation::Parse(text, c.node().num_inputs()));
  const auto refused = [&](absl::string_view why) {
    return Unimplemented("No gradient of Einsum '", text, "': ", why);
  };
  if (equation.output.find('.') != std::string::npos) return refused("it has an ellipsis");
  const int count = c.node().num_inputs();
  for (int i = 0; i < count; ++i) {
    const std::string& own = equation.operands[i];
    if (std::set<char>(own.begin(), own.end()).size() != own.size()) {
      return refused("a label comes twice in an operand");
    }
    const std::string other = count == 2 ? equation.operands[1 - i] : "";
    for (const char label : own) {
      if (equation.output.find(label) != std::string::npos) continue;
      if (other.find(label) == std::string::npos) return refused("it sums over one operand alone");
    }
    std::vector<Endpoint> inputs = {c.gradient()};
    if (count == 2) inputs.push_back(Conjugate(c, c.input(1 - i)));
    const std::string back = absl::StrCat(equation.output, count == 2 ? "," : "", other, "->", own);
    c.set_input(i, c.Op("Einsum", {inputs}, {{"equation", back}}));
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("Einsum")
          .Doc("Sums of products of one or two tensors, as in \"bij,bjk->bik\".\n"
               "A letter names a dimension; what the output lacks is summed over. A letter that "
               "comes twice means a diagonal, \"...\" dimensions that broadcast.")
          .Input("inputs: N * T")
          .Output("output: T")
          .Attr("equation: string")
          .Attr("N: int >= 1")
          .Attr("T: type")
          .Shape(EinsumShape)
          .Gradient(EinsumGradient)
          .Kernel(
              {.types = {{"T", DTypesOf(EinsumTypes())}}, .factory = MakeKernel<EinsumKernel>()}));
}

}  // namespace weft::ops::linalg::einsum
