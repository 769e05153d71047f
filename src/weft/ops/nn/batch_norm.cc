// SPDX-License-Identifier: Apache-2.0
// Batch normalization in one op, by the batch's own statistics or by given ones, and its gradient.
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/math/functors.h"
#include "weft/ops/nn/channel_kernel.h"
#include "weft/ops/nn/given_norm.h"

namespace weft::ops::nn::batch_norm {
namespace {

constexpr int64_t kGrain = 16384;  // elements that one thread should at least get

// Images as [outer, channels, inner]; inner is 1 where the channels come last.
struct Layout {
  int64_t outer = 1;
  int64_t channels = 0;
  int64_t inner = 1;
  int64_t rest() const { return outer * inner; }
};

StatusOr<Layout> LayoutOf(const Shape& x, bool channels_first) {
  if (x.rank() != 4 && x.rank() != 5) {
    return InvalidArgument("input must be 4 or 5-dimensional, got ", x.ToString());
  }
  const int axis = channels_first ? 1 : x.rank() - 1;
  Layout at;
  for (int i = 0; i < x.rank(); ++i) {
    if (i == axis) {
      at.channels = x.dim(i);
    } else {
      (i < axis ? at.outer : at.inner) *= x.dim(i);
    }
  }
  return at;
}

// Calls visit(channel, element) for all elements of `outer` parts [begin, end), in memory's order.
template <typename Visit>
void ForElements(const Layout& at, int64_t begin, int64_t end, const Visit& visit) {
  int64_t element = begin * at.channels * at.inner;
  for (int64_t o = begin; o < end; ++o) {
    for (int64_t channel = 0; channel < at.channels; ++channel) {
      for (int64_t i = 0; i < at.inner; ++i) visit(channel, element++);
    }
  }
}

struct Options {
  double epsilon = 0;
  double factor = 1;  // weight of the batch in the running statistics
  bool channels_first = false;
  bool is_training = true;

  static StatusOr<Options> FromAttrs(const AttrMap& attrs) {
    Options o;
    WEFT_ASSIGN_OR_RETURN(const float epsilon, FindAttr<float>(attrs, "epsilon"));
    o.epsilon = epsilon;
    o.factor = FindAttrOr<float>(attrs, "exponential_avg_factor", 1.0f);
    WEFT_ASSIGN_OR_RETURN(const std::string format, FindAttr<std::string>(attrs, "data_format"));
    o.channels_first = format == "NCHW" || format == "NCDHW";
    WEFT_ASSIGN_OR_RETURN(o.is_training, FindAttr<bool>(attrs, "is_training"));
    return o;
  }
};

// Element i of a float or bfloat16 vector.
double At(const Tensor& tensor, int64_t i) {
  return tensor.dtype() == DType::kFloat
             ? static_cast<double>(tensor.data<float>()[i])
             : static_cast<double>(static_cast<float>(tensor.data<Bfloat16>()[i]));
}
void Put(Tensor* tensor, int64_t i, double value) {
  if (tensor->dtype() == DType::kFloat) {
    tensor->data<float>()[i] = static_cast<float>(value);
  } else {
    tensor->data<Bfloat16>()[i] = Bfloat16(static_cast<float>(value));
  }
}

using Sums = std::vector<double>;
using Floats = std::vector<float>;

Floats Narrow(const Sums& values) { return Floats(values.begin(), values.end()); }

// Rows of channels that lie side by side have loops of their own.
bool HasRows(const Layout& at, DType dtype) {
  return dtype == DType::kFloat && at.inner == 1 && at.outer > 0 && at.channels > 0;
}

// Calls make(first row, rows, a, b) for chunks of rows on all threads, where a and b get `channels`
// values, and then take(rows, a, b) with what was made, chunk by chunk.
template <typename Make, typename Take>
Status SumChunks(const KernelContext& c, const Layout& at, const Make& make, Take take) {
  const int64_t rows = RowsOfChunk(at.channels);
  const int64_t chunks = (at.outer + rows - 1) / rows;
  WEFT_ASSIGN_OR_RETURN(Tensor parts,
                        c.AllocateTemporary(DType::kFloat, Shape{chunks, 2, at.channels}));
  float* const made = parts.data<float>();
  const auto rows_of = [&](int64_t chunk) { return std::min(rows, at.outer - chunk * rows); };
  c.ParallelFor(chunks, std::max<int64_t>(1, kGrain / (rows * at.channels)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    float* const a = made + 2 * i * at.channels;
                    make(i * rows, rows_of(i), a, a + at.channels);
                  }
                });
  for (int64_t i = 0; i < chunks; ++i) {
    const float* const a = made + 2 * i * at.channels;
    take(rows_of(i), a, a + at.channels);
  }
  return absl::OkStatus();
}

// The mean and variance of float images. Chan, Golub and LeVeque, "Updating formulae and a pairwise
// algorithm for computing sample variances", 1979: a chunk's squares are taken around its own mean.
Status RowStatistics(const KernelContext& c, const Layout& at, const float* x, Sums* mean,
                     Sums* variance) {
  Sums spread(at.channels);  // of the chunks' means, as the sum of their squares
  WEFT_RETURN_IF_ERROR(SumChunks(
      c, at,
      [&](int64_t row, int64_t rows, float* sums, float* squares) {
        GetChannelFunctions().moments(x + row * at.channels, rows, at.channels, sums, squares);
      },
      [&, seen = int64_t{0}](int64_t rows, const float* sums, const float* squares) mutable {
        const double part = static_cast<double>(rows) / static_cast<double>(seen + rows);
        const double weight = part * static_cast<double>(seen);
        for (int64_t i = 0; i < at.channels; ++i) {
          const double step = static_cast<double>(sums[i]) / static_cast<double>(rows) - (*mean)[i];
          (*mean)[i] += step * part;
          spread[i] += static_cast<double>(squares[i]) + step * step * weight;
        }
        seen += rows;
      }));
  const auto count = static_cast<double>(at.outer);
  for (int64_t i = 0; i < at.channels; ++i) (*variance)[i] = spread[i] / count;
  return absl::OkStatus();
}

int64_t RowsOfShare(const Layout& at) {
  return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, at.channels * at.inner));
}

class BatchNormKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const Options options, Options::FromAttrs(c.call().attrs()));
    return std::make_unique<BatchNormKernel>(options);
  }
  explicit BatchNormKernel(const Options& options) : options_(options) {}

  Status Compute(KernelContext& c) override {
    const Tensor& x = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const Layout at, LayoutOf(x.shape(), options_.channels_first));
    WEFT_RETURN_IF_ERROR(CheckVector(c.input(1), at.channels, "scale"));
    WEFT_RETURN_IF_ERROR(CheckVector(c.input(2), at.channels, "offset"));
    const bool needs_old = !options_.is_training || options_.factor != 1;
    if (needs_old) {
      WEFT_RETURN_IF_ERROR(CheckVector(c.input(3), at.channels, "mean"));
      WEFT_RETURN_IF_ERROR(CheckVector(c.input(4), at.channels, "variance"));
    }
    Sums mean(at.channels), variance(at.channels);
    if (options_.is_training && HasRows(at, x.dtype())) {
      WEFT_RETURN_IF_ERROR(RowStatistics(c, at, x.data<float>(), &mean, &variance));
    } else if (options_.is_training) {
      VisitDType(x.dtype(), RealFloats(),
                 [&]<typename T>() { Statistics(at, x.data<T>(), &mean, &variance); });
    } else {
      for (int64_t i = 0; i < at.channels; ++i) {
        mean[i] = At(c.input(3), i);
        variance[i] = At(c.input(4), i);
      }
    }
    WEFT_RETURN_IF_ERROR(WriteStatistics(c, at, mean, variance));
    WEFT_ASSIGN_OR_RETURN(Tensor * y, c.AllocateOutput(0, x.shape()));
    Sums factor(at.channels), shift(at.channels);
    for (int64_t i = 0; i < at.channels; ++i) {
      factor[i] = At(c.input(1), i) / std::sqrt(variance[i] + options_.epsilon);
      shift[i] = At(c.input(2), i);
    }
    if (HasRows(at, x.dtype())) {
      const Floats m = Narrow(mean), f = Narrow(factor), s = Narrow(shift);
      c.ParallelFor(at.outer, RowsOfShare(at), [&](int64_t begin, int64_t end) {
        const int64_t first = begin * at.channels;
        GetChannelFunctions().normalize(x.data<float>() + first, m.data(), f.data(), s.data(),
                                        end - begin, at.channels, y->data<float>() + first);
      });
      return absl::OkStatus();
    }
    VisitDType(x.dtype(), RealFloats(), [&]<typename T>() {
      const T* in = x.data<T>();
      T* out = y->data<T>();
      c.ParallelFor(at.outer, RowsOfShare(at), [&](int64_t begin, int64_t end) {
        ForElements(at, begin, end, [&](int64_t ch, int64_t i) {
          const double centred = static_cast<double>(static_cast<Wide<T>>(in[i])) - mean[ch];
          out[i] = T(static_cast<Wide<T>>(centred * factor[ch] + shift[ch]));
        });
      });
    });
    return absl::OkStatus();
  }

 private:
  template <typename T>
  static void Statistics(const Layout& at, const T* x, Sums* mean, Sums* variance) {
    const auto count = static_cast<double>(at.rest());
    ForElements(at, 0, at.outer, [&](int64_t ch, int64_t i) {
      (*mean)[ch] += static_cast<double>(static_cast<Wide<T>>(x[i]));
    });
    for (double& m : *mean) m /= count;  // NaN for an empty batch
    ForElements(at, 0, at.outer, [&](int64_t ch, int64_t i) {
      const double d = static_cast<double>(static_cast<Wide<T>>(x[i])) - (*mean)[ch];
      (*variance)[ch] += d * d;
    });
    for (double& v : *variance) v /= count;
  }

  // Running statistics in outputs 1 and 2 (the variance without bias), the batch's own in 3 and 4.
  Status WriteStatistics(KernelContext& c, const Layout& at, const Sums& mean,
                         const Sums& variance) const {
    Tensor* outputs[4];
    for (int i = 0; i < 4; ++i) {
      WEFT_ASSIGN_OR_RETURN(outputs[i], c.AllocateOutput(i + 1, Shape{at.channels}));
    }
    const auto rest = static_cast<double>(at.rest());
    const double unbiased = options_.is_training ? rest / std::max(1.0, rest - 1) : 1;
    const double factor = options_.is_training ? options_.factor : 1;
    for (int64_t i = 0; i < at.channels; ++i) {
      const double old_mean = factor != 1 ? (1 - factor) * At(c.input(3), i) : 0;
      const double old_variance = factor != 1 ? (1 - factor) * At(c.input(4), i) : 0;
      Put(outputs[0], i, old_mean + factor * mean[i]);
      Put(outputs[1], i, old_variance + factor * unbiased * variance[i]);
      Put(outputs[2], i, mean[i]);
      Put(outputs[3], i, variance[i]);
      if (at.rest() > 0) continue;
      // Of an empty batch nothing is known, and its gradient needs nothing.
      for (const int running : {0, 1})
        Put(outputs[running], i, std::numeric_limits<double>::quiet_NaN());
      for (const int saved : {2, 3}) Put(outputs[saved], i, 0);
    }
    if (c.num_outputs() > 5) {  // what other devices keep for the gradient
      WEFT_ASSIGN_OR_RETURN(Tensor * unused, c.AllocateOutput(5, Shape()));
      Put(unused, 0, 0);
    }
    return absl::OkStatus();
  }

  const Options options_;
};

class BatchNormGradKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const Options options, Options::FromAttrs(c.call().attrs()));
    return std::make_unique<BatchNormGradKernel>(options);
  }
  explicit BatchNormGradKernel(const Options& options) : options_(options) {}

  Status Compute(KernelContext& c) override {
    const Tensor& dy = c.input(0);
    const Tensor& x = c.input(1);
    if (dy.shape() != x.shape()) {
      return InvalidArgument("x and y_backprop must have same shape, but x has shape ",
                             x.shape().ToString(), " and y_backprop has shape ",
                             dy.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const Layout at, LayoutOf(x.shape(), options_.channels_first));
    WEFT_RETURN_IF_ERROR(CheckVector(c.input(2), at.channels, "scale"));
    WEFT_RETURN_IF_ERROR(CheckVector(c.input(3), at.channels, "reserve_space_1"));
    WEFT_RETURN_IF_ERROR(CheckVector(c.input(4), at.channels, "reserve_space_2"));
    WEFT_ASSIGN_OR_RETURN(Tensor * dx, c.AllocateOutput(0, x.shape()));
    WEFT_ASSIGN_OR_RETURN(Tensor * scale_gradient, c.AllocateOutput(1, Shape{at.channels}));
    WEFT_ASSIGN_OR_RETURN(Tensor * offset_gradient, c.AllocateOutput(2, Shape{at.channels}));
    WEFT_RETURN_IF_ERROR(c.AllocateOutput(3, Shape{0}).status());
    WEFT_RETURN_IF_ERROR(c.AllocateOutput(4, Shape{0}).status());
    Pieces p(at.channels);
    for (int64_t i = 0; i < at.channels; ++i) {
      p.mean[i] = At(c.input(3), i);
      p.inverse[i] = 1 / std::sqrt(At(c.input(4), i) + options_.epsilon);
      p.factor[i] = At(c.input(2), i) * p.inverse[i];
    }
    if (HasRows(at, x.dtype())) {
      return RunRows(c, at, dy.data<float>(), x.data<float>(), dx->data<float>(), &p,
                     scale_gradient, offset_gradient);
    }
    VisitDType(x.dtype(), RealFloats(), [&]<typename T>() {
      Run(c, at, dy.data<T>(), x.data<T>(), dx->data<T>(), &p, scale_gradient, offset_gradient);
    });
    return absl::OkStatus();
  }

 private:
  // By channel. Of dy the sum, and that of its products with x - mean; Finish makes of them what
  // each element's gradient loses.
  struct Pieces {
    explicit Pieces(int64_t channels)
        : mean(channels), inverse(channels), factor(channels), sum(channels), product(channels) {}
    Sums mean, inverse, factor, sum, product;
  };

  // The gradients of scale and offset.
  void Finish(const Layout& at, Pieces* p, Tensor* scale_gradient, Tensor* offset_gradient) const {
    const double count = std::max<double>(1, static_cast<double>(at.rest()));
    // Given statistics do not depend on x.
    const double share = options_.is_training ? 1 / count : 0;
    for (int64_t i = 0; i < at.channels; ++i) {
      // What an empty batch was normalized by is no number.
      Put(scale_gradient, i, at.rest() > 0 ? p->product[i] * p->inverse[i] : 0);
      Put(offset_gradient, i, p->sum[i]);
      p->sum[i] *= share;
      p->product[i] *= share * p->inverse[i] * p->inverse[i];
    }
  }

  Status RunRows(const KernelContext& c, const Layout& at, const float* dy, const float* x,
                 float* dx, Pieces* p, Tensor* scale_gradient, Tensor* offset_gradient) const {
    const ChannelFunctions& functions = GetChannelFunctions();
    const Floats mean = Narrow(p->mean);
    WEFT_RETURN_IF_ERROR(SumChunks(
        c, at,
        [&](int64_t row, int64_t rows, float* sums, float* products) {
          const int64_t first = row * at.channels;
          functions.gradient_sums(dy + first, x + first, mean.data(), rows, at.channels, sums,
                                  products);
        },
        [&](int64_t, const float* sums, const float* products) {
          for (int64_t i = 0; i < at.channels; ++i) {
            p->sum[i] += static_cast<double>(sums[i]);
            p->product[i] += static_cast<double>(products[i]);
          }
        }));
    Finish(at, p, scale_gradient, offset_gradient);
    const Floats factor = Narrow(p->factor), sum = Narrow(p->sum), product = Narrow(p->product);
    c.ParallelFor(at.outer, RowsOfShare(at), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * at.channels;
      functions.gradient(dy + first, x + first, mean.data(), factor.data(), sum.data(),
                         product.data(), end - begin, at.channels, dx + first);
    });
    return absl::OkStatus();
  }

  template <typename T>
  void Run(const KernelContext& c, const Layout& at, const T* dy, const T* x, T* dx, Pieces* p,
           Tensor* scale_gradient, Tensor* offset_gradient) const {
    const auto wide = [](T value) { return static_cast<double>(static_cast<Wide<T>>(value)); };
    ForElements(at, 0, at.outer, [&](int64_t ch, int64_t i) {
      p->sum[ch] += wide(dy[i]);
      p->product[ch] += wide(dy[i]) * (wide(x[i]) - p->mean[ch]);
    });
    Finish(at, p, scale_gradient, offset_gradient);
    c.ParallelFor(at.outer, RowsOfShare(at), [&](int64_t begin, int64_t end) {
      ForElements(at, begin, end, [&](int64_t ch, int64_t i) {
        const double centred = wide(x[i]) - p->mean[ch];
        dx[i] = T(static_cast<Wide<T>>(p->factor[ch] *
                                       (wide(dy[i]) - p->sum[ch] - centred * p->product[ch])));
      });
    });
  }

  const Options options_;
};

Status ForwardShape(ShapeContext& c) {
  PartialShape x = c.input(0);
  if (x.known_rank() && x.rank() != 4 && x.rank() != 5) {
    return InvalidArgument("x must be 4 or 5-dimensional, got ", x.ToString());
  }
  PartialShape channels{-1};
  WEFT_ASSIGN_OR_RETURN(const std::string format, c.Attr<std::string>("data_format"));
  if (x.known_rank()) {
    const int axis = format == "NCHW" || format == "NCDHW" ? 1 : x.rank() - 1;
    channels = PartialShape{x.dim(axis)};
    for (const int i : {1, 2}) {
      WEFT_ASSIGN_OR_RETURN(channels, channels.MergeWith(c.input(i)));
    }
    x.SetDim(axis, channels.dim(0));
  }
  c.set_output(0, std::move(x));
  for (int i = 1; i < 5; ++i) c.set_output(i, channels);
  return absl::OkStatus();
}

Status BackwardShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape x, c.input(0).MergeWith(c.input(1)));
  WEFT_ASSIGN_OR_RETURN(PartialShape channels, c.WithRank(2, 1));
  c.set_output(0, std::move(x));
  c.set_output(1, channels);
  c.set_output(2, channels);
  c.set_output(3, PartialShape{0});
  c.set_output(4, PartialShape{0});
  return absl::OkStatus();
}

// The gradient op of the same version, by the batch's statistics or, outside training, the given
// ones.
Status BatchNormGradient(GradientContext& c) {
  if (!c.gradient(0)) return absl::OkStatus();
  const Node& node = c.node();
  WEFT_ASSIGN_OR_RETURN(const bool is_training, c.Attr<bool>("is_training"));
  const std::string version = node.op().substr(std::string("FusedBatchNorm").size());
  std::vector<Argument> inputs = {c.gradient(0), c.input(0), c.input(1),
                                  is_training ? c.output(3) : c.input(3),
                                  is_training ? c.output(4) : c.input(4)};
  if (version == "V3") inputs.push_back(c.output(5));
  AttrMap attrs;
  for (const char* name : {"epsilon", "data_format", "is_training"}) {
    if (const auto found = node.attrs().find(name); found != node.attrs().end())
      attrs.emplace(name, found->second);
  }
  Node* gradient =
      c.builder().AddNode(absl::StrCat("FusedBatchNormGrad", version), inputs, std::move(attrs));
  for (int i = 0; i < 3 && gradient != nullptr; ++i) c.set_input(i, Endpoint{gradient, i});
  return absl::OkStatus();
}

struct Version {
  const char* suffix;
  const char* x_types;     // of attribute T
  const char* statistics;  // the statistics' type: T or U
  const char* u_types;     // of attribute U, null if there is none
  const char* grad_u_types;
  const char* grad_scale;  // the type of the gradient op's scale
  const char* formats;
  bool has_reserve;
};

void AddForward(Catalogue& catalogue, const Version& v) {
  OpSpec spec(absl::StrCat("FusedBatchNorm", v.suffix));
  const std::string u = absl::StrCat(": ", v.statistics);
  spec.Doc(
          "Computes (x - mean) / sqrt(variance + epsilon) * scale + offset by channel.\n"
          "In training mean and variance are the batch's, and the running ones move toward them by "
          "exponential_avg_factor.")
      .Input("x: T");
  for (const char* name : {"scale", "offset", "mean", "variance"})
    spec.Input(absl::StrCat(name, u));
  spec.Output("y: T");
  for (const char* name : {"batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"}) {
    spec.Output(absl::StrCat(name, u));
  }
  if (v.has_reserve) spec.Output("reserve_space_3: U");
  spec.Attr(absl::StrCat("T: ", v.x_types));
  if (v.u_types != nullptr) spec.Attr(absl::StrCat("U: ", v.u_types));
  spec.Attr("epsilon: float = 0.0001")
      .Attr("exponential_avg_factor: float = 1.0")
      .Attr(absl::StrCat("data_format: ", v.formats, " = 'NHWC'"))
      .Attr("is_training: bool = true")
      .Shape(ForwardShape)
      .Gradient(BatchNormGradient)
      .Kernel(MakeKernel<BatchNormKernel>());
  catalogue.Add(std::move(spec));
}

void AddBackward(Catalogue& catalogue, const Version& v) {
  OpSpec spec(absl::StrCat("FusedBatchNormGrad", v.suffix));
  const std::string u = absl::StrCat(": ", v.statistics);
  spec.Doc("The gradients of FusedBatchNorm's x, scale and offset.")
      .Input("y_backprop: T")
      .Input("x: T");
  spec.Input(absl::StrCat("scale: ", v.grad_scale))
      .Input(absl::StrCat("reserve_space_1", u))
      .Input(absl::StrCat("reserve_space_2", u));
  if (v.has_reserve) spec.Input("reserve_space_3: U");
  spec.Output("x_backprop: T");
  for (const char* name : {"scale_backprop", "offset_backprop"}) spec.Output(absl::StrCat(name, u));
  const int first_reserve = v.has_reserve ? 4 : 3;
  for (const int reserve : {first_reserve, first_reserve + 1}) {
    spec.Output(absl::StrCat("reserve_space_", reserve, u));
  }
  spec.Attr(absl::StrCat("T: ", v.x_types));
  if (v.grad_u_types != nullptr) spec.Attr(absl::StrCat("U: ", v.grad_u_types));
  spec.Attr("epsilon: float = 0.0001")
      .Attr(absl::StrCat("data_format: ", v.formats, " = 'NHWC'"))
      .Attr("is_training: bool = true")
      .Shape(BackwardShape)
      .Kernel(MakeKernel<BatchNormGradKernel>());
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  constexpr char kImages[] = "{'NHWC', 'NCHW'}";
  constexpr char kVolumes[] = "{'NHWC', 'NCHW', 'NDHWC', 'NCDHW'}";
  for (const Version& v : {Version{"", "{float}", "T", nullptr, nullptr, "T", kImages, false},
                           Version{"V2", "{half, bfloat16, float}", "U", "{float}", "{float}",
                                   "float", kImages, false},
                           Version{"V3", "{half, bfloat16, float}", "U", "{bfloat16, float}",
                                   "{float}", "float", kVolumes, true}}) {
    AddForward(catalogue, v);
    AddBackward(catalogue, v);
  }
}

}  // namespace weft::ops::nn::batch_norm
