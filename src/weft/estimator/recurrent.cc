// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/recurrent.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "weft/estimator/activation.h"
#include "weft/estimator/dropout.h"
#include "weft/estimator/graph_writing.h"
#include "weft/estimator/kernel_fields.h"
#include "weft/estimator/layer_classes.h"
#include "weft/estimator/running_states.h"
#include "weft/estimator/scan.h"

namespace weft::estimator {
namespace {

enum class Cell { kSimple, kGru, kLstm };

struct CellKind {
  const char* class_name;
  const char* cell_name;
  int gates;
  int states;
};

CellKind KindOfCell(Cell cell) {
  static const CellKind kKinds[] = {{"SimpleRNN", "simple_rnn_cell", 1, 1},
                                    {"GRU", "gru_cell", 3, 1},
                                    {"LSTM", "lstm_cell", 4, 2}};
  return kKinds[static_cast<int>(cell)];
}

using Settings = std::pair<int64_t, RecurrentOptions>;
using States = absl::Span<const Endpoint>;

Endpoint Swapped(GraphBuilder& b, Endpoint x) {
  return b.ShapeOf(x).rank() == 2 ? TransposeTo(b, x, {1, 0}) : TransposeTo(b, x, {1, 0, 2});
}

Endpoint TurnedAround(GraphBuilder& b, Endpoint x, int64_t axis) {
  return b.Op("ReverseV2", {x, IntVector(b, {axis})});
}

// [batch, time, units] of [time, batch, units], with what is known of batch and time.
Endpoint BatchFirst(GraphBuilder& b, Endpoint outputs, Endpoint x, int64_t units) {
  const Endpoint swapped = Swapped(b, outputs);
  const int64_t batch = b.ShapeOf(x).dim(0), time = b.ShapeOf(x).dim(1);
  return batch < 0 && time < 0 ? swapped : ReshapeTo(b, swapped, {batch, time, units});
}

template <Cell kCell>
class RecurrentLayer final : public RecurrentBase {
 public:
  RecurrentLayer() = default;
  explicit RecurrentLayer(Settings settings)
      : units_(settings.first), o_(std::move(settings.second)) {}
  const char* class_name() const override { return KindOfCell(kCell).class_name; }
  RecurrentOptions& options() override { return o_; }
  int num_states() const override { return KindOfCell(kCell).states; }
  const char* cell_name() const override { return KindOfCell(kCell).cell_name; }

  InputStyle input_style() const override { return InputStyle::kStates; }
  void Fields(ConfigFields& f) override {
    SequenceFields(f, o_);
    if (o_.zero_output_for_mask || f.keras() != 2) {
      f.Field("zero_output_for_mask", o_.zero_output_for_mask);
    }
    f.Field("units", units_);
    CellFields(f, o_);
    if (kCell != Cell::kSimple) f.Activation("recurrent_activation", o_.recurrent_activation);
    if (kCell == Cell::kLstm) f.Field("unit_forget_bias", o_.unit_forget_bias);
    if (kCell == Cell::kGru) f.Field("reset_after", o_.reset_after);
    f.Field("dropout", o_.dropout);
    f.Field("recurrent_dropout", o_.recurrent_dropout);
  }

  std::vector<Value> Call(LayerCall& call, const std::vector<Value>& in) override {
    return RunAs(call, in, "", "");
  }

  std::vector<Value> RunAs(LayerCall& call, const std::vector<Value>& in, const std::string& name,
                           const std::string& group) override {
    const InnerLayer outer(call, name, group);
    return RunCell(call, in, KindOfCell(kCell).cell_name, "cell");
  }

  std::vector<Value> RunCell(LayerCall& call, const std::vector<Value>& in, const std::string& cell,
                             const std::string& group) override {
    GraphBuilder& b = call.b();
    Endpoint x = in[0].tensor;
    if (!call.CheckRank(x, 3)) return {};
    const CellKind kind = KindOfCell(kCell);
    const int64_t features = b.ShapeOf(x).dim(2);
    if (features < 0 || units_ < 1) {
      call.Fail(InvalidArgument("needs inputs of known features and at least 1 unit, got ",
                                b.ShapeOf(x).ToString(), " and ", units_));
      return {};
    }
    if (in.size() != 1 && static_cast<int>(in.size()) != 1 + kind.states) {
      call.Fail(InvalidArgument("got ", in.size() - 1, " initial states, expected none or ",
                                kind.states));
      return {};
    }
    const InnerLayer inner(call, cell, group);
    const CellWeights weights = MakeWeights(call, features);
    if (!b.ok()) return {};
    x = DropOut(call, x, o_.dropout, {1});
    FirstStates first = StatesFor(call, x, units_, kind.states, o_.stateful);
    if (!b.ok()) return {};
    for (size_t i = 1; i < in.size(); ++i) first.values[i - 1] = in[i].tensor;
    const std::vector<Endpoint>& states = first.values;
    const ScanResults run = IsPlainLstm(call, in[0])
                                ? RunBlock(b, x, weights, states)
                                : RunLoop(call, x, in[0].mask, weights, features, states);
    if (!b.ok()) return {};
    KeepStates(call, first, run.states);
    std::vector<Value> out;
    if (o_.return_sequences) {
      out.push_back({BatchFirst(b, run.outputs, x, units_), in[0].mask});
    } else {
      const int64_t batch = b.ShapeOf(x).dim(0);
      out.push_back({batch < 0 ? run.last : ReshapeTo(b, run.last, {batch, units_}), {}});
    }
    for (size_t i = 0; o_.return_state && i < run.states.size(); ++i) {
      out.push_back({run.states[i], {}});
    }
    return out;
  }

 private:
  struct CellWeights {
    Endpoint kernel, recurrent, bias;  // bias is empty without one
  };

  CellWeights MakeWeights(LayerCall& call, int64_t features) {
    const int64_t columns = KindOfCell(kCell).gates * units_;
    CellWeights w;
    w.kernel = call.WeightOf("kernel", Shape{features, columns}, KernelOf(o_));
    w.recurrent = call.WeightOf("recurrent_kernel", Shape{units_, columns}, RecurrentOf(o_));
    if (!o_.use_bias) return w;
    WeightOptions options = BiasOf(o_);
    if (kCell == Cell::kLstm && o_.unit_forget_bias) {
      options.first = [units = units_](GraphBuilder& b, DType dtype, const Shape&) {
        const auto filled = [&](int64_t size, double value) {
          return train::Constant(value)(b, dtype, Shape{size});
        };
        return Concat(b, {filled(units, 0), filled(units, 1), filled(2 * units, 0)}, 0);
      };
    }
    const bool two = kCell == Cell::kGru && o_.reset_after;
    w.bias = call.WeightOf("bias", two ? Shape{2, columns} : Shape{columns}, options);
    return w;
  }

  // What BlockLSTMV2 computes, in one op.
  bool IsPlainLstm(const LayerCall& call, const Value& x) const {
    return kCell == Cell::kLstm && o_.activation == "tanh" &&
           o_.recurrent_activation == "sigmoid" && !x.mask &&
           (o_.recurrent_dropout == 0 || !call.training());
  }

  ScanResults RunBlock(GraphBuilder& b, Endpoint x, const CellWeights& w,
                       const std::vector<Endpoint>& states) const {
    Endpoint steps = Swapped(b, x);
    if (o_.go_backwards) steps = TurnedAround(b, steps, 0);
    const auto zeros = [&](int64_t size) {
      return b.Op("Fill", {IntVector(b, {size}), Number(b, DType::kFloat, 0)});
    };
    const Endpoint none = zeros(units_);
    const Endpoint count = CastTo(b, SizeOf(b, steps, 0), DType::kInt64);
    Node* block = b.AddNode(
        "BlockLSTMV2", {count, steps, states[1], states[0], Concat(b, {w.kernel, w.recurrent}, 0),
                        none, none, none, w.bias ? w.bias : zeros(4 * units_)});
    if (block == nullptr) return {};
    ScanResults results;
    results.outputs = {block, 6};
    const auto last = [&](int port) {
      return b.Op("StridedSlice",
                  {Endpoint{block, port}, IntVector(b, {-1}), IntVector(b, {0}), IntVector(b, {1})},
                  {{"shrink_axis_mask", 1}, {"end_mask", 1}});
    };
    results.last = ReshapeTo(b, last(6), {-1, units_});
    results.states = {results.last, ReshapeTo(b, last(1), {-1, units_})};
    return results;
  }

  ScanResults RunLoop(LayerCall& call, Endpoint x, Endpoint mask, const CellWeights& w,
                      int64_t features, const std::vector<Endpoint>& states) const {
    GraphBuilder& b = call.b();
    const int64_t columns = KindOfCell(kCell).gates * units_;
    ScanInputs in;
    // All steps' products with the inputs at once, the batch's rows in front, where they may be
    // split.
    Endpoint steps = b.Op("MatMul", {ReshapeTo(b, x, {-1, features}), w.kernel});
    Endpoint recurrent_bias;
    if (w.bias) {
      Endpoint bias = w.bias;
      if (kCell == Cell::kGru && o_.reset_after) {
        Node* rows = b.AddNode("Unpack", {w.bias}, {{"num", 2}, {"axis", 0}});
        bias = {rows, 0};
        recurrent_bias = {rows, 1};
      }
      steps = b.Op("BiasAdd", {steps, bias});
    }
    const Endpoint sizes =
        b.Op("Pack", {std::vector<Endpoint>{SizeOf(b, x, 0), SizeOf(b, x, 1),
                                            b.Scalar<int32_t>(static_cast<int32_t>(columns))}});
    in.steps = Swapped(b, b.Op("Reshape", {steps, sizes}));
    if (mask) in.mask = CastTo(b, Swapped(b, mask), DType::kFloat);
    if (o_.go_backwards) {
      in.steps = TurnedAround(b, in.steps, 0);
      if (mask) in.mask = TurnedAround(b, in.mask, 0);
    }
    in.zero_output_for_mask = o_.zero_output_for_mask;
    in.width = columns;
    in.units = units_;
    in.states = states;
    in.constants = {w.recurrent};
    if (recurrent_bias) in.constants.push_back(recurrent_bias);
    const bool drops = call.training() && o_.recurrent_dropout > 0;
    if (drops) {
      in.constants.push_back(DropOut(call, b.Op("OnesLike", {states[0]}), o_.recurrent_dropout));
    }
    const bool has_recurrent_bias = static_cast<bool>(recurrent_bias);
    return Scan(b, KindOfCell(kCell).cell_name, in,
                [&](GraphBuilder& f, Endpoint row, States now, States constants) {
                  Endpoint h = now[0];
                  if (drops) h = f.Op("Mul", {h, constants.back()});
                  const Endpoint more = has_recurrent_bias ? constants[1] : Endpoint();
                  return Step(f, row, h, now, constants[0], more);
                });
  }

  // `h` is the state with dropout.
  std::vector<Endpoint> Step(GraphBuilder& f, Endpoint x, Endpoint h, States now,
                             Endpoint recurrent, Endpoint recurrent_bias) const {
    const auto gate = [&](Endpoint all, int i) { return SliceLast(f, all, i * units_, units_); };
    const auto sum = [&](Endpoint p, Endpoint q) { return f.Op("AddV2", {p, q}); };
    const auto product = [&](Endpoint p, Endpoint q) { return f.Op("Mul", {p, q}); };
    const auto open = [&](Endpoint e) { return Activate(f, o_.recurrent_activation, e); };
    if (kCell == Cell::kSimple) {
      return {Activate(f, o_.activation, sum(x, f.Op("MatMul", {h, recurrent})))};
    }
    if (kCell == Cell::kLstm) {
      const Endpoint all = sum(x, f.Op("MatMul", {h, recurrent}));
      const Endpoint c = sum(product(open(gate(all, 1)), now[1]),
                             product(open(gate(all, 0)), Activate(f, o_.activation, gate(all, 2))));
      return {product(open(gate(all, 3)), Activate(f, o_.activation, c)), c};
    }
    Endpoint update, candidate;
    if (o_.reset_after) {
      Endpoint inner = f.Op("MatMul", {h, recurrent});
      if (recurrent_bias) inner = f.Op("BiasAdd", {inner, recurrent_bias});
      update = open(sum(gate(x, 0), gate(inner, 0)));
      const Endpoint reset = open(sum(gate(x, 1), gate(inner, 1)));
      candidate = sum(gate(x, 2), product(reset, gate(inner, 2)));
    } else {
      const Endpoint gates = f.Op("MatMul", {h, SliceLast(f, recurrent, 0, 2 * units_)});
      update = open(sum(gate(x, 0), gate(gates, 0)));
      const Endpoint reset = open(sum(gate(x, 1), gate(gates, 1)));
      candidate = sum(gate(x, 2), f.Op("MatMul", {product(reset, h), gate(recurrent, 2)}));
    }
    candidate = Activate(f, o_.activation, candidate);
    return {sum(candidate, product(update, f.Op("Sub", {now[0], candidate})))};
  }

  int64_t units_ = 1;
  RecurrentOptions o_;
};

}  // namespace

LayerRef LSTM(int64_t units, const RecurrentOptions& options) {
  return MakeLayer<RecurrentLayer<Cell::kLstm>>(Settings(units, options), options.name);
}
LayerRef GRU(int64_t units, const RecurrentOptions& options) {
  return MakeLayer<RecurrentLayer<Cell::kGru>>(Settings(units, options), options.name);
}
LayerRef SimpleRNN(int64_t units, const RecurrentOptions& options) {
  return MakeLayer<RecurrentLayer<Cell::kSimple>>(Settings(units, options), options.name);
}

void AddRecurrentLayers(LayerClasses& classes) {
  classes.Add<RecurrentLayer<Cell::kLstm>>();
  classes.Add<RecurrentLayer<Cell::kGru>>();
  classes.Add<RecurrentLayer<Cell::kSimple>>();
  AddBidirectional(classes);
  AddRnn(classes);
}

}  // namespace weft::estimator
