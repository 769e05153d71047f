// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/conv_lstm.h"

#include <utility>
#include <vector>

#include "weft/estimator/activation.h"
#include "weft/estimator/graph_writing.h"
#include "weft/estimator/kernel_fields.h"
#include "weft/estimator/layer_classes.h"
#include "weft/estimator/running_states.h"
#include "weft/estimator/scan.h"
#include "weft/estimator/window.h"

namespace weft::estimator {
namespace {

struct ConvLstmSettings {
  int64_t filters = 1;
  Sizes kernel_size = 1;
  ConvLstmOptions o;
};

Endpoint TimeFirst(GraphBuilder& b, Endpoint x) { return TransposeTo(b, x, {1, 0, 2}); }

// Steps of one size have another 1 before it throughout, so that their convolutions are 2-D ones.
template <int kRank>
class ConvLstmLayer final : public Layer {
 public:
  ConvLstmLayer() = default;
  explicit ConvLstmLayer(ConvLstmSettings settings) : s_(std::move(settings)) {}
  const char* class_name() const override {
    return kRank == 1 ? "ConvLSTM1D" : kRank == 2 ? "ConvLSTM2D" : "ConvLSTM3D";
  }

  void Fields(ConfigFields& f) override {
    f.Field("filters", s_.filters);
    f.Field("kernel_size", s_.kernel_size);
    f.Field("strides", s_.o.strides);
    f.Field("padding", s_.o.padding);
    f.Fixed("data_format", "channels_last");
    f.Field("dilation_rate", s_.o.dilation_rate);
    CellFields(f, s_.o);
    SequenceFields(f, s_.o);
    f.Activation("recurrent_activation", s_.o.recurrent_activation);
    f.Field("unit_forget_bias", s_.o.unit_forget_bias);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    GraphBuilder& b = call.b();
    Endpoint x = in[0].tensor;
    if (!call.CheckRank(x, kRank + 3)) return {};
    const PartialShape shape = b.ShapeOf(x);
    for (int axis = 2; axis < shape.rank(); ++axis) {
      if (shape.dim(axis) >= 0) continue;
      call.Fail(InvalidArgument("expected sizes that are known but the batch and the time, got ",
                                shape.ToString()));
      return {};
    }
    const StatusOr<std::string> padding = PaddingAttr(s_.o.padding);
    const StatusOr<std::vector<int64_t>> kernel_size = s_.kernel_size.ForAxes(kRank, "kernel_size");
    const StatusOr<std::vector<int64_t>> strides = s_.o.strides.ForAxes(kRank, "strides");
    const StatusOr<std::vector<int64_t>> dilations =
        s_.o.dilation_rate.ForAxes(kRank, "dilation_rate");
    for (const Status& status :
         {padding.status(), kernel_size.status(), strides.status(), dilations.status()}) {
      if (!status.ok()) return call.Fail(status), std::vector<Value>();
    }
    if (s_.filters < 1)
      return call.Fail(InvalidArgument("filters is ", s_.filters)), std::vector<Value>();
    const InnerLayer cell(call, "conv_lstm_cell", "cell");
    const int64_t channels = shape.dim(kRank + 2), gates = 4 * s_.filters;
    const auto with_sizes = [&](int64_t from, int64_t to) {
      Shape whole;
      for (const int64_t size : *kernel_size) whole.AddDim(size);
      whole.AddDim(from);
      whole.AddDim(to);
      return whole;
    };
    const Endpoint kernel = call.WeightOf("kernel", with_sizes(channels, gates), KernelOf(s_.o));
    const Endpoint recurrent =
        call.WeightOf("recurrent_kernel", with_sizes(s_.filters, gates), RecurrentOf(s_.o));
    const Endpoint bias = s_.o.use_bias ? Bias(call, gates) : Endpoint();
    if (!b.ok()) return {};
    // All steps' convolutions of the inputs at once.
    std::vector<int64_t> dims = {-1};
    if (kRank == 1) dims.push_back(1);
    for (int axis = 2; axis < shape.rank(); ++axis) dims.push_back(shape.dim(axis));
    Endpoint steps = b.Op(kConv, {ReshapeTo(b, x, dims), Flat(b, kernel)},
                          {{"strides", WholeWindow(*strides)},
                           {"padding", *padding},
                           {"dilations", WholeWindow(*dilations)}});
    if (bias) steps = b.Op("AddV2", {steps, bias});
    if (!b.ok()) return {};
    const PartialShape made = b.ShapeOf(steps);
    std::vector<int64_t> places;
    for (int axis = 1; axis + 1 < made.rank(); ++axis) places.push_back(made.dim(axis));
    return Run(call, x, in[0].mask, steps, Flat(b, recurrent), places);
  }

 private:
  static constexpr const char* kConv = kRank == 3 ? "Conv3D" : "Conv2D";

  static Endpoint Flat(GraphBuilder& b, Endpoint kernel) {
    return kRank == 1 ? ExpandDim(b, kernel, 0) : kernel;
  }

  Endpoint Bias(LayerCall& call, int64_t gates) const {
    WeightOptions options = BiasOf(s_.o);
    if (s_.o.unit_forget_bias) {
      options.first = [filters = s_.filters](GraphBuilder& b, DType dtype, const Shape&) {
        const auto filled = [&](int64_t size, double value) {
          return train::Constant(value)(b, dtype, Shape{size});
        };
        return Concat(b, {filled(filters, 0), filled(filters, 1), filled(2 * filters, 0)}, 0);
      };
    }
    return call.WeightOf("bias", Shape{gates}, options);
  }

  // `steps`: [batch * time, sizes..., gates].
  std::vector<Value> Run(LayerCall& call, Endpoint x, Endpoint mask, Endpoint steps,
                         Endpoint recurrent, const std::vector<int64_t>& places) const {
    GraphBuilder& b = call.b();
    const int64_t filters = s_.filters;
    ScanInputs in;
    in.units = filters;
    for (const int64_t size : places) in.units *= size;
    in.width = 4 * in.units;
    const Endpoint sizes =
        b.Op("Pack", {std::vector<Endpoint>{SizeOf(b, x, 0), SizeOf(b, x, 1),
                                            b.Scalar<int32_t>(static_cast<int32_t>(in.width))}});
    in.steps = TimeFirst(b, b.Op("Reshape", {steps, sizes}));
    if (mask) in.mask = CastTo(b, TransposeTo(b, mask, {1, 0}), DType::kFloat);
    if (s_.o.go_backwards) {
      in.steps = b.Op("ReverseV2", {in.steps, IntVector(b, {0})});
      if (mask) in.mask = b.Op("ReverseV2", {in.mask, IntVector(b, {0})});
    }
    const FirstStates first = StatesFor(call, x, in.units, 2, s_.o.stateful);
    if (!b.ok()) return {};
    in.states = first.values;
    in.constants = {recurrent};
    const ScanResults run = Scan(b, "conv_lstm", in,
                                 [&](GraphBuilder& f, Endpoint row, absl::Span<const Endpoint> now,
                                     absl::Span<const Endpoint> constants) {
                                   return Step(f, row, now, constants[0], places);
                                 });
    if (!b.ok()) return {};
    KeepStates(call, first, run.states);
    // Steps of one size are made with a 1 before it, which their shape does not show.
    const std::vector<int64_t> seen(places.begin() + (kRank == 1 ? 1 : 0), places.end());
    const auto shaped = [&](Endpoint flat, std::vector<int64_t> dims) {
      dims.insert(dims.end(), seen.begin(), seen.end());
      dims.push_back(filters);
      return ReshapeTo(b, flat, dims);
    };
    std::vector<Value> out;
    const int64_t batch = b.ShapeOf(x).dim(0), time = b.ShapeOf(x).dim(1);
    if (s_.o.return_sequences) {
      // One size may be left open.
      std::vector<Endpoint> sizes_out = {SizeOf(b, x, 0), SizeOf(b, x, 1)};
      const Endpoint batch_first = TimeFirst(b, run.outputs);
      if (time >= 0 || batch >= 0) {
        out.push_back({shaped(batch_first, {batch, time}), mask});
      } else {
        std::vector<int64_t> rest = seen;
        rest.push_back(filters);
        for (const int64_t size : rest) {
          sizes_out.push_back(b.Scalar<int32_t>(static_cast<int32_t>(size)));
        }
        out.push_back({b.Op("Reshape", {batch_first, b.Op("Pack", {sizes_out})}), mask});
      }
    } else {
      out.push_back({shaped(run.last, {batch}), {}});
    }
    for (size_t i = 0; s_.o.return_state && i < run.states.size(); ++i) {
      out.push_back({shaped(run.states[i], {-1}), {}});
    }
    return out;
  }

  // One step of flat rows: input, forget, candidate and output gates lie behind each other in the
  // channels.
  std::vector<Endpoint> Step(GraphBuilder& f, Endpoint row, absl::Span<const Endpoint> now,
                             Endpoint recurrent, const std::vector<int64_t>& places) const {
    const int64_t n = s_.filters;
    int64_t units = n;
    for (const int64_t size : places) units *= size;
    const auto with = [&](Endpoint flat, int64_t channels) {
      std::vector<int64_t> dims = {-1};
      dims.insert(dims.end(), places.begin(), places.end());
      dims.push_back(channels);
      return ReshapeTo(f, flat, dims);
    };
    const Endpoint h = with(now[0], n), c = with(now[1], n);
    const Endpoint again =
        f.Op(kConv, {h, recurrent},
             {{"strides", AttrValue::IntList(places.size() + 2, 1)}, {"padding", "SAME"}});
    const Endpoint all = f.Op("AddV2", {with(row, 4 * n), again});
    const auto gate = [&](int i) { return SliceLast(f, all, i * n, n); };
    const auto open = [&](Endpoint e) { return Activate(f, s_.o.recurrent_activation, e); };
    const auto product = [&](Endpoint p, Endpoint q) { return f.Op("Mul", {p, q}); };
    const Endpoint cell = f.Op(
        "AddV2",
        {product(open(gate(1)), c), product(open(gate(0)), Activate(f, s_.o.activation, gate(2)))});
    const Endpoint out = product(open(gate(3)), Activate(f, s_.o.activation, cell));
    return {ReshapeTo(f, out, {-1, units}), ReshapeTo(f, cell, {-1, units})};
  }

  ConvLstmSettings s_;
};

}  // namespace

LayerRef ConvLSTM1D(int64_t filters, const Sizes& kernel_size, const ConvLstmOptions& options) {
  return MakeLayer<ConvLstmLayer<1>>(ConvLstmSettings{filters, kernel_size, options}, options.name);
}
LayerRef ConvLSTM2D(int64_t filters, const Sizes& kernel_size, const ConvLstmOptions& options) {
  return MakeLayer<ConvLstmLayer<2>>(ConvLstmSettings{filters, kernel_size, options}, options.name);
}
LayerRef ConvLSTM3D(int64_t filters, const Sizes& kernel_size, const ConvLstmOptions& options) {
  return MakeLayer<ConvLstmLayer<3>>(ConvLstmSettings{filters, kernel_size, options}, options.name);
}

void AddConvLstmLayers(LayerClasses& classes) {
  classes.Add<ConvLstmLayer<1>>();
  classes.Add<ConvLstmLayer<2>>();
  classes.Add<ConvLstmLayer<3>>();
}

}  // namespace weft::estimator
