// SPDX-License-Identifier: Apache-2.0
// Patches of images and volumes, each laid flat into channels.
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/nn/volume_kernel.h"

namespace weft::ops::nn::patches {
namespace {

// Images are volumes of depth 1.
struct Patches {
  VolumeShape shape;
  int64_t taps() const { return shape.window[0] * shape.window[1] * shape.window[2]; }
};

// Attributes of images as those of a window over volumes.
StatusOr<Window> WindowOf(const AttrMap& attrs, bool is_volume) {
  AttrMap wide = attrs;
  for (const auto& [from, to] :
       {std::pair{"ksizes", "ksize"}, {"strides", "strides"}, {"rates", "dilations"}}) {
    if (!attrs.contains(from)) continue;
    WEFT_ASSIGN_OR_RETURN(auto values, FindAttr<AttrValue::IntList>(attrs, from));
    const size_t rank = is_volume ? 5 : 4;
    if (values.size() != rank || values.front() != 1 || values.back() != 1) {
      return Unimplemented("Only support ", from, " across space: ", rank,
                           " values of which the first and the last are 1");
    }
    if (!is_volume) values.insert(values.begin() + 1, 1);
    wide[to] = std::move(values);
  }
  return Window::FromAttrs(wide, 5);
}

StatusOr<Patches> PatchesOf(const Window& w, const Shape& in) {
  Dims dims(in.dims().begin(), in.dims().end());
  if (dims.size() == 4) dims.insert(dims.begin() + 1, 1);
  WEFT_ASSIGN_OR_RETURN(const Shape volume, Shape::Make(dims));
  Patches p;
  WEFT_ASSIGN_OR_RETURN(p.shape, VolumeShapeOf(w, volume, {w.size[1], w.size[2], w.size[3]}));
  WEFT_ASSIGN_OR_RETURN(int64_t channels, MultiplySizes(w.size[1], w.size[2]));
  WEFT_ASSIGN_OR_RETURN(channels, MultiplySizes(channels, w.size[3]));
  WEFT_ASSIGN_OR_RETURN(p.shape.out_channels, MultiplySizes(channels, volume.dim(4)));
  return p;
}

class PatchesKernel final : public OpKernel {
 public:
  PatchesKernel(Window window, bool is_volume)
      : window_(std::move(window)), is_volume_(is_volume) {}

  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    const bool is_volume = c.op() == "ExtractVolumePatches";
    WEFT_ASSIGN_OR_RETURN(Window window, WindowOf(c.call().attrs(), is_volume));
    return std::make_unique<PatchesKernel>(std::move(window), is_volume);
  }

  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    const int rank = is_volume_ ? 5 : 4;
    if (in.rank() != rank) {
      return InvalidArgument("input must be ", rank, "-dimensional", in.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const Patches p, PatchesOf(window_, in.shape()));
    const VolumeShape& s = p.shape;
    Dims dims = {s.batch, s.out[0], s.out[1], s.out[2], s.out_channels};
    if (!is_volume_) dims.erase(dims.begin() + 1);
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    VisitElement(in.dtype(), [&]<typename T>() {
      if constexpr (std::is_trivially_copyable_v<T>) {
        const int64_t rows = s.batch * s.out[0] * s.out[1];
        c.ParallelFor(rows, 16, [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            CopyRow(s, row, in.bits<T>(), out->bits<T>());
          }
        });
      }
    });
    return absl::OkStatus();
  }

 private:
  // All patches of one line of output pixels.
  template <typename T>
  static void CopyRow(const VolumeShape& s, int64_t row, const T* in, T* out) {
    const int64_t n = row / (s.out[0] * s.out[1]);
    const int64_t top = row % s.out[1] * s.strides[1] - s.pad[1];
    const int64_t front = row / s.out[1] % s.out[0] * s.strides[0] - s.pad[0];
    T* to = out + row * s.out[2] * s.out_channels;
    for (int64_t at = 0; at < s.out[2]; ++at) {
      const int64_t left = at * s.strides[2] - s.pad[2];
      for (int64_t a = 0; a < s.window[0]; ++a) {
        const int64_t z = front + a * s.dilations[0];
        for (int64_t b = 0; b < s.window[1]; ++b) {
          const int64_t y = top + b * s.dilations[1];
          for (int64_t d = 0; d < s.window[2]; ++d, to += s.in_channels) {
            const int64_t x = left + d * s.dilations[2];
            if (z < 0 || z >= s.in[0] || y < 0 || y >= s.in[1] || x < 0 || x >= s.in[2]) {
              std::fill_n(to, s.in_channels, T{});
            } else {
              const int64_t from = ((n * s.in[0] + z) * s.in[1] + y) * s.in[2] + x;
              std::copy_n(in + from * s.in_channels, s.in_channels, to);
            }
          }
        }
      }
    }
  }

  const Window window_;
  const bool is_volume_;
};

Status PatchesShape(ShapeContext& c, bool is_volume) {
  WEFT_ASSIGN_OR_RETURN(PartialShape out, c.WithRank(0, is_volume ? 5 : 4));
  WEFT_ASSIGN_OR_RETURN(const Window w, WindowOf(c.attrs(), is_volume));
  const int last = out.rank() - 1, first_axis = is_volume ? 1 : 2;
  int64_t channels = out.dim(last);
  for (int axis = first_axis; axis <= 3; ++axis) {
    const int64_t size = w.size[static_cast<size_t>(axis)];
    const int at = axis - first_axis + 1;
    WEFT_ASSIGN_OR_RETURN(const int64_t places, OutputSize(w, axis, out.dim(at), size));
    out.SetDim(at, places);
    if (channels >= 0) {
      WEFT_ASSIGN_OR_RETURN(channels, MultiplySizes(channels, size));
    }
  }
  out.SetDim(last, channels);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// Each element's gradient is the sum over the places that it was copied to: those are found by
// taking the patches of the elements' own numbers, counted from 1, for 0 stands for what lies
// outside.
Status PatchesGradient(GradientContext& c) {
  const bool is_volume = c.node().op() == "ExtractVolumePatches";
  GraphBuilder& b = c.builder();
  const auto vector = [&](std::initializer_list<int64_t> values) {
    return b.Constant(Tensor::Vector<int64_t>(values));
  };
  const auto join = [&](std::vector<Endpoint> parts) {
    return c.Op("ConcatV2", {std::move(parts), b.Scalar<int32_t>(0)});
  };
  const int64_t last = is_volume ? 4 : 3;
  const Endpoint shape = c.Op("Shape", {c.input(0)}, {{"out_type", DType::kInt64}});
  const Endpoint batch = c.Op("Slice", {shape, vector({0}), vector({1})});
  const Endpoint sides = c.Op("Slice", {shape, vector({1}), vector({last - 1})});
  const Endpoint channels = c.Op("Slice", {shape, vector({last}), vector({1})});
  const Endpoint count = c.Op("Prod", {sides, b.Constant(Tensor::Vector<int32_t>({0}))});
  const Endpoint one = b.Scalar<int64_t>(1);
  const Endpoint after = c.Op("AddV2", {count, one});
  const Endpoint numbers =
      c.Op("Reshape", {c.Op("Range", {one, after, one}), join({vector({1}), sides, vector({1})})});
  const AttrMap attrs = CopyAttrs(c.node().attrs(), {"ksizes", "strides", "rates", "padding"});
  const Endpoint copied{b.AddNode(c.node().op(), {numbers}, attrs), 0};
  const Endpoint sources = c.Op("Reshape", {copied, vector({-1})});
  // Rows [place of the patches' elements], columns [batch and channel]: summed by source.
  const Endpoint turned = b.Constant(Tensor::Vector<int32_t>({1, 0, 2}));
  const Endpoint by_place = c.Op("Reshape", {c.gradient(), join({batch, vector({-1}), channels})});
  const Endpoint rows = c.Op("Transpose", {by_place, turned});
  const Endpoint sums = c.Op("UnsortedSegmentSum", {rows, sources, after});
  const Endpoint inside = c.Op("Slice", {sums, vector({1, 0, 0}), vector({-1, -1, -1})});
  c.set_input(0, c.Op("Reshape", {c.Op("Transpose", {inside, turned}), shape}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("ExtractImagePatches")
          .Doc("Patches of images [batch, height, width, channels], each laid flat into channels.")
          .Input("images: T")
          .Output("patches: T")
          .Attr("ksizes: list(int) >= 4")
          .Attr("strides: list(int) >= 4")
          .Attr("rates: list(int) >= 4")
          .Attr("T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, "
                "uint32, uint64, complex64, complex128, bool}")
          .Attr("padding: {'SAME', 'VALID'}")
          .Shape([](ShapeContext& c) { return PatchesShape(c, false); })
          .Gradient(PatchesGradient)
          .Kernel(MakeKernel<PatchesKernel>()));
  catalogue.Add(OpSpec("ExtractVolumePatches")
                    .Doc("Patches of volumes [batch, depth, height, width, channels], each laid "
                         "flat into channels.")
                    .Input("input: T")
                    .Output("patches: T")
                    .Attr("ksizes: list(int) >= 5")
                    .Attr("strides: list(int) >= 5")
                    .Attr("T: realnumbertype")
                    .Attr("padding: {'SAME', 'VALID'}")
                    .Shape([](ShapeContext& c) { return PatchesShape(c, true); })
                    .Gradient(PatchesGradient)
                    .Kernel(MakeKernel<PatchesKernel>()));
}

}  // namespace weft::ops::nn::patches
