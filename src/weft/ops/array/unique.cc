// SPDX-License-Identifier: Apache-2.0
// Unique and its kin, and ListDiff: tensors as lists of keys.
#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"

#include "weft/kernel/op_spec.h"
#include "weft/kernel/scratch.h"
#include "weft/ops/array/strided_kernel.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::unique {
namespace {

using KeyTypes = TypeList<float, double, Half, Bfloat16, int32_t, int64_t, uint8_t, int8_t, int16_t,
                          uint16_t, uint32_t, uint64_t, bool, std::string>;

// Half and Bfloat16 compare as the numbers they stand for.
template <typename T>
decltype(auto) KeyOf(const T& x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>) {
    return static_cast<float>(x);
  } else {
    return (x);
  }
}

// A tensor as [outer, count, inner]: key i is the slice [:, i, :].
template <typename T>
struct Keys {
  const T* data;
  int64_t outer;
  int64_t count;
  int64_t inner;

  template <typename Visit>
  bool All(int64_t i, const Visit& visit) const {
    for (int64_t o = 0; o < outer; ++o) {
      const T* row = data + (o * count + i) * inner;
      for (int64_t j = 0; j < inner; ++j) {
        if (!visit(o * inner + j, KeyOf(row[j]))) return false;
      }
    }
    return true;
  }
  const T& At(int64_t i, int64_t element) const {
    return data[(element / inner * count + i) * inner + element % inner];
  }
};

template <typename T>
struct HashKey {
  Keys<T> keys;
  size_t operator()(int64_t i) const {
    size_t hash = 0;
    keys.All(i, [&](int64_t, const auto& x) {
      hash = absl::HashOf(hash, x);
      return true;
    });
    return hash;
  }
};
template <typename T>
struct SameKey {
  Keys<T> keys;
  bool operator()(int64_t a, int64_t b) const {
    // A NaN is like no other, but a table needs each key to be like itself.
    return a == b || keys.All(a, [&](int64_t element, const auto& x) {
      return x == KeyOf(keys.At(b, element));
    });
  }
};

// Number of each key's group, in order of first appearance, and where each group first appeared.
struct Groups {
  std::vector<int64_t> of;
  std::vector<int64_t> first;
};

// Numbers in the order of their first appearance. Open addressing with the next free place: the
// keys lie beside their numbers, and the table is never more than half full.
template <typename T, typename Number>
class NumberTable {
 public:
  explicit NumberTable(int64_t expected) : slots_(SizeFor(expected)) {}

  // The number of `key`, and whether it is new.
  std::pair<Number, bool> Add(T key) {
    if (used_ * 2 >= slots_.size()) Grow();
    Slot& slot = Find(slots_, key);
    const bool is_new = slot.number < 0;
    if (is_new) slot = {key, static_cast<Number>(used_++)};
    return {slot.number, is_new};
  }

 private:
  struct Slot {
    T key{};
    Number number = -1;
  };
  static size_t SizeFor(int64_t expected) {
    return std::bit_ceil(static_cast<size_t>(std::clamp<int64_t>(2 * expected, 16, 1 << 17)));
  }
  static Slot& Find(std::vector<Slot>& slots, T key) {
    // Fibonacci hashing: the upper bits of a product with 2^64 over the golden ratio.
    const int shift = std::countl_zero(slots.size()) + 1;
    size_t at = (static_cast<uint64_t>(key) * 0x9e3779b97f4a7c15u) >> shift;
    while (slots[at].number >= 0 && slots[at].key != key) at = (at + 1) & (slots.size() - 1);
    return slots[at];
  }
  void Grow() {
    std::vector<Slot> larger(slots_.size() * 4);
    for (const Slot& slot : slots_) {
      if (slot.number >= 0) Find(larger, slot.key) = slot;
    }
    slots_ = std::move(larger);
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

// Single elements, by their value: a table of places would look into the tensor for each.
template <typename T, typename Number>
Groups GroupValues(const T* values, int64_t count) {
  Groups groups;
  groups.of.resize(static_cast<size_t>(count));
  NumberTable<T, Number> seen(count);
  for (int64_t i = 0; i < count; ++i) {
    const auto [number, is_new] = seen.Add(values[i]);
    if (is_new) groups.first.push_back(i);
    groups.of[i] = number;
  }
  return groups;
}

template <typename T>
Groups Group(const Keys<T>& keys) {
  // Of floats a NaN is like no other.
  if constexpr (std::is_integral_v<T>) {
    if (keys.outer == 1 && keys.inner == 1) {
      return keys.count <= std::numeric_limits<int32_t>::max()
                 ? GroupValues<T, int32_t>(keys.data, keys.count)
                 : GroupValues<T, int64_t>(keys.data, keys.count);
    }
  }
  Groups groups;
  groups.of.resize(static_cast<size_t>(keys.count));
  absl::flat_hash_map<int64_t, int64_t, HashKey<T>, SameKey<T>> seen(
      static_cast<size_t>(std::min<int64_t>(keys.count, 1 << 16)), HashKey<T>{keys},
      SameKey<T>{keys});
  for (int64_t i = 0; i < keys.count; ++i) {
    const auto [at, is_new] = seen.try_emplace(i, static_cast<int64_t>(groups.first.size()));
    if (is_new) groups.first.push_back(i);
    groups.of[i] = at->second;
  }
  return groups;
}

class UniqueKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    int axis = 0;
    if (c.num_inputs() == 1) {
      if (input.rank() != 1) return InvalidArgument("unique expects a 1D vector.");
    } else {
      WEFT_ASSIGN_OR_RETURN(axis, Axis(input, c.input(1)));
    }
    int64_t outer = 1;
    int64_t inner = 1;
    for (int i = 0; i < input.rank(); ++i) {
      if (i != axis) (i < axis ? outer : inner) *= input.dim(i);
    }
    const int64_t count = input.dim(axis);
    WEFT_RETURN_IF_ERROR(CheckRoomFor(count, sizeof(int64_t), "entries"));
    Groups groups;
    const bool known = VisitDType(input.dtype(), KeyTypes(), [&]<typename T>() {
      groups = Group(Keys<T>{input.data<T>(), outer, count, inner});
    });
    if (!known) return Unimplemented("Unique of ", DTypeName(input.dtype()));
    WEFT_RETURN_IF_ERROR(WriteValues(c, input, axis, outer, inner, groups.first));
    WEFT_ASSIGN_OR_RETURN(Tensor * index, c.AllocateOutput(1, Shape{count}));
    WEFT_RETURN_IF_ERROR(StoreIndices(groups.of, index));
    if (c.num_outputs() < 3) return absl::OkStatus();
    std::vector<int64_t> counts(groups.first.size(), 0);
    for (const int64_t group : groups.of) ++counts[group];
    WEFT_ASSIGN_OR_RETURN(Tensor * output,
                          c.AllocateOutput(2, Shape{static_cast<int64_t>(counts.size())}));
    return StoreIndices(counts, output);
  }

 private:
  static StatusOr<int> Axis(const Tensor& input, const Tensor& axis) {
    if (axis.rank() != 1 || axis.num_elements() > 1) {
      return InvalidArgument("axis expects a 1D vector of at most one element, got shape ",
                             axis.shape().ToString());
    }
    if (axis.num_elements() == 0) {
      if (input.rank() != 1) return InvalidArgument("unique expects a 1D vector.");
      return 0;
    }
    const int64_t value = IndexAt(axis, 0);
    const int64_t at = value < 0 ? value + input.rank() : value;
    if (at < 0 || at >= input.rank()) {
      return InvalidArgument("axis has to be between [0, ", input.rank(), "), got ", value);
    }
    return static_cast<int>(at);
  }

  static Status WriteValues(KernelContext& c, const Tensor& input, int axis, int64_t outer,
                            int64_t inner, const std::vector<int64_t>& first) {
    Shape shape = input.shape();
    const int64_t count = shape.dim(axis);
    const auto kept = static_cast<int64_t>(first.size());
    shape.SetDim(axis, kept);
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(0, shape));
    if (outer == 1 && inner == 1) {
      VisitElement(input.dtype(), [&]<typename T>() {
        for (int64_t i = 0; i < kept; ++i) values->bits<T>()[i] = input.bits<T>()[first[i]];
      });
      return absl::OkStatus();
    }
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < kept; ++i) {
        CopyElements(input, (o * count + first[i]) * inner, inner, values, (o * kept + i) * inner);
      }
    }
    return absl::OkStatus();
  }
};

// What of x is not in y, and where it stood.
class ListDiffKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& x = c.input(0);
    const Tensor& y = c.input(1);
    if (x.rank() != 1) return InvalidArgument("x should be a 1D vector.");
    if (y.rank() != 1) return InvalidArgument("y should be a 1D vector.");
    std::vector<int64_t> kept;
    const bool known = VisitDType(x.dtype(), KeyTypes(), [&]<typename T>() {
      using Key = std::decay_t<decltype(KeyOf(std::declval<T>()))>;
      absl::flat_hash_map<Key, bool> excluded;
      for (int64_t i = 0; i < y.num_elements(); ++i) {
        const Key key = KeyOf(y.data<T>()[i]);
        if (key == key) excluded.emplace(key, true);  // NaN excludes nothing
      }
      for (int64_t i = 0; i < x.num_elements(); ++i) {
        const Key key = KeyOf(x.data<T>()[i]);
        if (key != key || !excluded.contains(key)) kept.push_back(i);
      }
    });
    if (!known) return Unimplemented("ListDiff of ", DTypeName(x.dtype()));
    const Shape shape{static_cast<int64_t>(kept.size())};
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(0, shape));
    for (size_t i = 0; i < kept.size(); ++i)
      CopyElements(x, kept[i], 1, values, static_cast<int64_t>(i));
    WEFT_ASSIGN_OR_RETURN(Tensor * index, c.AllocateOutput(1, shape));
    return StoreIndices(kept, index);
  }
};

Status UniqueShape(ShapeContext& c) {
  if (c.num_inputs() == 1) {
    WEFT_ASSIGN_OR_RETURN(const PartialShape input, c.WithRank(0, 1));
    c.set_output(0, PartialShape{-1});
    c.set_output(1, input);
  } else {
    const PartialShape& input = c.input(0);
    int64_t along = -1;
    PartialShape values =
        input.known_rank() ? PartialShape::UnknownOfRank(input.rank()) : PartialShape();
    if (input.known_rank() && c.constant(1) != nullptr && c.constant(1)->num_elements() <= 1) {
      const int64_t value = c.constant(1)->num_elements() == 0 ? 0 : IndexAt(*c.constant(1), 0);
      WEFT_ASSIGN_OR_RETURN(const int axis, CanonicalAxis(value, input.rank(), "axis"));
      along = input.dim(axis);
      values = input;
      values.SetDim(axis, -1);
    }
    c.set_output(0, std::move(values));
    c.set_output(1, PartialShape{along});
  }
  if (c.num_outputs() > 2) c.set_output(2, PartialShape{-1});
  return absl::OkStatus();
}

Status ListDiffShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  c.set_output(0, PartialShape{-1});
  c.set_output(1, PartialShape{-1});
  return absl::OkStatus();
}

void AddUnique(Catalogue& catalogue, const char* name, const char* doc, bool has_axis,
               bool has_counts) {
  OpSpec spec(name);
  spec.Doc(doc).Input("x: T");
  if (has_axis) spec.Input("axis: Taxis");
  spec.Output("y: T").Output("idx: out_idx");
  if (has_counts) spec.Output("count: out_idx");
  spec.Attr("T: type");
  if (has_axis) spec.Attr("Taxis: {int32, int64} = DT_INT64");
  spec.Attr("out_idx: {int32, int64} = DT_INT32");
  catalogue.Add(spec.Shape(UniqueShape).NoGradient().Kernel(MakeKernel<UniqueKernel>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddUnique(catalogue, "Unique",
            "Returns the distinct elements of a vector in order of first appearance, and for each "
            "element the "
            "number of its value.",
            false, false);
  AddUnique(catalogue, "UniqueWithCounts", "Unique, and how often each value came.", false, true);
  AddUnique(catalogue, "UniqueV2",
            "Returns the distinct slices along `axis` in order of first appearance, and for each "
            "slice the "
            "number of its value. An empty `axis` takes a vector.",
            true, false);
  AddUnique(catalogue, "UniqueWithCountsV2", "UniqueV2, and how often each slice came.", true,
            true);
  catalogue.Add(
      OpSpec("ListDiff")
          .Doc("Returns the elements of vector `x` that are not in `y`, and their positions.")
          .Input("x: T")
          .Input("y: T")
          .Output("out: T")
          .Output("idx: out_idx")
          .Attr("T: type")
          .Attr("out_idx: {int32, int64} = DT_INT32")
          .Shape(ListDiffShape)
          .NoGradient()
          .Kernel(MakeKernel<ListDiffKernel>()));
}

}  // namespace weft::ops::array::unique
