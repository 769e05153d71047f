// SPDX-License-Identifier: Apache-2.0
// Sets along the last dimension of dense or sparse tensors: union, intersection, differences, size.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"
#include "weft/ops/sparse/sparse_input.h"

namespace weft::ops::sparse::set_operations {
namespace {

using Elements = TypeList<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, std::string>;
using Position = std::vector<int64_t>;

enum class Operation { kAMinusB, kBMinusA, kIntersection, kUnion };

StatusOr<Operation> OperationOf(const KernelConstruction& c) {
  WEFT_ASSIGN_OR_RETURN(const std::string name, c.Attr<std::string>("set_operation"));
  if (name == "a-b") return Operation::kAMinusB;
  if (name == "b-a") return Operation::kBMinusA;
  if (name == "intersection") return Operation::kIntersection;
  if (name == "union") return Operation::kUnion;
  return InvalidArgument("Invalid set_operation ", name,
                         ", expected a-b, b-a, intersection or union");
}

// One set for each position of the leading dimensions. Sets that are empty may be missing.
template <typename T>
struct Sets {
  std::vector<int64_t> leading;
  std::map<Position, std::set<T>> of;
};

template <typename T>
StatusOr<Sets<T>> ReadDense(const Tensor& t) {
  if (t.rank() < 2) {
    return InvalidArgument("Shape must be at least rank 2 but is rank ", t.rank(), ": ",
                           t.shape().ToString());
  }
  Sets<T> sets;
  for (int d = 0; d + 1 < t.rank(); ++d) sets.leading.push_back(t.dim(d));
  if (t.num_elements() == 0) return sets;  // however many groups there are
  const int64_t width = t.dim(t.rank() - 1);
  int64_t groups = 1;
  for (const int64_t size : sets.leading) groups *= size;
  Position position(sets.leading.size(), 0);
  for (int64_t group = 0; group < groups; ++group) {
    const T* values = t.data<T>() + group * width;
    sets.of.emplace(position, std::set<T>(values, values + width));
    for (size_t d = position.size(); d-- > 0;) {
      if (++position[d] < sets.leading[d]) break;
      position[d] = 0;
    }
  }
  return sets;
}

// With `validate`, positions must be inside of the shape, in order and different.
Status CheckSparse(const SparseInput& input, bool validate) {
  if (input.rank() < 2) {
    return InvalidArgument("Shape must be at least rank 2 but is rank ", input.rank());
  }
  if (!validate) return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(input.CheckBounds());
  for (int64_t i = 1; i < input.count(); ++i) {
    const int order = input.Compare(i - 1, i);
    if (order < 0) continue;
    return InvalidArgument("indices[", i, "] = ", input.PositionText(i),
                           order == 0 ? " is repeated" : " is out of order",
                           ". Many sparse ops require sorted indices: use tf.sparse.reorder");
  }
  return absl::OkStatus();
}

template <typename T>
StatusOr<Sets<T>> ReadSparse(const SparseInput& input, bool validate) {
  WEFT_RETURN_IF_ERROR(CheckSparse(input, validate));
  Sets<T> sets;
  for (int64_t d = 0; d + 1 < input.rank(); ++d) sets.leading.push_back(input.size(d));
  for (int64_t i = 0; i < input.count(); ++i) {
    const int64_t* at = input.position(i);
    sets.of[Position(at, at + input.rank() - 1)].insert(input.values->data<T>()[i]);
  }
  return sets;
}

template <typename T>
std::vector<T> Combine(Operation operation, const std::set<T>& a, const std::set<T>& b) {
  std::vector<T> result;
  const auto to = std::back_inserter(result);
  switch (operation) {
    case Operation::kAMinusB:
      std::set_difference(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
    case Operation::kBMinusA:
      std::set_difference(b.begin(), b.end(), a.begin(), a.end(), to);
      break;
    case Operation::kIntersection:
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
    case Operation::kUnion:
      std::set_union(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
  }
  return result;
}

template <typename T>
Status Give(KernelContext& c, const std::vector<int64_t>& leading,
            const std::map<Position, std::vector<T>>& results) {
  int64_t count = 0, widest = 0;
  for (const auto& [position, values] : results) {
    const auto size = static_cast<int64_t>(values.size());
    count += size;
    widest = std::max(widest, size);
  }
  const auto rank = static_cast<int64_t>(leading.size()) + 1;
  WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape{count, rank}));
  WEFT_ASSIGN_OR_RETURN(Tensor * values_out, c.AllocateOutput(1, Shape{count}));
  int64_t* index = indices->data<int64_t>();
  T* value = values_out->data<T>();
  for (const auto& [position, values] : results) {
    for (size_t i = 0; i < values.size(); ++i) {
      index = std::copy(position.begin(), position.end(), index);
      *index++ = static_cast<int64_t>(i);
      *value++ = values[i];
    }
  }
  std::vector<int64_t> shape = leading;
  shape.push_back(widest);
  c.SetOutput(2, Tensor::FromSpan<int64_t>(Shape{rank}, shape));
  return absl::OkStatus();
}

enum class Kind { kDenseDense, kDenseSparse, kSparseSparse };

template <Kind kind, typename T>
class CombineKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const Operation operation, OperationOf(c));
    return std::make_unique<CombineKernel>(operation, c.AttrOr("validate_indices", true));
  }
  CombineKernel(Operation operation, bool validate) : operation_(operation), validate_(validate) {}

  Status Compute(KernelContext& c) override {
    Sets<T> a, b;
    if constexpr (kind == Kind::kSparseSparse) {
      WEFT_ASSIGN_OR_RETURN(a, Sparse(c, 0));
      WEFT_ASSIGN_OR_RETURN(b, Sparse(c, 3));
    } else {
      WEFT_ASSIGN_OR_RETURN(a, ReadDense<T>(c.input(0)));
      if constexpr (kind == Kind::kDenseSparse) {
        WEFT_ASSIGN_OR_RETURN(b, Sparse(c, 1));
      } else {
        WEFT_ASSIGN_OR_RETURN(b, ReadDense<T>(c.input(1)));
      }
    }
    if (a.leading != b.leading) {
      return InvalidArgument("Mismatched group shapes: [", absl::StrJoin(a.leading, ","), "] and [",
                             absl::StrJoin(b.leading, ","), "]");
    }
    std::map<Position, std::vector<T>> results;
    const std::set<T> none;
    for (const auto& [position, set] : a.of) {
      const auto other = b.of.find(position);
      results[position] = Combine(operation_, set, other == b.of.end() ? none : other->second);
    }
    for (const auto& [position, set] : b.of) {
      if (!a.of.contains(position)) results[position] = Combine(operation_, none, set);
    }
    return Give(c, a.leading, results);
  }

 private:
  StatusOr<Sets<T>> Sparse(const KernelContext& c, int first) const {
    WEFT_ASSIGN_OR_RETURN(const SparseInput input, SparseInputAt(c, first));
    return ReadSparse<T>(input, validate_);
  }

  const Operation operation_;
  const bool validate_;
};

template <typename T>
class SizeKernel final : public OpKernel {
 public:
  explicit SizeKernel(KernelConstruction& k) : validate_(k.AttrOr("validate_indices", true)) {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const SparseInput input, SparseInputAt(c, 0));
    // Places are computed from the positions.
    WEFT_RETURN_IF_ERROR(input.CheckBounds());
    WEFT_ASSIGN_OR_RETURN(const Sets<T> sets, ReadSparse<T>(input, validate_));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sets.leading));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    std::fill_n(out->data<int32_t>(), out->num_elements(), 0);
    for (const auto& [position, set] : sets.of) {
      int64_t place = 0;
      for (size_t d = 0; d < position.size(); ++d) place = place * sets.leading[d] + position[d];
      out->data<int32_t>()[place] = static_cast<int32_t>(set.size());
    }
    return absl::OkStatus();
  }

 private:
  const bool validate_;
};

Status SparseResultShape(ShapeContext& c) {
  c.set_output(0, PartialShape::UnknownOfRank(2));
  c.set_output(1, PartialShape::UnknownOfRank(1));
  c.set_output(2, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

template <Kind kind>
struct Combiner {
  template <typename T>
  using Kernel = CombineKernel<kind, T>;
};

template <template <typename> typename K, typename... Ts>
void AddKernels(OpSpec& spec, TypeList<Ts...>) {
  (spec.Kernel({.types = {{"T", DTypesOf<Ts>()}}, .factory = MakeKernel<K<Ts>>()}), ...);
}

OpSpec& Set(OpSpec& spec, const std::string& name, bool sparse) {
  if (!sparse) return spec.Input(name + ": T");
  return spec.Input(name + "_indices: int64")
      .Input(name + "_values: T")
      .Input(name + "_shape: int64");
}

template <Kind kind>
void Register(Catalogue& catalogue, const char* name) {
  OpSpec spec(name);
  spec.Doc(
      "The sets along the last dimension of two tensors, combined: set_operation is a-b, b-a, "
      "intersection or union.\nThe other dimensions must agree. The result is sparse, each set in "
      "order. InvalidArgument below rank 2, and, with validate_indices, for indices out of order "
      "or range.");
  Set(spec, "set1", kind == Kind::kSparseSparse);
  Set(spec, "set2", kind != Kind::kDenseDense)
      .Output("result_indices: int64")
      .Output("result_values: T")
      .Output("result_shape: int64")
      .Attr("set_operation: string")
      .Attr("validate_indices: bool = true")
      .Attr("T: {int8, int16, int32, int64, uint8, uint16, string}")
      .Shape(SparseResultShape)
      .NoGradient();
  AddKernels<Combiner<kind>::template Kernel>(spec, Elements());
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  Register<Kind::kDenseDense>(catalogue, "DenseToDenseSetOperation");
  Register<Kind::kDenseSparse>(catalogue, "DenseToSparseSetOperation");
  Register<Kind::kSparseSparse>(catalogue, "SparseToSparseSetOperation");
  OpSpec size("SetSize");
  size.Doc(
      "How many different values each set along the last dimension has.\nInvalidArgument below "
      "rank "
      "2, for indices out of range, and, with validate_indices, for ones out of order.");
  Set(size, "set", true)
      .Output("size: int32")
      .Attr("validate_indices: bool = true")
      .Attr("T: {int8, int16, int32, int64, uint8, uint16, string}")
      .Shape(shapes::Unknown)
      .NoGradient();
  AddKernels<SizeKernel>(size, Elements());
  catalogue.Add(std::move(size));
}

}  // namespace weft::ops::sparse::set_operations
