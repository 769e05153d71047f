// SPDX-License-Identifier: Apache-2.0
// Sums and maxima of sparse tensors over some of their dimensions; the softmax of their last one.
#include <algorithm>
#include <cmath>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"
#include "weft/ops/math/functors.h"
#include "weft/ops/sparse/sparse_input.h"

namespace weft::ops::sparse::reduce {
namespace {

// Where the entries of a sparse tensor go when some dimensions are reduced: groups of equal kept
// coordinates, in order.
class Groups {
 public:
  static StatusOr<Groups> Make(const SparseInput& input, const Tensor& axes, bool keep_dims) {
    WEFT_RETURN_IF_ERROR(input.CheckBounds());
    Groups groups(input);
    WEFT_ASSIGN_OR_RETURN(const IndexVector given, IndexValues(axes, "reduction_axes"));
    std::vector<bool> reduced(static_cast<size_t>(input.rank()), false);
    for (const int64_t axis : given) {
      if (axis < -input.rank() || axis >= input.rank()) {
        return InvalidArgument("Invalid reduction dimension ", axis, ", for input with ",
                               input.rank(), " dimensions.");
      }
      reduced[static_cast<size_t>(axis < 0 ? axis + input.rank() : axis)] = true;
    }
    for (int64_t d = 0; d < input.rank(); ++d) {
      if (!reduced[static_cast<size_t>(d)]) groups.kept_.push_back(d);
      if (!reduced[static_cast<size_t>(d)]) groups.sizes_.push_back(input.size(d));
      if (reduced[static_cast<size_t>(d)] && keep_dims) groups.sizes_.push_back(1);
      if (!reduced[static_cast<size_t>(d)] || keep_dims) {
        groups.columns_.push_back(reduced[static_cast<size_t>(d)] ? -1 : d);
      }
    }
    groups.Sort();
    return groups;
  }

  // The result's shape as a dense tensor.
  StatusOr<Shape> shape() const { return Shape::Make(sizes_); }
  absl::Span<const int64_t> sizes() const { return sizes_; }
  // Entries of the sparse tensor, those of a group side by side.
  const std::vector<int64_t>& order() const { return order_; }
  // Where in order() each group begins, and the end.
  const std::vector<size_t>& begins() const { return begins_; }
  // Coordinates of an entry's group in the result.
  void Position(int64_t entry, int64_t* to) const {
    for (const int64_t column : columns_) *to++ = column < 0 ? 0 : input_.position(entry)[column];
  }
  // The same as a place in the dense result.
  int64_t Place(int64_t entry) const {
    int64_t place = 0;
    for (const int64_t d : kept_) place = place * input_.size(d) + input_.position(entry)[d];
    return place;
  }

 private:
  explicit Groups(const SparseInput& input) : input_(input) {}

  int Compare(int64_t i, int64_t j) const {
    for (const int64_t d : kept_) {
      const int64_t a = input_.position(i)[d], b = input_.position(j)[d];
      if (a != b) return a < b ? -1 : 1;
    }
    return 0;
  }
  void Sort() {
    order_ = input_.Order();
    std::stable_sort(order_.begin(), order_.end(),
                     [&](int64_t i, int64_t j) { return Compare(i, j) < 0; });
    for (size_t at = 0; at < order_.size(); ++at) {
      if (at == 0 || Compare(order_[at - 1], order_[at]) != 0) begins_.push_back(at);
    }
    begins_.push_back(order_.size());
  }

  const SparseInput input_;
  IndexVector kept_;
  IndexVector sizes_;
  IndexVector columns_;  // dimension of the input for each one of the result, -1 for a reduced one
  std::vector<int64_t> order_;
  std::vector<size_t> begins_;
};

template <typename Op, typename T>
T Reduced(const Groups& groups, size_t group, const T* values) {
  const std::vector<int64_t>& order = groups.order();
  T total = values[order[groups.begins()[group]]];
  for (size_t at = groups.begins()[group] + 1; at < groups.begins()[group + 1]; ++at) {
    total = Op::template Apply<T>(total, values[order[at]]);
  }
  return total;
}

template <typename Op, typename T>
class ToDenseKernel final : public OpKernel {
 public:
  explicit ToDenseKernel(KernelConstruction& k) : keep_dims_(k.AttrOr("keep_dims", false)) {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const SparseInput input, SparseInputAt(c, 0));
    WEFT_ASSIGN_OR_RETURN(const Groups groups, Groups::Make(input, c.input(3), keep_dims_));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, groups.shape());
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    std::fill_n(out->data<T>(), out->num_elements(), T(0));
    for (size_t group = 0; group + 1 < groups.begins().size(); ++group) {
      out->data<T>()[groups.Place(groups.order()[groups.begins()[group]])] =
          Reduced<Op>(groups, group, input.values->data<T>());
    }
    return absl::OkStatus();
  }

 private:
  const bool keep_dims_;
};

template <typename Op, typename T>
class ToSparseKernel final : public OpKernel {
 public:
  explicit ToSparseKernel(KernelConstruction& k) : keep_dims_(k.AttrOr("keep_dims", false)) {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const SparseInput input, SparseInputAt(c, 0));
    WEFT_ASSIGN_OR_RETURN(const Groups groups, Groups::Make(input, c.input(3), keep_dims_));
    const auto count = static_cast<int64_t>(groups.begins().size()) - 1;
    const auto rank = static_cast<int64_t>(groups.sizes().size());
    WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape{count, rank}));
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(1, Shape{count}));
    for (int64_t group = 0; group < count; ++group) {
      const auto g = static_cast<size_t>(group);
      groups.Position(groups.order()[groups.begins()[g]], indices->data<int64_t>() + group * rank);
      values->data<T>()[group] = Reduced<Op>(groups, g, input.values->data<T>());
    }
    c.SetOutput(2, Tensor::FromSpan<int64_t>(Shape{rank}, groups.sizes()));
    return absl::OkStatus();
  }

 private:
  const bool keep_dims_;
};

template <typename T>
class SoftmaxKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const SparseInput input, SparseInputAt(c, 0));
    if (input.rank() < 2) {
      return InvalidArgument("Input should have rank >= 2 but received shape ",
                             input.shape->ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const Groups groups,
                          Groups::Make(input, Tensor::Scalar<int32_t>(-1), /*keep_dims=*/false));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, input.values->shape()));
    const T* values = input.values->data<T>();
    for (size_t group = 0; group + 1 < groups.begins().size(); ++group) {
      const absl::Span<const int64_t> entries =
          absl::MakeConstSpan(groups.order())
              .subspan(groups.begins()[group], groups.begins()[group + 1] - groups.begins()[group]);
      const auto largest = static_cast<Wide<T>>(Reduced<MaximumOf>(groups, group, values));
      Wide<T> total = 0;
      for (const int64_t i : entries) total += std::exp(static_cast<Wide<T>>(values[i]) - largest);
      for (const int64_t i : entries) {
        out->data<T>()[i] =
            static_cast<T>(std::exp(static_cast<Wide<T>>(values[i]) - largest) / total);
      }
    }
    return absl::OkStatus();
  }
};

Status SparseShape(ShapeContext& c) {
  c.set_output(0, PartialShape::UnknownOfRank(2));
  c.set_output(1, PartialShape::UnknownOfRank(1));
  c.set_output(2, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

Status ValuesShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape values, c.WithRank(1, 1));
  c.set_output(0, std::move(values));
  return absl::OkStatus();
}

// Each value gets the gradient of the sum it went into.
Status SumGradient(GradientContext& c) {
  GraphBuilder& b = c.builder();
  const Endpoint rank = c.Op("Size", {c.input(2)});
  const Endpoint all = c.Op("Range", {b.Scalar<int32_t>(0), rank, b.Scalar<int32_t>(1)});
  const Endpoint axes = c.Op(
      "Mod", {c.Op("Add", {c.Op("Reshape", {c.input(3), b.Constant(Tensor::Vector<int32_t>({-1}))}),
                           rank}),
              rank});
  const Endpoint sizes =
      c.Op("DynamicStitch",
           {std::vector<Endpoint>{all, axes},
            std::vector<Endpoint>{c.input(2),
                                  c.Op("Fill", {c.Op("Shape", {axes}), b.Scalar<int64_t>(1)})}});
  const Endpoint kept = c.Op("Reshape", {c.gradient(), sizes});
  const Endpoint scale = c.Op("FloorDiv", {c.input(2), sizes});
  c.set_input(1, c.Op("GatherNd", {kept, c.Op("FloorDiv", {c.input(0), scale})}));
  return absl::OkStatus();
}

// y * (dy - sum(y * dy)) over each row.
Status SoftmaxGradient(GradientContext& c) {
  GraphBuilder& b = c.builder();
  const Endpoint y = c.output(0), dy = c.gradient();
  const Endpoint sums = c.Op(
      "SparseReduceSum",
      {c.input(0), c.Op("Mul", {y, dy}), c.input(2), b.Constant(Tensor::Vector<int32_t>({-1}))},
      {{"keep_dims", true}});
  const Endpoint less =
      c.Op("SparseDenseCwiseAdd", {c.input(0), dy, c.input(2), c.Op("Neg", {sums})});
  c.set_input(1, c.Op("Mul", {less, y}));
  return absl::OkStatus();
}

template <typename Op, template <typename, typename> typename K, typename... Ts>
void AddReduction(Catalogue& catalogue, OpSpec spec, bool sparse, TypeList<Ts...>) {
  spec.Input("input_indices: int64")
      .Input("input_values: T")
      .Input("input_shape: int64")
      .Input("reduction_axes: int32");
  if (sparse) {
    spec.Output("output_indices: int64").Output("output_values: T").Output("output_shape: int64");
  } else {
    spec.Output("output: T");
  }
  spec.Attr("keep_dims: bool = false")
      .Attr(std::is_same_v<Op, AddOf> ? "T: numbertype" : "T: realnumbertype")
      .Shape(sparse ? ShapeFunction(SparseShape) : ShapeFunction(shapes::Unknown));
  (spec.Kernel({.types = {{"T", DTypesOf<Ts>()}}, .factory = MakeKernel<K<Op, Ts>>()}), ...);
  catalogue.Add(std::move(spec));
}

template <typename Op, typename Types>
void RegisterReduction(Catalogue& catalogue, const std::string& name, const std::string& what,
                       Types types, GradientFunction gradient) {
  const std::string rest =
      " of a sparse tensor over some dimensions, which keep_dims leaves as ones.\nPlaces without a "
      "value count for nothing; InvalidArgument for an axis or an index out of range.";
  OpSpec dense(name);
  dense.Doc(what + rest);
  gradient ? dense.Gradient(std::move(gradient)) : dense.NoGradient();
  AddReduction<Op, ToDenseKernel>(catalogue, std::move(dense), false, types);
  OpSpec sparse(name + "Sparse");
  sparse.Doc(what + ", as a sparse tensor," + rest).NoGradient();
  AddReduction<Op, ToSparseKernel>(catalogue, std::move(sparse), true, types);
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterReduction<AddOf>(catalogue, "SparseReduceSum", "The sum", Numbers(), SumGradient);
  RegisterReduction<MaximumOf>(catalogue, "SparseReduceMax", "The maximum", RealNumbers(), nullptr);
  OpSpec softmax("SparseSoftmax");
  softmax
      .Doc(
          "The softmax of each row of a sparse tensor over the values that are there.\n"
          "InvalidArgument below rank 2.")
      .Input("sp_indices: int64")
      .Input("sp_values: T")
      .Input("sp_shape: int64")
      .Output("output: T")
      .Attr("T: {half, float, double}")
      .Shape(ValuesShape)
      .Gradient(SoftmaxGradient)
      .Kernel({.types = {{"T", DTypesOf<float>()}}, .factory = MakeKernel<SoftmaxKernel<float>>()})
      .Kernel(
          {.types = {{"T", DTypesOf<double>()}}, .factory = MakeKernel<SoftmaxKernel<double>>()})
      .Kernel({.types = {{"T", DTypesOf<Half>()}}, .factory = MakeKernel<SoftmaxKernel<Half>>()});
  catalogue.Add(std::move(softmax));
}

}  // namespace weft::ops::sparse::reduce
