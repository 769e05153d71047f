// SPDX-License-Identifier: Apache-2.0
// One step of a gated recurrent unit whose gates are one matrix product, and its gradient.
#include <cmath>
#include <memory>
#include <vector>

#include "weft/device/cpu/gemm.h"
#include "weft/kernel/op_spec.h"
#include "weft/ops/work_sharer.h"

namespace weft::ops::nn::gru_block {
namespace {

using Floats = std::vector<float>;

struct Cell {
  int64_t batch = 0, inputs = 0, units = 0;
  int64_t row() const { return inputs + units; }
  int64_t elements() const { return batch * units; }
};

Status Expect(const KernelContext& c, int i, const char* what, const Shape& shape) {
  if (c.input(i).shape() == shape) return absl::OkStatus();
  return InvalidArgument(what, " has shape ", c.input(i).shape().ToString(), ", expected ",
                         shape.ToString());
}

// Inputs 0 to 5: x, h_prev, w_ru, w_c, b_ru, b_c.
StatusOr<Cell> CellOf(const KernelContext& c) {
  const Tensor &x = c.input(0), &before = c.input(1);
  if (x.rank() != 2) return InvalidArgument("x must be a matrix, got ", x.shape().ToString());
  if (before.rank() != 2) {
    return InvalidArgument("h_prev must be a matrix, got ", before.shape().ToString());
  }
  const Cell s{x.dim(0), x.dim(1), before.dim(1)};
  if (s.units == 0) return InvalidArgument("cell_size must be positive");
  WEFT_RETURN_IF_ERROR(Expect(c, 1, "h_prev", Shape{s.batch, s.units}));
  WEFT_RETURN_IF_ERROR(Expect(c, 2, "w_ru", Shape{s.row(), 2 * s.units}));
  WEFT_RETURN_IF_ERROR(Expect(c, 3, "w_c", Shape{s.row(), s.units}));
  WEFT_RETURN_IF_ERROR(Expect(c, 4, "b_ru", Shape{2 * s.units}));
  WEFT_RETURN_IF_ERROR(Expect(c, 5, "b_c", Shape{s.units}));
  return s;
}

float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

// [x, h] row by row, times w [row, columns].
Floats Product(const KernelContext& c, const Cell& s, const float* x, const float* h,
               const float* w, int64_t columns) {
  Floats joined(static_cast<size_t>(s.batch * s.row()));
  for (int64_t n = 0; n < s.batch; ++n) {
    float* row = joined.data() + n * s.row();
    std::copy_n(x + n * s.inputs, s.inputs, row);
    std::copy_n(h + n * s.units, s.units, row + s.inputs);
  }
  Floats out(static_cast<size_t>(s.batch * columns));
  Multiply<float>({.m = s.batch,
                   .n = columns,
                   .k = s.row(),
                   .a = joined.data(),
                   .a_stride = s.row(),
                   .b = w,
                   .b_stride = columns,
                   .c = out.data(),
                   .c_stride = columns},
                  {}, SharerOf(c));
  return out;
}
// gradient [batch, columns] times the transpose of w [row, columns].
Floats ProductBack(const KernelContext& c, const Cell& s, const float* gradient, const float* w,
                   int64_t columns) {
  Floats out(static_cast<size_t>(s.batch * s.row()));
  Multiply<float>({.transpose_b = true,
                   .m = s.batch,
                   .n = s.row(),
                   .k = columns,
                   .a = gradient,
                   .a_stride = columns,
                   .b = w,
                   .b_stride = columns,
                   .c = out.data(),
                   .c_stride = s.row()},
                  {}, SharerOf(c));
  return out;
}

class CellKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Cell s, CellOf(c));
    const float *x = c.input(0).data<float>(), *before = c.input(1).data<float>();
    const Shape shape{s.batch, s.units};
    float* out[4];  // r, u, c, h
    for (int i = 0; i < 4; ++i) {
      WEFT_ASSIGN_OR_RETURN(Tensor * tensor, c.AllocateOutput(i, shape));
      out[i] = tensor->data<float>();
    }
    const Floats gates = Product(c, s, x, before, c.input(2).data<float>(), 2 * s.units);
    const float *bias = c.input(4).data<float>(), *new_bias = c.input(5).data<float>();
    Floats kept(static_cast<size_t>(s.elements()));  // what the reset gate leaves of h_prev
    for (int64_t k = 0; k < s.elements(); ++k) {
      const int64_t unit = k % s.units;
      const float* row = gates.data() + k / s.units * 2 * s.units;
      out[0][k] = Sigmoid(row[unit] + bias[unit]);
      out[1][k] = Sigmoid(row[s.units + unit] + bias[s.units + unit]);
      kept[k] = before[k] * out[0][k];
    }
    const Floats fresh = Product(c, s, x, kept.data(), c.input(3).data<float>(), s.units);
    for (int64_t k = 0; k < s.elements(); ++k) {
      out[2][k] = std::tanh(fresh[k] + new_bias[k % s.units]);
      out[3][k] = out[1][k] * before[k] + (1 - out[1][k]) * out[2][k];
    }
    return absl::OkStatus();
  }
};

class CellGradKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Cell s, CellOf(c));
    const Shape shape{s.batch, s.units};
    const char* names[] = {"r", "u", "c", "d_h"};
    const float* in[4];
    for (int i = 0; i < 4; ++i) {
      WEFT_RETURN_IF_ERROR(Expect(c, 6 + i, names[i], shape));
      in[i] = c.input(6 + i).data<float>();
    }
    const float *before = c.input(1).data<float>(), *r = in[0], *u = in[1], *fresh = in[2],
                *d_h = in[3];
    WEFT_ASSIGN_OR_RETURN(Tensor * d_x, c.AllocateOutput(0, c.input(0).shape()));
    WEFT_ASSIGN_OR_RETURN(Tensor * d_before, c.AllocateOutput(1, shape));
    WEFT_ASSIGN_OR_RETURN(Tensor * d_new, c.AllocateOutput(2, shape));
    WEFT_ASSIGN_OR_RETURN(Tensor * d_gates, c.AllocateOutput(3, Shape{s.batch, 2 * s.units}));
    float *new_bar = d_new->data<float>(), *gate_bar = d_gates->data<float>();
    for (int64_t k = 0; k < s.elements(); ++k) {
      new_bar[k] = d_h[k] * (1 - u[k]) * (1 - fresh[k] * fresh[k]);
    }
    const Floats by_new = ProductBack(c, s, new_bar, c.input(3).data<float>(), s.units);
    const auto of_state = [&](const Floats& rows, int64_t k) {
      return rows[static_cast<size_t>(k / s.units * s.row() + s.inputs + k % s.units)];
    };
    for (int64_t k = 0; k < s.elements(); ++k) {
      float* row = gate_bar + k / s.units * 2 * s.units + k % s.units;
      row[0] = of_state(by_new, k) * before[k] * r[k] * (1 - r[k]);
      row[s.units] = d_h[k] * (before[k] - fresh[k]) * u[k] * (1 - u[k]);
    }
    const Floats by_gates = ProductBack(c, s, gate_bar, c.input(2).data<float>(), 2 * s.units);
    for (int64_t k = 0; k < s.elements(); ++k) {
      d_before->data<float>()[k] =
          of_state(by_gates, k) + of_state(by_new, k) * r[k] + d_h[k] * u[k];
    }
    for (int64_t k = 0; k < s.batch * s.inputs; ++k) {
      const auto at = static_cast<size_t>(k / s.inputs * s.row() + k % s.inputs);
      d_x->data<float>()[k] = by_gates[at] + by_new[at];
    }
    return absl::OkStatus();
  }
};

Status CellShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, 2));
  WEFT_ASSIGN_OR_RETURN(const PartialShape before, c.WithRank(1, 2));
  for (int i = 0; i < 4; ++i) c.set_output(i, PartialShape({x.dim(0), before.dim(1)}));
  return absl::OkStatus();
}

Status CellGradShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape x, c.WithRank(0, 2));
  WEFT_ASSIGN_OR_RETURN(const PartialShape before, c.WithRank(1, 2));
  const int64_t units = before.dim(1);
  c.set_output(0, x);
  for (const int i : {1, 2}) c.set_output(i, PartialShape({x.dim(0), units}));
  c.set_output(3, PartialShape({x.dim(0), units < 0 ? -1 : 2 * units}));
  return absl::OkStatus();
}

void AddAll(OpSpec& spec, std::initializer_list<const char*> inputs,
            std::initializer_list<const char*> outputs) {
  for (const char* name : inputs) spec.Input(absl::StrCat(name, ": T"));
  for (const char* name : outputs) spec.Output(absl::StrCat(name, ": T"));
  spec.Attr("T: {float}");
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec cell("GRUBlockCell");
  cell.Doc(
      "One step of a gated recurrent unit: the reset gate r, the update gate u, the new values c, "
      "and the output h = u * h_prev + (1 - u) * c.");
  AddAll(cell, {"x", "h_prev", "w_ru", "w_c", "b_ru", "b_c"}, {"r", "u", "c", "h"});
  catalogue.Add(std::move(cell.Shape(CellShape).NoGradient().Kernel(MakeKernel<CellKernel>())));
  OpSpec grad("GRUBlockCellGrad");
  grad.Doc("The gradients of GRUBlockCell's x, h_prev and gates before their functions.");
  AddAll(grad, {"x", "h_prev", "w_ru", "w_c", "b_ru", "b_c", "r", "u", "c", "d_h"},
         {"d_x", "d_h_prev", "d_c_bar", "d_r_bar_u_bar"});
  catalogue.Add(
      std::move(grad.Shape(CellGradShape).NoGradient().Kernel(MakeKernel<CellGradKernel>())));
}

}  // namespace weft::ops::nn::gru_block
