// SPDX-License-Identifier: Apache-2.0
// Sums of many tensors of one shape.
#include "weft/ops/control/optional_kernel.h"
#include "weft/ops/control/tensor_list_kernel.h"
#include "weft/ops/control/tensor_map_kernel.h"
#include "weft/ops/math/elementwise_kernel.h"

namespace weft::ops::math::add_n {
namespace {

constexpr int kMaxDepth = 100;   // of optionals in optionals
constexpr int64_t kBlock = 512;  // elements summed while they are in the nearest cache

class AddNKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& k) {
    for (const TileBody& tile : BinaryTiles<AddOf>(Numbers())) {
      if (tile.input == k.output_dtype(0)) return std::make_unique<AddNKernel>(tile);
    }
    return NotFound("No sum of ", DTypeName(k.output_dtype(0)));
  }
  explicit AddNKernel(const TileBody& add) : add_(add.run), size_(DTypeSize(add.input)) {}

  Status Compute(KernelContext& c) override {
    const Tensor& first = c.input(0);
    const int count = c.num_inputs();
    for (int i = 1; i < count; ++i) {
      if (c.input(i).shape() == first.shape()) continue;
      return InvalidArgument(
          "Inputs to operation ", c.name(), " of type ", c.call().op(),
          " must have the same size and shape.  Input 0: ", first.shape().ToString(), " != input ",
          i, ": ", c.input(i).shape().ToString());
    }
    if (count == 1) {
      c.SetOutput(0, first);
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.ForwardOrAllocateOutput(0, 0, first.shape()));
    std::byte* out = output->bytes();
    c.ParallelFor(output->num_elements(), 32 * kBlock, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += kBlock)
        SumBlock(c, out, at, std::min(kBlock, end - at));
    });
    return absl::OkStatus();
  }

 private:
  // In TensorFlow's order, so that roundings agree: what is left over of groups of eight (nine for
  // a single one) comes first, then the sum of each group.
  void SumBlock(KernelContext& c, std::byte* out, int64_t at, int64_t n) const {
    const size_t offset = at * size_;
    const int count = c.num_inputs();
    const auto sum = [&](int begin, int end, std::byte* to) {
      add_(c.input(begin).bytes() + offset, 1, c.input(begin + 1).bytes() + offset, 1, to, n);
      for (int i = begin + 2; i < end; ++i) add_(to, 1, c.input(i).bytes() + offset, 1, to, n);
    };
    int done = count % 8 < 2 ? count % 8 + 8 : count % 8;
    sum(0, done, out + offset);
    for (alignas(64) std::byte group[kBlock * 16]; done < count; done += 8) {
      sum(done, done + 8, group);
      add_(out + offset, 1, group, 1, out + offset, n);
    }
  }

  const TileFunction add_;
  const size_t size_;
};

// Sums lists of tensors, which gradients of loops are, optionals, which those of conditionals are,
// and maps.
class AddVariantsKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    Tensor sum = c.input(0);
    for (int i = 1; i < c.num_inputs(); ++i) {
      WEFT_ASSIGN_OR_RETURN(sum, AddVariants(sum, c.input(i), 0));
    }
    c.SetOutput(0, std::move(sum));
    return absl::OkStatus();
  }

 private:
  static StatusOr<Tensor> AddVariants(const Tensor& a, const Tensor& b, int depth) {
    if (HoldsNothing(a)) return b;
    if (HoldsNothing(b)) return a;
    const TensorMap* const map = FindTensorMap(a);
    const TensorMap* const other = FindTensorMap(b);
    if ((map == nullptr) != (other == nullptr))
      return InvalidArgument("Cannot add a map and no map");
    if (map != nullptr) {
      WEFT_ASSIGN_OR_RETURN(Ref<TensorMap> both, AddMaps(*map, *other, AddTwo));
      return TensorOf(std::move(both));
    }
    const Ref<OptionalValue> left = OptionalOf(a);
    const Ref<OptionalValue> right = OptionalOf(b);
    if (!left || !right) {
      WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> x, TensorListOf(a));
      WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> y, TensorListOf(b));
      WEFT_ASSIGN_OR_RETURN(Ref<TensorList> sum, AddLists(*x, *y, AddTwo));
      return TensorOf(std::move(sum));
    }
    if (left->components().size() != right->components().size() || depth == kMaxDepth) {
      return InvalidArgument("Cannot add optionals of ", left->components().size(), " and ",
                             right->components().size(), " components, ", depth, " deep");
    }
    std::vector<Tensor> sums;
    for (size_t i = 0; i < left->components().size(); ++i) {
      const Tensor &x = left->components()[i], &y = right->components()[i];
      if (x.dtype() != y.dtype()) {
        return InvalidArgument("Cannot add optionals of ", DTypeName(x.dtype()), " and ",
                               DTypeName(y.dtype()));
      }
      WEFT_ASSIGN_OR_RETURN(
          Tensor sum, x.dtype() == DType::kVariant ? AddVariants(x, y, depth + 1) : AddTwo(x, y));
      sums.push_back(std::move(sum));
    }
    WEFT_ASSIGN_OR_RETURN(Tensor result, Tensor::Zeros(DType::kVariant, Shape()));
    result.data<Variant>()->value = MakeRef<OptionalValue>(true, std::move(sums));
    return result;
  }

  static StatusOr<Tensor> AddTwo(const Tensor& a, const Tensor& b) {
    if (a.shape() != b.shape()) {
      return InvalidArgument("Trying to add two tensors of lists that differ in shape: ",
                             a.shape().ToString(), " vs. ", b.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor sum, Tensor::Allocate(a.dtype(), a.shape()));
    for (const TileBody& tile : BinaryTiles<AddOf>(Numbers())) {
      if (tile.input != a.dtype()) continue;
      tile.run(a.bytes(), 1, b.bytes(), 1, sum.bytes(), a.num_elements());
      return sum;
    }
    return a;  // of what has no sum (strings, handles) nobody reads the gradient
  }
};

Status PassToAll(GradientContext& c) {
  for (int i = 0; i < c.node().num_inputs(); ++i) c.set_input(i, c.gradient());
  return absl::OkStatus();
}

OpSpec Sum(const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(doc).Input("inputs: N * T").Output("sum: T").Attr("N: int >= 1");
  spec.Commutative().Aggregate().Gradient(PassToAll);
  spec.Kernel({.types = {{"T", DTypesOf(Numbers())}}, .factory = MakeKernel<AddNKernel>()});
  for (const TileBody& tile : BinaryTiles<AddOf>(Numbers())) spec.Tile(tile);
  return spec;
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      Sum("AddN", "The sum of N tensors of one shape.")
          .Attr("T: {numbertype, variant}")
          .Kernel({.types = {{"T", {DType::kVariant}}}, .factory = MakeKernel<AddVariantsKernel>()})
          .Shape(shapes::MergeInputs));
  catalogue.Add(Sum("AccumulateNV2", "The sum of N tensors, which all have the shape `shape`.")
                    .Attr("T: numbertype")
                    .Attr("shape: shape")
                    .Shape([](ShapeContext& c) -> Status {
                      WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
                      c.set_output(0, std::move(shape));
                      return absl::OkStatus();
                    }));
}

}  // namespace weft::ops::math::add_n
