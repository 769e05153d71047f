// SPDX-License-Identifier: Apache-2.0
// EditDistance: how many insertions, deletions and replacements lie between two sequences each.
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"

namespace weft::ops::sparse::edit_distance {
namespace {

using ValueTypes =
    TypeList<float, double, Half, Bfloat16, int32_t, int64_t, uint8_t, int8_t, int16_t, uint16_t,
             uint32_t, uint64_t, bool, Complex64, Complex128, std::string>;

// A sparse tensor whose last dimension is sequences.
struct Sequences {
  const Tensor* indices;
  const Tensor* values;
  Shape shape;
  int64_t rank() const { return indices->dim(1); }
  // Where element i's sequence lies.
  absl::Span<const int64_t> GroupOf(int64_t i) const {
    return {indices->data<int64_t>() + i * rank(), static_cast<size_t>(rank() - 1)};
  }
  int64_t size() const { return values->dim(0); }
  // The end of the sequence that begins at element i.
  int64_t EndOf(int64_t i) const {
    int64_t end = i + 1;
    while (end < size() && GroupOf(end) == GroupOf(i)) ++end;
    return end;
  }
};

StatusOr<Sequences> SequencesOf(const KernelContext& c, int first, const char* what) {
  const Tensor &indices = c.input(first), &values = c.input(first + 1), &shape = c.input(first + 2);
  if (indices.rank() != 2) {
    return InvalidArgument(
        what, "_indices should be a matrix, but got shape: ", indices.shape().ToString());
  }
  if (values.rank() != 1) {
    return InvalidArgument(
        what, "_values should be a vector, but got shape: ", values.shape().ToString());
  }
  if (shape.rank() != 1) {
    return InvalidArgument(what,
                           "_shape should be a vector, but got shape: ", shape.shape().ToString());
  }
  if (shape.dim(0) != indices.dim(1) || indices.dim(0) != values.dim(0)) {
    return InvalidArgument(
        "Expected ", what, "_shape.NumElements == #cols(", what,
        "_indices) and as many rows as values, their shapes are: ", shape.shape().ToString(), ", ",
        indices.shape().ToString(), " and ", values.shape().ToString());
  }
  if (shape.dim(0) < 2) {
    return InvalidArgument("Input SparseTensors must have rank at least 2, but ", what,
                           "_shape rank is: ", shape.dim(0));
  }
  Sequences s{&indices, &values, {}};
  WEFT_ASSIGN_OR_RETURN(s.shape, ShapeFromValues(shape, absl::StrCat(what, "_shape")));
  return s;
}

// Row by row of the table of distances between beginnings.
template <typename T>
StatusOr<int64_t> Distance(absl::Span<const T> a, absl::Span<const T> b,
                           const Cancellation& cancellation) {
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  int64_t work = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
    if ((work += static_cast<int64_t>(b.size())) > (1 << 22)) {
      work = 0;
      WEFT_RETURN_IF_ERROR(cancellation.status());
    }
  }
  return row.back();
}

class EditDistanceKernel final : public OpKernel {
 public:
  explicit EditDistanceKernel(KernelConstruction& c)
      : normalizes_(c.AttrOr<bool>("normalize", true)) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Sequences hypothesis, SequencesOf(c, 0, "hypothesis"));
    WEFT_ASSIGN_OR_RETURN(const Sequences truth, SequencesOf(c, 3, "truth"));
    if (hypothesis.rank() != truth.rank()) {
      return InvalidArgument(
          "Expected truth and hypothesis to have matching ranks, but their shapes are: ",
          truth.shape.ToString(), " and ", hypothesis.shape.ToString());
    }
    Dims dims;
    for (int i = 0; i + 1 < truth.shape.rank(); ++i) {
      dims.push_back(std::max(hypothesis.shape.dim(i), truth.shape.dim(i)));
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    ClearElements(out, 0, out->num_elements());
    return Compare(c, hypothesis, truth, out);
  }

 private:
  // Both in order of their groups, as one merges two sorted lists.
  Status Compare(const KernelContext& c, const Sequences& hypothesis, const Sequences& truth,
                 Tensor* out) const {
    int64_t h = 0, t = 0;
    while (h < hypothesis.size() || t < truth.size()) {
      const bool no_truth = t >= truth.size(), no_hypothesis = h >= hypothesis.size();
      const bool takes_truth =
          no_hypothesis || (!no_truth && truth.GroupOf(t) <= hypothesis.GroupOf(h));
      const bool takes_hypothesis =
          no_truth || (!no_hypothesis && hypothesis.GroupOf(h) <= truth.GroupOf(t));
      const int64_t h_end = takes_hypothesis ? hypothesis.EndOf(h) : h;
      const int64_t t_end = takes_truth ? truth.EndOf(t) : t;
      const auto group = takes_truth ? truth.GroupOf(t) : hypothesis.GroupOf(h);
      WEFT_ASSIGN_OR_RETURN(const int64_t place, PlaceOf(group, out->shape()));
      float& to = out->data<float>()[place];
      const auto truth_size = static_cast<float>(t_end - t);
      if (!takes_truth) {
        to = normalizes_ ? std::numeric_limits<float>::infinity() : static_cast<float>(h_end - h);
      } else if (!takes_hypothesis) {
        to = normalizes_ ? 1.0f : truth_size;
      } else {
        StatusOr<int64_t> distance = int64_t{0};
        VisitDType(truth.values->dtype(), ValueTypes(), [&]<typename T>() {
          const T *a = truth.values->data<T>(), *b = hypothesis.values->data<T>();
          distance = Distance<T>(absl::MakeConstSpan(a + t, static_cast<size_t>(t_end - t)),
                                 absl::MakeConstSpan(b + h, static_cast<size_t>(h_end - h)),
                                 c.cancellation());
        });
        WEFT_RETURN_IF_ERROR(distance.status());
        to = static_cast<float>(*distance) / (normalizes_ ? truth_size : 1.0f);
      }
      h = h_end;
      t = t_end;
    }
    return absl::OkStatus();
  }

  static StatusOr<int64_t> PlaceOf(absl::Span<const int64_t> group, const Shape& shape) {
    int64_t place = 0;
    for (int i = 0; i < shape.rank(); ++i) {
      const int64_t at = group[static_cast<size_t>(i)];
      if (at < 0 || at >= shape.dim(i)) {
        return InvalidArgument("A sequence's index ", at, " in dimension ", i,
                               " is out of the output's shape ", shape.ToString());
      }
      place = place * shape.dim(i) + at;
    }
    return place;
  }

  const bool normalizes_;
};

Status DistanceShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape hypothesis, c.ShapeFromInput(2));
  WEFT_ASSIGN_OR_RETURN(const PartialShape truth, c.ShapeFromInput(5));
  if (!truth.known_rank() || truth.rank() < 2) return absl::OkStatus();
  PartialShape out = PartialShape::UnknownOfRank(truth.rank() - 1);
  for (int i = 0; i + 1 < truth.rank() && hypothesis.rank() == truth.rank(); ++i) {
    if (truth.dim(i) < 0 || hypothesis.dim(i) < 0) continue;
    out.SetDim(i, std::max(truth.dim(i), hypothesis.dim(i)));
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("EditDistance")
          .Doc(
              "The Levenshtein distance of each sequence of the hypothesis from the truth's, which "
              "lie along the last dimension of two sparse tensors.\n"
              "With normalize, it is divided by the truth's length; infinity where there is no "
              "truth.")
          .Input("hypothesis_indices: int64")
          .Input("hypothesis_values: T")
          .Input("hypothesis_shape: int64")
          .HostInput("hypothesis_shape")
          .Input("truth_indices: int64")
          .Input("truth_values: T")
          .Input("truth_shape: int64")
          .HostInput("truth_shape")
          .Output("output: float")
          .Attr("normalize: bool = true")
          .Attr("T: type")
          .Shape(DistanceShape)
          .NoGradient()
          .Kernel({.types = {{"T", DTypesOf(ValueTypes())}},
                   .factory = MakeKernel<EditDistanceKernel>()}));
}

}  // namespace weft::ops::sparse::edit_distance
