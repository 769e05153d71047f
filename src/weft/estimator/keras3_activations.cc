// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/keras3_activations.h"

#include <map>
#include <string>

#include "weft/estimator/graph_writing.h"

namespace weft::estimator {
namespace {

// Expressions of x.
struct Of {
  GraphBuilder& b;
  Endpoint x;
  Endpoint n(double value) const { return NumberLike(b, x, value); }
  Endpoint one(const char* op, Endpoint y) const { return b.Op(op, {y}); }
  Endpoint two(const char* op, Endpoint y, Endpoint z) const { return b.Op(op, {y, z}); }
  Endpoint select(Endpoint which, Endpoint yes, Endpoint no) const {
    return b.Op("SelectV2", {which, yes, no});
  }
  Endpoint clip(Endpoint y, double low, double high) const {
    return two("Minimum", two("Maximum", y, n(low)), n(high));
  }
  Endpoint zeros() const { return one("ZerosLike", x); }
};

Endpoint Glu(const Of& f) {
  const PartialShape shape = f.b.ShapeOf(f.x);
  const int64_t size = shape.rank() < 1 ? -1 : shape.dim(shape.rank() - 1);
  if (size < 0 || size % 2 != 0) {
    f.b.Fail(InvalidArgument("glu needs an input whose last size is even, got ", shape.ToString()));
    return {};
  }
  const Endpoint gate = f.one("Sigmoid", SliceLast(f.b, f.x, size / 2, size / 2));
  return f.two("Mul", SliceLast(f.b, f.x, 0, size / 2), gate);
}

Endpoint HardSilu(const Of& f) {
  const Endpoint gate = f.one("Relu6", f.two("AddV2", f.x, f.n(3)));
  return f.two("Mul", f.x, f.two("Mul", gate, f.n(1.0 / 6)));
}

Endpoint HardShrink(const Of& f) {
  return f.select(f.two("Greater", f.one("Abs", f.x), f.n(0.5)), f.x, f.zeros());
}

Endpoint SoftShrink(const Of& f) {
  const Endpoint less = f.two("Less", f.x, f.n(-0.5));
  const Endpoint below = f.select(less, f.two("AddV2", f.x, f.n(0.5)), f.zeros());
  return f.select(f.two("Greater", f.x, f.n(0.5)), f.two("Sub", f.x, f.n(0.5)), below);
}

Endpoint LogSigmoid(const Of& f) { return f.one("Neg", f.one("Softplus", f.one("Neg", f.x))); }

Endpoint Squareplus(const Of& f) {
  const Endpoint root = f.one("Sqrt", f.two("AddV2", f.one("Square", f.x), f.n(4)));
  return f.two("Mul", f.two("AddV2", f.x, root), f.n(0.5));
}

Endpoint SparsePlus(const Of& f) {
  const Endpoint bend = f.two("Mul", f.one("Square", f.two("AddV2", f.x, f.n(1))), f.n(0.25));
  const Endpoint bent = f.select(f.two("Less", f.x, f.n(1)), bend, f.x);
  return f.select(f.two("LessEqual", f.x, f.n(-1)), f.zeros(), bent);
}

Endpoint SparseSigmoid(const Of& f) {
  return f.clip(f.two("Mul", f.two("AddV2", f.x, f.n(1)), f.n(0.5)), 0, 1);
}

Endpoint Celu(const Of& f) { return f.one("Elu", f.x); }  // with Keras's alpha, 1
Endpoint HardTanh(const Of& f) { return f.clip(f.x, -1, 1); }
Endpoint TanhShrink(const Of& f) { return f.two("Sub", f.x, f.one("Tanh", f.x)); }

using Function = Endpoint (*)(const Of& f);

const std::map<std::string, Function>& Functions() {
  static const auto* const functions =
      new std::map<std::string, Function>{{"celu", Celu},
                                          {"glu", Glu},
                                          {"hard_shrink", HardShrink},
                                          {"hard_silu", HardSilu},
                                          {"hard_swish", HardSilu},
                                          {"hard_tanh", HardTanh},
                                          {"log_sigmoid", LogSigmoid},
                                          {"soft_shrink", SoftShrink},
                                          {"sparse_plus", SparsePlus},
                                          {"sparse_sigmoid", SparseSigmoid},
                                          {"squareplus", Squareplus},
                                          {"tanh_shrink", TanhShrink}};
  return *functions;
}

}  // namespace

Endpoint ActivateAsKeras3(GraphBuilder& b, const ActivationName& name, Endpoint x) {
  const auto found = Functions().find(name);
  return found == Functions().end() ? Endpoint() : found->second({b, x});
}

}  // namespace weft::estimator
