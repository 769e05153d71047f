// SPDX-License-Identifier: Apache-2.0
// Fourier transforms over the last one, two or three dimensions.
#include <algorithm>
#include <string>
#include <unsupported/Eigen/FFT>
#include <vector>

#include "weft/ops/gradients.h"
#include "weft/ops/linalg/batch_kernel.h"
#include "weft/ops/linalg/eigen.h"

namespace weft::ops::linalg::fft {
namespace {

enum class Direction { kForward, kInverse };

// Transforms each line of `values`, of sizes `dims`, along dimension `axis`, in place.
template <typename T>
void TransformAxis(const KernelContext& c, absl::Span<const int64_t> dims, int axis,
                   Direction direction, std::complex<T>* values) {
  int64_t inner = 1, outer = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (static_cast<int>(d) < axis) outer *= dims[d];
    if (static_cast<int>(d) > axis) inner *= dims[d];
  }
  const int64_t n = dims[axis];
  if (n <= 1) return;
  c.ParallelFor(outer * inner, std::max<int64_t>(1, (1 << 14) / n),
                [&](int64_t begin, int64_t end) {
                  Eigen::FFT<T> transform;
                  std::vector<std::complex<T>> line(static_cast<size_t>(n)), found(line.size());
                  for (int64_t i = begin; i < end; ++i) {
                    std::complex<T>* at = values + (i / inner) * n * inner + i % inner;
                    for (int64_t k = 0; k < n; ++k) line[k] = at[k * inner];
                    if (direction == Direction::kForward) {
                      transform.fwd(found.data(), line.data(), n);
                    } else {
                      transform.inv(found.data(), line.data(), n);
                    }
                    for (int64_t k = 0; k < n; ++k) at[k * inner] = found[k];
                  }
                });
}

// Copies `from` to `to`, cut or filled with zeros to `sizes` in the last dimensions.
template <typename From, typename To>
void CopyCut(const From* from, absl::Span<const int64_t> from_dims, To* to,
             absl::Span<const int64_t> to_dims) {
  if (from_dims.empty()) {
    if constexpr (std::is_constructible_v<To, From>) {
      *to = static_cast<To>(*from);
    } else {
      *to = from->real();
    }
    return;
  }
  int64_t from_row = 1, to_row = 1;
  for (size_t d = 1; d < from_dims.size(); ++d) {
    from_row *= from_dims[d];
    to_row *= to_dims[d];
  }
  for (int64_t i = 0; i < to_dims[0]; ++i) {
    if (i < from_dims[0]) {
      CopyCut(from + i * from_row, from_dims.subspan(1), to + i * to_row, to_dims.subspan(1));
    } else {
      std::fill_n(to + i * to_row, to_row, To(0));
    }
  }
}

class FourierKernel : public OpKernel {
 public:
  // The rank is in the op's name: FFT, FFT2D, FFT3D.
  explicit FourierKernel(KernelConstruction& c)
      : rank_(c.op().ends_with("2D")   ? 2
              : c.op().ends_with("3D") ? 3
                                       : 1),
        direction_(c.op().find("IFFT") != std::string::npos ||
                           c.op().find("IRFFT") != std::string::npos
                       ? Direction::kInverse
                       : Direction::kForward) {}

 protected:
  Status CheckRank(const Tensor& input) const {
    if (input.rank() >= rank_) return absl::OkStatus();
    return InvalidArgument("Input must have rank of at least ", rank_,
                           " but got: ", input.shape().ToString());
  }
  // What fft_length (input 1) asks for.
  StatusOr<Dims> Lengths(const KernelContext& c) const {
    const Tensor& lengths = c.input(1);
    if (!lengths.shape().IsVector() || lengths.dim(0) != rank_) {
      return InvalidArgument("fft_length must have shape [", rank_, "], got ",
                             lengths.shape().ToString());
    }
    Dims sizes;
    for (const int32_t size : lengths.span<int32_t>()) {
      if (size < 0) return InvalidArgument("fft_length must be >= 0, but got ", size);
      sizes.push_back(size);
    }
    return sizes;
  }
  // InvalidArgument where the input is shorter than `sizes`; an input without elements is not.
  Status CheckLengths(const Tensor& input, const Dims& sizes) const {
    for (int d = 0; d < rank_; ++d) {
      const int64_t size = input.dim(input.rank() - rank_ + d);
      if (size == 0 || size >= sizes[d]) continue;
      return InvalidArgument("Input dimension ", input.rank() - rank_ + d,
                             " must have length of at least ", sizes[d], " but got: ", size);
    }
    return absl::OkStatus();
  }
  template <typename T>
  void Transform(const KernelContext& c, const Shape& shape, Direction direction,
                 std::complex<T>* values, int axes_left_out = 0) const {
    for (int d = axes_left_out; d < rank_; ++d) {
      TransformAxis<T>(c, shape.dims(), shape.rank() - 1 - d, direction, values);
    }
  }

  const int rank_;
  const Direction direction_;
};

template <typename T>
class ComplexKernel final : public FourierKernel {
 public:
  using FourierKernel::FourierKernel;
  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    WEFT_RETURN_IF_ERROR(CheckRank(input));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, input.shape()));
    if (input.num_elements() == 0) return absl::OkStatus();
    std::copy_n(input.data<std::complex<T>>(), input.num_elements(), out->data<std::complex<T>>());
    Transform<T>(c, input.shape(), direction_, out->data<std::complex<T>>());
    return absl::OkStatus();
  }
};

// Real values in, the half of the spectrum that tells the other out.
template <typename T>
class RealKernel final : public FourierKernel {
 public:
  using FourierKernel::FourierKernel;
  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    WEFT_RETURN_IF_ERROR(CheckRank(input));
    WEFT_ASSIGN_OR_RETURN(const Dims sizes, Lengths(c));
    WEFT_RETURN_IF_ERROR(CheckLengths(input, sizes));
    Shape full = input.shape();
    for (int d = 0; d < rank_; ++d) full.SetDim(full.rank() - rank_ + d, sizes[d]);
    Shape half = full;
    const int64_t last = sizes.back();
    half.SetDim(half.rank() - 1, last == 0 ? 0 : last / 2 + 1);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, half));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (input.num_elements() == 0) {
      std::fill_n(out->data<std::complex<T>>(), out->num_elements(), std::complex<T>(0));
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(Tensor work, c.AllocateTemporary(DTypeOf<std::complex<T>>, full));
    auto* values = work.data<std::complex<T>>();
    CopyCut(input.data<T>(), input.shape().dims(), values, full.dims());
    Transform<T>(c, full, Direction::kForward, values);
    CopyCut(values, full.dims(), out->data<std::complex<T>>(), half.dims());
    return absl::OkStatus();
  }
};

template <typename T>
class InverseRealKernel final : public FourierKernel {
 public:
  using FourierKernel::FourierKernel;
  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    WEFT_RETURN_IF_ERROR(CheckRank(input));
    WEFT_ASSIGN_OR_RETURN(const Dims sizes, Lengths(c));
    const int64_t last = sizes.back();
    Dims needed = sizes;
    needed.back() = last == 0 ? 0 : last / 2 + 1;
    WEFT_RETURN_IF_ERROR(CheckLengths(input, needed));
    Shape full = input.shape();
    for (int d = 0; d < rank_; ++d) full.SetDim(full.rank() - rank_ + d, sizes[d]);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, full));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (input.num_elements() == 0) {
      std::fill_n(out->data<T>(), out->num_elements(), T(0));
      return absl::OkStatus();
    }
    Shape half = full;
    half.SetDim(half.rank() - 1, needed.back());
    WEFT_ASSIGN_OR_RETURN(Tensor cut, c.AllocateTemporary(DTypeOf<std::complex<T>>, half));
    auto* values = cut.data<std::complex<T>>();
    CopyCut(input.data<std::complex<T>>(), input.shape().dims(), values, half.dims());
    // The other dimensions first; then each line is real, and its second half the first's mirror.
    Transform<T>(c, half, Direction::kInverse, values, 1);
    WEFT_ASSIGN_OR_RETURN(Tensor whole, c.AllocateTemporary(DTypeOf<std::complex<T>>, full));
    auto* lines = whole.data<std::complex<T>>();
    const int64_t kept = needed.back();
    for (int64_t row = 0; row < full.num_elements() / last; ++row) {
      const std::complex<T>* from = values + row * kept;
      std::complex<T>* to = lines + row * last;
      std::copy_n(from, kept, to);
      to[0] = to[0].real();
      if (last % 2 == 0) to[last / 2] = to[last / 2].real();
      for (int64_t k = kept; k < last; ++k) to[k] = std::conj(from[last - k]);
    }
    TransformAxis<T>(c, full.dims(), full.rank() - 1, Direction::kInverse, lines);
    for (int64_t i = 0; i < full.num_elements(); ++i) out->data<T>()[i] = lines[i].real();
    return absl::OkStatus();
  }
};

int RankOf(const ShapeContext& c) {
  return c.num_inputs() > 1 && c.input(1).rank() == 1 ? static_cast<int>(c.input(1).dim(0)) : -1;
}

Status RealShape(ShapeContext& c, bool halves) {
  const PartialShape& input = c.input(0);
  const int rank = RankOf(c);
  if (!input.known_rank() || rank < 0 || input.rank() < rank) return shapes::Unknown(c);
  PartialShape shape = input;
  for (int d = 0; d < rank; ++d) {
    const bool is_last = d == rank - 1;
    int64_t size = c.constant(1) == nullptr ? -1 : c.constant(1)->data<int32_t>()[d];
    if (halves && is_last && size > 0) size = size / 2 + 1;
    shape.SetDim(shape.rank() - rank + d, std::max<int64_t>(-1, size));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Sizes of the last `rank` dimensions of a shape.
Endpoint LastSizes(GradientContext& c, Endpoint shape, int rank) {
  const Endpoint front =
      c.Op("Sub", {c.Op("Shape", {shape}), c.builder().Constant(Tensor::Vector<int32_t>({rank}))});
  return c.Op("Slice", {shape, front, c.builder().Constant(Tensor::Vector<int32_t>({-1}))});
}

// A transform's adjoint is the other one, times or divided by the number of elements.
Status ComplexGradient(GradientContext& c, const char* op, int rank, bool forward) {
  GraphBuilder& b = c.builder();
  const Endpoint sizes = LastSizes(c, c.Op("Shape", {c.gradient()}), rank);
  const Endpoint count = c.Op("Cast", {c.Op("Prod", {sizes, b.Scalar<int32_t>(0)})},
                              {{"DstT", c.node().output_type(0).dtype}});
  c.set_input(0, c.Op(forward ? "Mul" : "Div", {c.Op(op, {c.gradient()}), count}));
  return absl::OkStatus();
}

// `x` cut or filled with zeros behind to `shape`, of as many dimensions.
Endpoint FitTo(GradientContext& c, Endpoint x, Endpoint shape) {
  const Endpoint sizes = c.Op("Minimum", {c.Op("Shape", {x}), shape});
  const Endpoint cut = c.Op("Slice", {x, c.Op("ZerosLike", {shape}), sizes});
  const Endpoint missing = c.Op("Sub", {shape, sizes});
  const Endpoint pads =
      c.Op("Pack", {std::vector<Endpoint>{c.Op("ZerosLike", {missing}), missing}}, {{"axis", 1}});
  return c.Op("Pad", {cut, pads});
}

// The numbers that the output leaves out count for nothing: the gradient, filled up with zeros for
// them, goes back as through a complex transform.
Status RealGradient(GradientContext& c, int rank) {
  const DType real = TypeOf(c.input(0)), complex = TypeOf(c.output(0));
  const Endpoint input_shape = c.Op("Shape", {c.input(0)});
  const Endpoint front =
      c.Op("Slice", {input_shape, c.builder().Constant(Tensor::Vector<int32_t>({0})),
                     c.Op("Sub", {c.Op("Shape", {input_shape}),
                                  c.builder().Constant(Tensor::Vector<int32_t>({rank}))})});
  const Endpoint full =
      c.Op("ConcatV2", {std::vector<Endpoint>{front, c.input(1)}, c.builder().Scalar<int32_t>(0)});
  const Endpoint filled = FitTo(c, c.gradient(), full);
  const std::string op = absl::StrCat("IFFT", rank == 1 ? "" : absl::StrCat(rank, "D"));
  const Endpoint back =
      c.Op("Real", {c.Op(op, {filled}, {{"Tcomplex", complex}})}, {{"Tout", real}});
  const Endpoint count =
      c.Op("Cast", {c.Op("Prod", {c.input(1), c.builder().Scalar<int32_t>(0)})}, {{"DstT", real}});
  c.set_input(0, FitTo(c, c.Op("Mul", {back, count}), input_shape));
  return absl::OkStatus();
}

// Each number of the input but the first and, for even lengths, the last stands for two.
Status InverseRealGradient(GradientContext& c, int rank) {
  GraphBuilder& b = c.builder();
  const DType real = TypeOf(c.output(0)), complex = TypeOf(c.input(0));
  const std::string op = absl::StrCat("RFFT", rank == 1 ? "" : absl::StrCat(rank, "D"));
  const Endpoint forward = c.Op(op, {c.gradient(), c.input(1)}, {{"Tcomplex", complex}});
  const Endpoint last = c.Op("Sum", {LastSizes(c, c.input(1), 1), b.Scalar<int32_t>(0)});
  const Endpoint places =
      c.Op("Range",
           {b.Scalar<int32_t>(0),
            c.Op("AddV2", {c.Op("FloorDiv", {last, b.Scalar<int32_t>(2)}), b.Scalar<int32_t>(1)}),
            b.Scalar<int32_t>(1)});
  const Endpoint twice = c.Op("Mul", {places, b.Scalar<int32_t>(2)});
  const Endpoint is_single = c.Op(
      "LogicalOr", {c.Op("Equal", {places, b.Scalar<int32_t>(0)}), c.Op("Equal", {twice, last})});
  const Endpoint weights =
      c.Op("Cast", {c.Op("SelectV2", {is_single, b.Scalar<int32_t>(1), b.Scalar<int32_t>(2)})},
           {{"DstT", real}});
  const Endpoint count =
      c.Op("Cast", {c.Op("Prod", {c.input(1), b.Scalar<int32_t>(0)})}, {{"DstT", real}});
  const Endpoint factors = c.Op("Cast", {c.Op("RealDiv", {weights, count})}, {{"DstT", complex}});
  c.set_input(0, FitTo(c, c.Op("Mul", {forward, factors}), c.Op("Shape", {c.input(0)})));
  return absl::OkStatus();
}

template <template <typename> class Kernel>
void AddKernels(OpSpec& spec, bool real) {
  const auto add = [&]<typename T>() {
    KernelDef def{.types = {{"Tcomplex", DTypesOf<std::complex<T>>()}},
                  .factory = MakeKernel<Kernel<T>>()};
    if (real) def.types["Treal"] = DTypesOf<T>();
    spec.Kernel(std::move(def));
  };
  add.template operator()<float>();
  add.template operator()<double>();
}

void AddRank(Catalogue& catalogue, const std::string& suffix, int rank) {
  const std::string dims =
      rank == 1 ? "the last dimension" : absl::StrCat("the last ", rank, " dimensions");
  for (const bool forward : {true, false}) {
    OpSpec spec(absl::StrCat(forward ? "FFT" : "IFFT", suffix));
    const std::string other = absl::StrCat(forward ? "IFFT" : "FFT", suffix);
    spec.Doc(absl::StrCat(forward ? "The Fourier transform over " : "Undoes the transform over ",
                          dims, "."))
        .Input("input: Tcomplex")
        .Output("output: Tcomplex")
        .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64")
        .Shape([rank](ShapeContext& c) -> Status {
          WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.WithRankAtLeast(0, rank));
          c.set_output(0, std::move(shape));
          return absl::OkStatus();
        })
        .Gradient([other, rank, forward](GradientContext& c) {
          return ComplexGradient(c, other.c_str(), rank, forward);
        });
    AddKernels<ComplexKernel>(spec, false);
    catalogue.Add(std::move(spec));
  }
  OpSpec real(absl::StrCat("RFFT", suffix)), inverse(absl::StrCat("IRFFT", suffix));
  real.Doc(absl::StrCat("The Fourier transform of real values over ", dims,
                        ", cut or filled with zeros to fft_length.\nOf the last dimension, only "
                        "the fft_length / 2 + 1 numbers that tell the others."));
  inverse.Doc(absl::StrCat("The real values of which RFFT", suffix,
                           " gives the input.\nfft_length says how many."));
  real.Input("input: Treal").Input("fft_length: int32").Output("output: Tcomplex");
  inverse.Input("input: Tcomplex").Input("fft_length: int32").Output("output: Treal");
  for (OpSpec* spec : {&real, &inverse}) {
    spec->HostInput("fft_length")
        .Attr("Treal: {float, double} = DT_FLOAT")
        .Attr("Tcomplex: {complex64, complex128} = DT_COMPLEX64");
  }
  // TensorFlow has none for three dimensions.
  if (rank < 3) {
    real.Gradient([rank](GradientContext& c) { return RealGradient(c, rank); });
    inverse.Gradient([rank](GradientContext& c) { return InverseRealGradient(c, rank); });
  } else {
    real.NoGradient();
    inverse.NoGradient();
  }
  real.Shape([](ShapeContext& c) { return RealShape(c, true); });
  inverse.Shape([](ShapeContext& c) { return RealShape(c, false); });
  AddKernels<RealKernel>(real, true);
  AddKernels<InverseRealKernel>(inverse, true);
  catalogue.Add(std::move(real));
  catalogue.Add(std::move(inverse));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddRank(catalogue, "", 1);
  AddRank(catalogue, "2D", 2);
  AddRank(catalogue, "3D", 3);
}

}  // namespace weft::ops::linalg::fft
