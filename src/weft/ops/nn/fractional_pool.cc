// SPDX-License-Identifier: Apache-2.0
// Pools whose windows have sizes that differ, drawn at random so that an image shrinks by a
// fraction (Graham, 2014), and their gradients.
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/synchronization/mutex.h"

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/ops/random/distribution_kernel.h"

namespace weft::ops::nn::fractional_pool {
namespace {

using PoolTypes = TypeList<float, double, int32_t, int64_t>;
using Cuts = std::vector<int64_t>;  // where cells begin, and at last where the side ends

// Sizes of cells whose ends are ceil(alpha * (i + u)) for one random u.
std::vector<int64_t> PseudoRandomCells(int64_t in, int64_t out, Philox draw) {
  const double alpha = static_cast<double>(in) / static_cast<double>(out);
  const auto k = static_cast<double>(in / out);
  const double most = std::min((k + 2) / alpha - 1, (static_cast<double>(in) + 1 - k) / alpha -
                                                        static_cast<double>(out - 1));
  const double u = UniformFrom<double>(draw.Next().data()) * most;
  std::vector<int64_t> cells(static_cast<size_t>(out));
  int64_t before = 1;
  for (int64_t i = 1; i <= out; ++i) {
    const int64_t end =
        i == out ? in + 1 : static_cast<int64_t>(std::ceil(alpha * (static_cast<double>(i) + u)));
    cells[static_cast<size_t>(i - 1)] = end - before;
    before = end;
  }
  return cells;
}

// Cells of two sizes in random order.
std::vector<int64_t> ShuffledCells(int64_t in, int64_t out, Philox draw) {
  std::vector<int64_t> cells(static_cast<size_t>(out), in / out);
  for (int64_t i = 0; i < in % out; ++i) ++cells[static_cast<size_t>(i)];
  PhiloxWords words(draw);
  for (int64_t i = 0; i + 1 < out; ++i) {
    std::swap(cells[static_cast<size_t>(i)],
              cells[static_cast<size_t>(i + words.Next() % static_cast<uint32_t>(out - i))]);
  }
  return cells;
}

Cuts DrawCuts(int64_t in, int64_t out, bool is_pseudo_random, GuardedPhilox& generator) {
  const auto cells = is_pseudo_random ? PseudoRandomCells(in, out, generator.Reserve(1))
                                      : ShuffledCells(in, out, generator.Reserve((out + 3) / 4));
  Cuts cuts(cells.size() + 1, 0);
  std::partial_sum(cells.begin(), cells.end(), cuts.begin() + 1);
  return cuts;
}

// An image's sides cut into cells. Cells include the next one's first line if they overlap.
struct Cells {
  int64_t batch, height, width, channels;
  Cuts rows, columns;
  bool overlap;

  int64_t out_height() const { return static_cast<int64_t>(rows.size()) - 1; }
  int64_t out_width() const { return static_cast<int64_t>(columns.size()) - 1; }
  Shape output() const { return Shape{batch, out_height(), out_width(), channels}; }

  // Calls visit(output pixel, input pixel) for the pairs of image n, and after(output pixel,
  // pairs).
  template <typename Visit, typename After>
  void ForEachPair(int64_t n, const Visit& visit, const After& after) const {
    const int64_t more = overlap ? 1 : 0;
    int64_t to = n * out_height() * out_width();
    for (size_t r = 0; r + 1 < rows.size(); ++r) {
      const int64_t bottom = std::min(rows[r + 1] + more, height);
      for (size_t s = 0; s + 1 < columns.size(); ++s, ++to) {
        const int64_t right = std::min(columns[s + 1] + more, width);
        for (int64_t y = rows[r]; y < bottom; ++y) {
          for (int64_t x = columns[s]; x < right; ++x) visit(to, (n * height + y) * width + x);
        }
        after(to,
              std::max<int64_t>(0, bottom - rows[r]) * std::max<int64_t>(0, right - columns[s]));
      }
    }
  }
};

// What a pool was made with.
struct Options {
  AttrValue::FloatList ratio;
  bool is_pseudo_random = false, overlaps = false, is_deterministic = false;
};

class PoolKernel : public OpKernel {
 public:
  PoolKernel(KernelConstruction& c, Options options)
      : options_(std::move(options)), generator_(c) {}

 protected:
  // The cells for input 0; cuts become outputs 1 and 2. The same ones each time if the node says
  // so.
  StatusOr<Cells> DrawCells(KernelContext& c) {
    const Tensor& in = c.input(0);
    if (in.rank() != 4) {
      return InvalidArgument("tensor_in must be 4-dimensional, got ", in.shape().ToString());
    }
    Cells cells{in.dim(0), in.dim(1), in.dim(2), in.dim(3), {}, {}, options_.overlaps};
    int64_t out[2];
    for (const int axis : {1, 2}) {
      out[axis - 1] = static_cast<int64_t>(
          std::floor(static_cast<float>(in.dim(axis)) / options_.ratio[static_cast<size_t>(axis)]));
      if (out[axis - 1] < 1) {
        return InvalidArgument(
            "Output size of dimension ", axis, " must be positive: ", in.dim(axis),
            " elements with a pooling_ratio of ", options_.ratio[static_cast<size_t>(axis)]);
      }
    }
    {
      absl::MutexLock lock(&mutex_);
      if (kept_.has_value() && kept_->first.back() == in.dim(1) &&
          kept_->second.back() == in.dim(2)) {
        cells.rows = kept_->first;
        cells.columns = kept_->second;
      } else {
        cells.rows = DrawCuts(in.dim(1), out[0], options_.is_pseudo_random, generator_);
        cells.columns = DrawCuts(in.dim(2), out[1], options_.is_pseudo_random, generator_);
        if (options_.is_deterministic) kept_ = {cells.rows, cells.columns};
      }
    }
    for (const int i : {1, 2}) {
      const Cuts& cuts = i == 1 ? cells.rows : cells.columns;
      WEFT_ASSIGN_OR_RETURN(Tensor * tensor,
                            c.AllocateOutput(i, Shape{static_cast<int64_t>(cuts.size())}));
      std::copy(cuts.begin(), cuts.end(), tensor->data<int64_t>());
    }
    return cells;
  }

 private:
  const Options options_;
  GuardedPhilox generator_;
  absl::Mutex mutex_;
  std::optional<std::pair<Cuts, Cuts>> kept_ ABSL_GUARDED_BY(mutex_);
};

template <typename K>
StatusOr<std::unique_ptr<OpKernel>> MakePool(KernelConstruction& c) {
  Options options;
  WEFT_ASSIGN_OR_RETURN(options.ratio, c.Attr<AttrValue::FloatList>("pooling_ratio"));
  if (options.ratio.size() != 4) {
    return InvalidArgument("pooling_ratio field must specify 4 dimensions, got ",
                           options.ratio.size());
  }
  for (const float ratio : options.ratio) {
    if (!(ratio >= 1)) {
      return InvalidArgument("pooling_ratio cannot be smaller than 1, got: ", ratio);
    }
  }
  if (options.ratio[0] != 1 || options.ratio[3] != 1) {
    return Unimplemented(
        "Fractional pooling is not yet supported on the batch nor channel dimension.");
  }
  WEFT_ASSIGN_OR_RETURN(options.is_pseudo_random, c.Attr<bool>("pseudo_random"));
  WEFT_ASSIGN_OR_RETURN(options.overlaps, c.Attr<bool>("overlapping"));
  WEFT_ASSIGN_OR_RETURN(options.is_deterministic, c.Attr<bool>("deterministic"));
  if (!options.is_deterministic &&
      (c.AttrOr<int64_t>("seed", 0) != 0 || c.AttrOr<int64_t>("seed2", 0) != 0)) {
    return InvalidArgument("Both seed and seed2 should be 0 if deterministic is false.");
  }
  return std::make_unique<K>(c, std::move(options));
}

class MaxKernel final : public PoolKernel {
 public:
  static constexpr auto Create = MakePool<MaxKernel>;
  using PoolKernel::PoolKernel;
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Cells cells, DrawCells(c));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, cells.output()));
    VisitDType(out->dtype(), PoolTypes(), [&]<typename T>() {
      std::fill_n(out->data<T>(), out->num_elements(), std::numeric_limits<T>::lowest());
      const T* in = c.input(0).data<T>();
      for (int64_t n = 0; n < cells.batch; ++n) {
        cells.ForEachPair(
            n,
            [&](int64_t to, int64_t from) {
              T* best = out->data<T>() + to * cells.channels;
              for (int64_t ch = 0; ch < cells.channels; ++ch) {
                best[ch] = std::max(best[ch], in[from * cells.channels + ch]);
              }
            },
            [](int64_t, int64_t) {});
      }
    });
    return absl::OkStatus();
  }
};

class AvgKernel final : public PoolKernel {
 public:
  static constexpr auto Create = MakePool<AvgKernel>;
  using PoolKernel::PoolKernel;
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Cells cells, DrawCells(c));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, cells.output()));
    ClearElements(out, 0, out->num_elements());
    VisitDType(out->dtype(), PoolTypes(), [&]<typename T>() {
      const T* in = c.input(0).data<T>();
      for (int64_t n = 0; n < cells.batch; ++n) {
        cells.ForEachPair(
            n,
            [&](int64_t to, int64_t from) {
              T* sum = out->data<T>() + to * cells.channels;
              for (int64_t ch = 0; ch < cells.channels; ++ch) {
                sum[ch] += in[from * cells.channels + ch];
              }
            },
            [&](int64_t to, int64_t count) {
              T* sum = out->data<T>() + to * cells.channels;
              for (int64_t ch = 0; ch < cells.channels; ++ch) sum[ch] /= static_cast<T>(count);
            });
      }
    });
    return absl::OkStatus();
  }
};

// The cells that inputs `rows` and `columns` say for images of `in`: each cut in the image, none
// before the last, as many cells as `gradient` has lines.
StatusOr<Cells> CellsOf(const KernelContext& c, const Shape& in, const Tensor& gradient, int rows,
                        int columns, bool overlap) {
  if (in.rank() != 4 || gradient.rank() != 4) {
    return InvalidArgument("orig_input and out_backprop must be 4-dimensional, got ", in.ToString(),
                           " and ", gradient.shape().ToString());
  }
  Cells cells{in.dim(0), in.dim(1), in.dim(2), in.dim(3), {}, {}, overlap};
  for (const int i : {rows, columns}) {
    const char* what = i == rows ? "row_pooling_sequence" : "col_pooling_sequence";
    WEFT_ASSIGN_OR_RETURN(const IndexVector values, IndexValues(c.input(i), what));
    const int64_t size = in.dim(i == rows ? 1 : 2);
    int64_t before = 0;
    for (const int64_t cut : values) {
      if (cut < before || cut > size) {
        return InvalidArgument(what, " must rise from 0 to at most ", size, ", got ", cut);
      }
      before = cut;
    }
    (i == rows ? cells.rows : cells.columns).assign(values.begin(), values.end());
    if (values.size() < 2) return InvalidArgument(what, " needs at least 2 elements");
  }
  if (gradient.shape() == cells.output()) return cells;
  return InvalidArgument("out_backprop must be of shape ", cells.output().ToString(), ", got ",
                         gradient.shape().ToString());
}

class GradKernel : public OpKernel {
 public:
  explicit GradKernel(KernelConstruction& c) : overlaps_(c.AttrOr<bool>("overlapping", false)) {}

 protected:
  const bool overlaps_;
};

// The gradient goes to the first largest element of each cell.
class MaxGradKernel final : public GradKernel {
 public:
  using GradKernel::GradKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const Cells cells, CellsOf(c, in.shape(), c.input(2), 3, 4, overlaps_));
    if (c.input(1).shape() != cells.output()) {
      return InvalidArgument("orig_output must be of shape ", cells.output().ToString(), ", got ",
                             c.input(1).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
    ClearElements(out, 0, out->num_elements());
    VisitDType(out->dtype(), PoolTypes(), [&]<typename T>() {
      const T *x = in.data<T>(), *gradient = c.input(2).data<T>();
      std::vector<int64_t> best(static_cast<size_t>(cells.channels), -1);
      for (int64_t n = 0; n < cells.batch; ++n) {
        cells.ForEachPair(
            n,
            [&](int64_t, int64_t from) {
              for (int64_t ch = 0; ch < cells.channels; ++ch) {
                const int64_t at = from * cells.channels + ch;
                if (best[ch] < 0 || x[best[ch]] < x[at]) best[ch] = at;
              }
            },
            [&](int64_t to, int64_t) {
              for (int64_t ch = 0; ch < cells.channels; ++ch) {
                if (best[ch] >= 0) out->data<T>()[best[ch]] += gradient[to * cells.channels + ch];
                best[ch] = -1;
              }
            });
      }
    });
    return absl::OkStatus();
  }
};

// The gradient is shared out evenly over each cell, in double precision.
class AvgGradKernel final : public GradKernel {
 public:
  using GradKernel::GradKernel;
  Status Compute(KernelContext& c) override {
    if (c.input(0).rank() != 1 || c.input(0).num_elements() != 4) {
      return InvalidArgument(
          "original input tensor shape must be 1-dimensional and 4 elements, got shape ",
          c.input(0).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape,
                          ShapeFromValues(c.input(0), "orig_input_tensor_shape"));
    const Tensor& gradient = c.input(1);
    WEFT_ASSIGN_OR_RETURN(const Cells cells, CellsOf(c, shape, gradient, 2, 3, overlaps_));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    WEFT_ASSIGN_OR_RETURN(Tensor sums, c.AllocateTemporary(DType::kDouble, shape));
    ClearElements(&sums, 0, sums.num_elements());
    VisitDType(out->dtype(), PoolTypes(), [&]<typename T>() {
      for (int64_t n = 0; n < cells.batch; ++n) {
        std::vector<int64_t> inside;  // the pixels of one cell
        cells.ForEachPair(
            n, [&](int64_t, int64_t from) { inside.push_back(from); },
            [&](int64_t to, int64_t count) {
              for (const int64_t from : inside) {
                for (int64_t ch = 0; ch < cells.channels; ++ch) {
                  sums.data<double>()[from * cells.channels + ch] +=
                      static_cast<double>(gradient.data<T>()[to * cells.channels + ch]) /
                      static_cast<double>(count);
                }
              }
              inside.clear();
            });
      }
      const double* from = sums.data<double>();
      std::transform(from, from + sums.num_elements(), out->data<T>(),
                     [](double x) { return static_cast<T>(x); });
    });
    return absl::OkStatus();
  }
};

Status PoolShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape out, c.WithRank(0, 4));
  WEFT_ASSIGN_OR_RETURN(const auto ratio, c.Attr<AttrValue::FloatList>("pooling_ratio"));
  for (size_t i = 0; i < 4; ++i) {
    const auto axis = static_cast<int>(i);
    if (ratio.size() != 4 || !(ratio[i] >= 1) || out.dim(axis) < 0) continue;
    out.SetDim(axis,
               static_cast<int64_t>(std::floor(static_cast<float>(out.dim(axis)) / ratio[i])));
  }
  for (const int i : {1, 2}) {
    c.set_output(i, PartialShape({out.dim(i) < 0 ? -1 : out.dim(i) + 1}));
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status AvgGradShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(0));
  if (!shape.known_rank()) shape = PartialShape::UnknownOfRank(4);
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status MaxGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const bool overlaps, c.Attr<bool>("overlapping"));
  c.set_input(0, c.Op("FractionalMaxPoolGrad",
                      {c.input(0), c.output(0), c.gradient(), c.output(1), c.output(2)},
                      {{"overlapping", overlaps}}));
  return absl::OkStatus();
}

Status AvgGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const bool overlaps, c.Attr<bool>("overlapping"));
  const Endpoint shape = c.Op("Shape", {c.input(0)}, {{"out_type", DType::kInt64}});
  c.set_input(0, c.Op("FractionalAvgPoolGrad", {shape, c.gradient(), c.output(1), c.output(2)},
                      {{"overlapping", overlaps}}));
  return absl::OkStatus();
}

void AddPool(Catalogue& catalogue, bool is_max) {
  catalogue.Add(
      OpSpec(is_max ? "FractionalMaxPool" : "FractionalAvgPool")
          .Doc(absl::StrCat("The ", is_max ? "largest" : "average",
                            " element of each cell of images [batch, height, width, channels].\n"
                            "Sides are cut at random into cells of two sizes, so that they shrink "
                            "by pooling_ratio; the cuts are the other outputs."))
          .Input("value: T")
          .Output("output: T")
          .Output("row_pooling_sequence: int64")
          .Output("col_pooling_sequence: int64")
          .Attr("pooling_ratio: list(float) >= 4")
          .Attr("pseudo_random: bool = false")
          .Attr("overlapping: bool = false")
          .Attr("deterministic: bool = false")
          .Attr("seed: int = 0")
          .Attr("seed2: int = 0")
          .Attr("T: {float, double, int32, int64}")
          .Shape(PoolShape)
          .Gradient(is_max ? MaxGradient : AvgGradient)
          .Kernel(is_max ? MakeKernel<MaxKernel>() : MakeKernel<AvgKernel>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddPool(catalogue, true);
  AddPool(catalogue, false);
  catalogue.Add(OpSpec("FractionalMaxPoolGrad")
                    .Doc("The gradient of FractionalMaxPool, with the cuts that it made.")
                    .Input("orig_input: T")
                    .Input("orig_output: T")
                    .Input("out_backprop: T")
                    .Input("row_pooling_sequence: int64")
                    .Input("col_pooling_sequence: int64")
                    .HostInput("row_pooling_sequence")
                    .HostInput("col_pooling_sequence")
                    .Output("output: T")
                    .Attr("overlapping: bool = false")
                    .Attr("T: {float, double, int32, int64}")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<MaxGradKernel>()));
  catalogue.Add(OpSpec("FractionalAvgPoolGrad")
                    .Doc("The gradient of FractionalAvgPool, with the cuts that it made.")
                    .Input("orig_input_tensor_shape: int64")
                    .Input("out_backprop: T")
                    .Input("row_pooling_sequence: int64")
                    .Input("col_pooling_sequence: int64")
                    .HostInput("orig_input_tensor_shape")
                    .HostInput("row_pooling_sequence")
                    .HostInput("col_pooling_sequence")
                    .Output("output: T")
                    .Attr("overlapping: bool = false")
                    .Attr("T: {float, double, int32, int64}")
                    .Shape(AvgGradShape)
                    .NoGradient()
                    .Kernel(MakeKernel<AvgGradKernel>()));
}

}  // namespace weft::ops::nn::fractional_pool
