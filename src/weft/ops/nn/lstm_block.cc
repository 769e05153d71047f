// SPDX-License-Identifier: Apache-2.0
// Long short-term memory cells whose gates are one matrix product, for one step or a sequence of
// them, and their gradients.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "weft/device/cpu/gemm.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/gradients.h"
#include "weft/ops/work_sharer.h"

namespace weft::ops::nn::lstm_block {
namespace {

// Sizes of a cell, and how its op takes the gates out of the product's columns.
struct Cell {
  int64_t batch = 0, inputs = 0, units = 0;
  int64_t input_gate = 0, new_gate = 0, forget_gate = 0, output_gate = 0;  // their columns
  float forget_bias = 0, clip = 0;
  bool has_peepholes = false;

  int64_t elements() const { return batch * units; }
  int64_t row() const { return inputs + units; }
};

// Values of a call as floats, which all is computed in.
using Floats = std::vector<float>;
Floats Load(const Tensor& tensor) {
  Floats out(static_cast<size_t>(tensor.num_elements()));
  VisitDType(tensor.dtype(), TypeList<float, Half>(), [&]<typename T>() {
    const T* from = tensor.data<T>();
    std::transform(from, from + tensor.num_elements(), out.begin(),
                   [](T x) { return static_cast<float>(x); });
  });
  return out;
}
// Writes n values at `to` elements of `tensor`.
void Store(const float* from, int64_t n, Tensor* tensor, int64_t to = 0) {
  VisitDType(tensor->dtype(), TypeList<float, Half>(), [&]<typename T>() {
    std::transform(from, from + n, tensor->data<T>() + to, [](float x) { return T(x); });
  });
}

float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

struct Weights {
  Floats w, wci, wcf, wco, b;
};
// What a step makes, each [batch, units]; of a sequence, at the step's place.
struct Gates {
  float *i, *cs, *f, *o, *ci, *co, *h;
};
struct KnownGates {
  const float *i, *cs, *f, *o, *ci, *co;
};

// [x, h] row by row.
void JoinRows(const Cell& s, const float* x, const float* h, float* joined) {
  for (int64_t n = 0; n < s.batch; ++n, joined += s.row()) {
    std::copy_n(x + n * s.inputs, s.inputs, joined);
    std::copy_n(h + n * s.units, s.units, joined + s.inputs);
  }
}

void Step(const Cell& s, const Weights& w, const float* x, const float* cs_before,
          const float* h_before, const Gates& out, WorkSharer share) {
  Floats joined(static_cast<size_t>(s.batch * s.row()));
  Floats gates(static_cast<size_t>(s.batch * 4 * s.units));
  JoinRows(s, x, h_before, joined.data());
  Multiply<float>({.m = s.batch,
                   .n = 4 * s.units,
                   .k = s.row(),
                   .a = joined.data(),
                   .a_stride = s.row(),
                   .b = w.w.data(),
                   .b_stride = 4 * s.units,
                   .c = gates.data(),
                   .c_stride = 4 * s.units},
                  {}, share);
  for (int64_t at = 0; at < s.elements(); ++at) {
    const int64_t u = at % s.units;
    const float* row = gates.data() + at / s.units * 4 * s.units;
    const auto gate = [&](int64_t first) { return row[first + u] + w.b[first + u]; };
    const float before = cs_before[at];
    const float peep_i = s.has_peepholes ? before * w.wci[u] : 0;
    const float peep_f = s.has_peepholes ? before * w.wcf[u] : 0;
    out.i[at] = Sigmoid(gate(s.input_gate) + peep_i);
    out.ci[at] = std::tanh(gate(s.new_gate));
    out.f[at] = Sigmoid(gate(s.forget_gate) + s.forget_bias + peep_f);
    out.cs[at] = out.ci[at] * out.i[at] + out.f[at] * before;
    if (s.clip > 0) out.cs[at] = std::clamp(out.cs[at], -s.clip, s.clip);
    const float peep_o = s.has_peepholes ? out.cs[at] * w.wco[u] : 0;
    out.o[at] = Sigmoid(gate(s.output_gate) + peep_o);
    out.co[at] = std::tanh(out.cs[at]);
    out.h[at] = out.o[at] * out.co[at];
  }
}

// Gradients that add up over the steps of a sequence.
struct PeepholeGradients {
  Floats wci, wcf, wco;
  explicit PeepholeGradients(int64_t units) : wci(units, 0), wcf(units, 0), wco(units, 0) {}
};

// From the gradients of a step's cs and h to those of its gates (columns as in the product) and of
// the cs before it.
void StepBack(const Cell& s, const Weights& w, const KnownGates& at, const float* cs_before,
              const float* cs_gradient, const float* h_gradient, float* gates, float* before,
              PeepholeGradients* peepholes) {
  for (int64_t k = 0; k < s.elements(); ++k) {
    const int64_t u = k % s.units;
    const float d_o = at.o[k] * (1 - at.o[k]) * h_gradient[k] * at.co[k];
    float d_cs = (1 - at.co[k] * at.co[k]) * h_gradient[k] * at.o[k] + cs_gradient[k];
    if (s.has_peepholes) d_cs += d_o * w.wco[u];
    const float d_ci = (1 - at.ci[k] * at.ci[k]) * d_cs * at.i[k];
    const float d_f = at.f[k] * (1 - at.f[k]) * d_cs * cs_before[k];
    const float d_i = at.i[k] * (1 - at.i[k]) * d_cs * at.ci[k];
    float* row = gates + k / s.units * 4 * s.units + u;
    row[s.input_gate] = d_i;
    row[s.new_gate] = d_ci;
    row[s.forget_gate] = d_f;
    row[s.output_gate] = d_o;
    before[k] = d_cs * at.f[k];
    if (!s.has_peepholes) continue;
    before[k] += d_i * w.wci[u] + d_f * w.wcf[u];
    peepholes->wci[u] += d_i * cs_before[k];
    peepholes->wcf[u] += d_f * cs_before[k];
    peepholes->wco[u] += d_o * at.cs[k];
  }
}

Status Expect(const KernelContext& c, int i, const char* what, const Shape& shape) {
  if (c.input(i).shape() == shape) return absl::OkStatus();
  return InvalidArgument(what, " has shape ", c.input(i).shape().ToString(), ", expected ",
                         shape.ToString());
}

// Attributes and checks that all of them share. Inputs from `x` on: x, cs_prev, h_prev, w, wci,
// wcf, wco, b.
class LstmKernel : public OpKernel {
 public:
  explicit LstmKernel(KernelConstruction& c) {
    cell_.forget_bias = c.AttrOr<float>("forget_bias", 0);
    cell_.clip = c.AttrOr<float>("cell_clip", 0);
    cell_.has_peepholes = c.AttrOr<bool>("use_peephole", false);
    gates_swapped_ = c.op() == "BlockLSTMV2" || c.op() == "BlockLSTMGradV2";
  }

 protected:
  StatusOr<Cell> CellOf(const KernelContext& c, int x, int rank) const {
    const Tensor &in = c.input(x), &before = c.input(x + 1);
    if (in.rank() != rank) {
      return InvalidArgument("x must be ", rank, "D, got shape ", in.shape().ToString());
    }
    if (before.rank() != 2) {
      return InvalidArgument("cs_prev must be 2D, got shape ", before.shape().ToString());
    }
    Cell s = cell_;
    s.batch = in.dim(rank - 2);
    s.inputs = in.dim(rank - 1);
    s.units = before.dim(1);
    if (s.units == 0) return InvalidArgument("cell_size must be positive");
    // The order of gates: input, new, forget, output; the second version has forget before new.
    s.new_gate = gates_swapped_ ? 2 * s.units : s.units;
    s.forget_gate = gates_swapped_ ? s.units : 2 * s.units;
    s.output_gate = 3 * s.units;
    const Shape state{s.batch, s.units}, vector{s.units};
    WEFT_RETURN_IF_ERROR(Expect(c, x + 1, "cs_prev", state));
    WEFT_RETURN_IF_ERROR(Expect(c, x + 2, "h_prev", state));
    WEFT_RETURN_IF_ERROR(Expect(c, x + 3, "w", Shape{s.row(), 4 * s.units}));
    const char* names[] = {"wci", "wcf", "wco"};
    for (int i = 0; i < 3; ++i) WEFT_RETURN_IF_ERROR(Expect(c, x + 4 + i, names[i], vector));
    WEFT_RETURN_IF_ERROR(Expect(c, x + 7, "b", Shape{4 * s.units}));
    return s;
  }
  static Weights WeightsOf(const KernelContext& c, int x) {
    return {Load(c.input(x + 3)), Load(c.input(x + 4)), Load(c.input(x + 5)), Load(c.input(x + 6)),
            Load(c.input(x + 7))};
  }

 private:
  Cell cell_;
  bool gates_swapped_ = false;
};

// Steps [0, steps) of `length`; those after them are zeros.
StatusOr<int64_t> StepsOf(const KernelContext& c, int64_t length) {
  if (c.input(0).rank() != 0) {
    return InvalidArgument("seq_len_max must be a scalar, got shape ",
                           c.input(0).shape().ToString());
  }
  const int64_t steps = c.input(0).scalar<int64_t>();
  if (steps < 0 || steps > length) {
    return InvalidArgument("seq_len_max must be between 0 and the ", length, " steps of x, got ",
                           steps);
  }
  return steps;
}

// One step, or with a sequence (x of rank 3 after seq_len_max) as many as it has.
template <bool is_sequence>
class ForwardKernel final : public LstmKernel {
 public:
  using LstmKernel::LstmKernel;
  Status Compute(KernelContext& c) override {
    constexpr int kX = is_sequence ? 1 : 0;
    WEFT_ASSIGN_OR_RETURN(const Cell s, CellOf(c, kX, is_sequence ? 3 : 2));
    const int64_t length = is_sequence ? c.input(kX).dim(0) : 1;
    int64_t steps = 1;
    if (is_sequence) {
      WEFT_ASSIGN_OR_RETURN(steps, StepsOf(c, length));
    }
    const Shape shape = is_sequence ? Shape{length, s.batch, s.units} : Shape{s.batch, s.units};
    Floats made[7];
    for (int i = 0; i < 7; ++i) {
      WEFT_RETURN_IF_ERROR(c.AllocateOutput(i, shape).status());
      made[i].assign(static_cast<size_t>(shape.num_elements()), 0);
    }
    const Weights w = WeightsOf(c, kX);
    const Floats x = Load(c.input(kX)), cs_first = Load(c.input(kX + 1)),
                 h_first = Load(c.input(kX + 2));
    const auto share = SharerOf(c);
    for (int64_t t = 0; t < steps; ++t) {
      WEFT_RETURN_IF_ERROR(c.cancellation().status());
      const int64_t now = t * s.elements();
      const auto at = [&](int i) { return made[i].data() + now; };
      Step(s, w, x.data() + t * s.batch * s.inputs, t == 0 ? cs_first.data() : at(1) - s.elements(),
           t == 0 ? h_first.data() : at(6) - s.elements(),
           {at(0), at(1), at(2), at(3), at(4), at(5), at(6)}, share);
    }
    for (int i = 0; i < 7; ++i) {
      WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(i, shape));
      Store(made[i].data(), shape.num_elements(), out);
    }
    return absl::OkStatus();
  }
};

constexpr const char* kMade[] = {"i", "cs", "f", "o", "ci", "co"};

class CellGradKernel final : public LstmKernel {
 public:
  using LstmKernel::LstmKernel;
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Cell s, CellOf(c, 0, 2));
    const Shape state{s.batch, s.units};
    for (int i = 0; i < 6; ++i) WEFT_RETURN_IF_ERROR(Expect(c, 8 + i, kMade[i], state));
    WEFT_RETURN_IF_ERROR(Expect(c, 14, "cs_grad", state));
    WEFT_RETURN_IF_ERROR(Expect(c, 15, "h_grad", state));
    Floats in[16];
    for (int i = 0; i < 16; ++i) in[i] = Load(c.input(i));
    Floats gates(static_cast<size_t>(4 * s.elements())), before(in[1].size());
    PeepholeGradients peepholes(s.units);
    StepBack(
        s, WeightsOf(c, 0),
        {in[8].data(), in[9].data(), in[10].data(), in[11].data(), in[12].data(), in[13].data()},
        in[1].data(), in[14].data(), in[15].data(), gates.data(), before.data(), &peepholes);
    const Shape vector{s.units};
    const std::pair<const Floats*, Shape> outputs[] = {{&before, state},
                                                       {&gates, Shape{s.batch, 4 * s.units}},
                                                       {&peepholes.wci, vector},
                                                       {&peepholes.wcf, vector},
                                                       {&peepholes.wco, vector}};
    for (int i = 0; i < 5; ++i) {
      WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(i, outputs[i].second));
      Store(outputs[i].first->data(), out->num_elements(), out);
    }
    return absl::OkStatus();
  }
};

class BlockGradKernel final : public LstmKernel {
 public:
  using LstmKernel::LstmKernel;
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Cell s, CellOf(c, 1, 3));
    const int64_t length = c.input(1).dim(0);
    WEFT_ASSIGN_OR_RETURN(const int64_t steps, StepsOf(c, length));
    const Shape sequence{length, s.batch, s.units};
    for (int i = 0; i < 6; ++i) WEFT_RETURN_IF_ERROR(Expect(c, 9 + i, kMade[i], sequence));
    for (const auto& [i, what] : {std::pair{15, "h"}, {16, "cs_grad"}, {17, "h_grad"}}) {
      WEFT_RETURN_IF_ERROR(Expect(c, i, what, sequence));
    }
    Floats in[18];
    for (int i = 1; i < 18; ++i) in[i] = Load(c.input(i));
    Sums sums(s, length);
    const Weights w = WeightsOf(c, 1);
    for (int64_t t = steps; t-- > 0;) {
      WEFT_RETURN_IF_ERROR(c.cancellation().status());
      GoBack(c, s, w, in, t, &sums);
    }
    return Give(c, s, sums);
  }

 private:
  struct Sums {
    Floats x, cs, h, w, b;
    PeepholeGradients peepholes;
    Sums(const Cell& s, int64_t length)
        : x(static_cast<size_t>(length * s.batch * s.inputs), 0),
          cs(static_cast<size_t>(s.elements()), 0),
          h(static_cast<size_t>(s.elements()), 0),
          w(static_cast<size_t>(s.row() * 4 * s.units), 0),
          b(static_cast<size_t>(4 * s.units), 0),
          peepholes(s.units) {}
  };

  // Step t: `sums` holds the gradients of the cs and h that it made, and then of those before it.
  static void GoBack(KernelContext& c, const Cell& s, const Weights& w, const Floats* in, int64_t t,
                     Sums* sums) {
    const auto share = SharerOf(c);
    const int64_t now = t * s.elements(), columns = 4 * s.units;
    const float* cs_before = t == 0 ? in[2].data() : in[10].data() + now - s.elements();
    const float* h_before = t == 0 ? in[3].data() : in[15].data() + now - s.elements();
    for (int64_t k = 0; k < s.elements(); ++k) {
      sums->cs[k] += in[16][now + k];
      sums->h[k] += in[17][now + k];
    }
    Floats gates(static_cast<size_t>(s.batch * columns)), before(sums->cs.size());
    StepBack(s, w,
             {in[9].data() + now, in[10].data() + now, in[11].data() + now, in[12].data() + now,
              in[13].data() + now, in[14].data() + now},
             cs_before, sums->cs.data(), sums->h.data(), gates.data(), before.data(),
             &sums->peepholes);
    sums->cs = before;
    Floats joined(static_cast<size_t>(s.batch * s.row()));
    Multiply<float>({.transpose_b = true,
                     .m = s.batch,
                     .n = s.row(),
                     .k = columns,
                     .a = gates.data(),
                     .a_stride = columns,
                     .b = w.w.data(),
                     .b_stride = columns,
                     .c = joined.data(),
                     .c_stride = s.row()},
                    {}, share);
    for (int64_t n = 0; n < s.batch; ++n) {
      const float* row = joined.data() + n * s.row();
      std::copy_n(row, s.inputs, sums->x.data() + (t * s.batch + n) * s.inputs);
      std::copy_n(row + s.inputs, s.units, sums->h.data() + n * s.units);
    }
    JoinRows(s, in[1].data() + t * s.batch * s.inputs, h_before, joined.data());
    Floats part(sums->w.size());
    Multiply<float>({.transpose_a = true,
                     .m = s.row(),
                     .n = columns,
                     .k = s.batch,
                     .a = joined.data(),
                     .a_stride = s.row(),
                     .b = gates.data(),
                     .b_stride = columns,
                     .c = part.data(),
                     .c_stride = columns},
                    {}, share);
    for (size_t i = 0; i < part.size(); ++i) sums->w[i] += part[i];
    for (size_t i = 0; i < gates.size(); ++i) sums->b[i % sums->b.size()] += gates[i];
  }

  static Status Give(KernelContext& c, const Cell& s, const Sums& sums) {
    const Shape state{s.batch, s.units}, vector{s.units};
    const std::pair<const Floats*, Shape> outputs[] = {{&sums.x, c.input(1).shape()},
                                                       {&sums.cs, state},
                                                       {&sums.h, state},
                                                       {&sums.w, c.input(4).shape()},
                                                       {&sums.peepholes.wci, vector},
                                                       {&sums.peepholes.wcf, vector},
                                                       {&sums.peepholes.wco, vector},
                                                       {&sums.b, c.input(8).shape()}};
    for (int i = 0; i < 8; ++i) {
      WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(i, outputs[i].second));
      Store(outputs[i].first->data(), out->num_elements(), out);
    }
    return absl::OkStatus();
  }
};

Status CellShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, 2));
  WEFT_ASSIGN_OR_RETURN(const PartialShape before, c.WithRank(1, 2));
  for (int i = 0; i < 7; ++i) c.set_output(i, PartialShape({x.dim(0), before.dim(1)}));
  return absl::OkStatus();
}

Status CellGradShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, 2));
  WEFT_ASSIGN_OR_RETURN(const PartialShape before, c.WithRank(1, 2));
  const int64_t units = before.dim(1);
  c.set_output(0, PartialShape({x.dim(0), units}));
  c.set_output(1, PartialShape({x.dim(0), units < 0 ? -1 : 4 * units}));
  for (int i = 2; i < 5; ++i) c.set_output(i, PartialShape({units}));
  return absl::OkStatus();
}

Status BlockShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(1, 3));
  WEFT_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(8, 1));
  const int64_t units = b.dim(0) < 0 ? -1 : b.dim(0) / 4;
  for (int i = 0; i < 7; ++i) c.set_output(i, PartialShape({x.dim(0), x.dim(1), units}));
  return absl::OkStatus();
}

Status BlockGradShape(ShapeContext& c) {
  for (int i = 0; i < 8; ++i) c.set_output(i, c.input(1 + i));
  return absl::OkStatus();
}

// Only cs and h carry gradients on, as in TensorFlow.
Status BlockGradient(GradientContext& c) {
  std::vector<Argument> inputs;
  for (int i = 0; i < 9; ++i) inputs.push_back(c.input(i));
  for (int i = 0; i < 7; ++i) inputs.push_back(c.output(i));
  for (const int i : {1, 6}) {
    inputs.push_back(c.gradient(i) ? c.gradient(i) : c.Op("ZerosLike", {c.output(i)}));
  }
  WEFT_ASSIGN_OR_RETURN(const bool has_peepholes, c.Attr<bool>("use_peephole"));
  Node* node =
      c.builder().AddNode(c.node().op() == "BlockLSTMV2" ? "BlockLSTMGradV2" : "BlockLSTMGrad",
                          inputs, {{"use_peephole", has_peepholes}});
  if (node == nullptr) return c.builder().status();
  for (int i = 1; i < 9; ++i) c.set_input(i, {node, i - 1});
  return absl::OkStatus();
}

OpSpec& AddInputs(OpSpec& spec, std::initializer_list<const char*> names) {
  for (const char* name : names) spec.Input(absl::StrCat(name, ": T"));
  return spec;
}
OpSpec& AddOutputs(OpSpec& spec, std::initializer_list<const char*> names) {
  for (const char* name : names) spec.Output(absl::StrCat(name, ": T"));
  return spec;
}
constexpr std::initializer_list<const char*> kStates = {"x",   "cs_prev", "h_prev", "w",
                                                        "wci", "wcf",     "wco",    "b"};
constexpr std::initializer_list<const char*> kOutputs = {"i", "cs", "f", "o", "ci", "co", "h"};

void AddCell(Catalogue& catalogue) {
  OpSpec cell("LSTMBlockCell");
  cell.Doc(
      "One step of a long short-term memory cell: its gates i, f and o, the new values ci, the "
      "state cs, its tanh co, and the output h.\n"
      "Columns of w are the gates i, ci, f, o. With use_peephole, gates see the state by wci, wcf "
      "and wco. A positive cell_clip bounds the state.");
  AddOutputs(AddInputs(cell, kStates), kOutputs);
  catalogue.Add(cell.Attr("forget_bias: float = 1.0")
                    .Attr("cell_clip: float = 3.0")
                    .Attr("use_peephole: bool = false")
                    .Attr("T: {half, float}")
                    .Shape(CellShape)
                    .NoGradient()
                    .Kernel(MakeKernel<ForwardKernel<false>>()));
  OpSpec grad("LSTMBlockCellGrad");
  grad.Doc("The gradients of LSTMBlockCell's gates (dicfo), state before and peephole weights.");
  AddInputs(AddInputs(grad, kStates), {"i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"});
  catalogue.Add(AddOutputs(grad, {"cs_prev_grad", "dicfo", "wci_grad", "wcf_grad", "wco_grad"})
                    .Attr("use_peephole: bool")
                    .Attr("T: {half, float}")
                    .Shape(CellGradShape)
                    .NoGradient()
                    .Kernel(MakeKernel<CellGradKernel>()));
}

void AddBlock(Catalogue& catalogue, bool is_second) {
  OpSpec block(is_second ? "BlockLSTMV2" : "BlockLSTM");
  block
      .Doc(absl::StrCat("LSTMBlockCell over the first seq_len_max steps of x [steps, batch, "
                        "inputs]; what follows "
                        "is zeros.\nColumns of w are the gates ",
                        is_second ? "i, f, ci, o." : "i, ci, f, o."))
      .Input("seq_len_max: int64")
      .HostInput("seq_len_max");
  AddOutputs(AddInputs(block, kStates), kOutputs);
  if (!is_second) block.Attr("forget_bias: float = 1.0");
  catalogue.Add(block.Attr(is_second ? "cell_clip: float = 0.0" : "cell_clip: float = 3.0")
                    .Attr("use_peephole: bool = false")
                    .Attr("T: {half, float}")
                    .Shape(BlockShape)
                    .Gradient(BlockGradient)
                    .Kernel(MakeKernel<ForwardKernel<true>>()));
  OpSpec grad(is_second ? "BlockLSTMGradV2" : "BlockLSTMGrad");
  grad.Doc("The gradients of BlockLSTM's inputs from those of its states and outputs.")
      .Input("seq_len_max: int64")
      .HostInput("seq_len_max");
  AddInputs(AddInputs(AddInputs(grad, kStates), kOutputs), {"cs_grad", "h_grad"});
  AddOutputs(grad, {"x_grad", "cs_prev_grad", "h_prev_grad", "w_grad", "wci_grad", "wcf_grad",
                    "wco_grad", "b_grad"});
  catalogue.Add(grad.Attr("use_peephole: bool")
                    .Attr("T: {half, float}")
                    .Shape(BlockGradShape)
                    .NoGradient()
                    .Kernel(MakeKernel<BlockGradKernel>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddCell(catalogue);
  AddBlock(catalogue, false);
  AddBlock(catalogue, true);
}

}  // namespace weft::ops::nn::lstm_block
