// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/loss.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/layer_names.h"

namespace weft::estimator {
namespace {

constexpr double kEpsilon = 1e-7;  // Keras's

const std::map<std::string, std::string>& LossNames() {
  static const auto* const names = new std::map<std::string, std::string>{
      {"mse", "MeanSquaredError"},
      {"mae", "MeanAbsoluteError"},
      {"mape", "MeanAbsolutePercentageError"},
      {"msle", "MeanSquaredLogarithmicError"},
      {"mean_squared_error", "MeanSquaredError"},
      {"mean_absolute_error", "MeanAbsoluteError"},
      {"mean_absolute_percentage_error", "MeanAbsolutePercentageError"},
      {"mean_squared_logarithmic_error", "MeanSquaredLogarithmicError"},
      {"huber", "Huber"},
      {"huber_loss", "Huber"},
      {"log_cosh", "LogCosh"},
      {"logcosh", "LogCosh"},
      {"hinge", "Hinge"},
      {"squared_hinge", "SquaredHinge"},
      {"categorical_hinge", "CategoricalHinge"},
      {"kl_divergence", "KLDivergence"},
      {"kld", "KLDivergence"},
      {"poisson", "Poisson"},
      {"cosine_similarity", "CosineSimilarity"},
      {"binary_crossentropy", "BinaryCrossentropy"},
      {"categorical_crossentropy", "CategoricalCrossentropy"},
      {"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy"},
      {"dice", "Dice"},
      {"tversky", "Tversky"},
      {"categorical_generalized_cross_entropy", "CategoricalGeneralizedCrossEntropy"},
      {"binary_focal_crossentropy", "BinaryFocalCrossentropy"},
      {"categorical_focal_crossentropy", "CategoricalFocalCrossentropy"}};
  return *names;
}

// Expressions of one graph.
struct Writer {
  GraphBuilder& b;
  Endpoint like;
  Endpoint n(double value) const { return NumberLike(b, like, value); }
  Endpoint one(const char* op, Endpoint x) const { return b.Op(op, {x}); }
  Endpoint two(const char* op, Endpoint x, Endpoint y) const { return b.Op(op, {x, y}); }
  Endpoint add(Endpoint x, Endpoint y) const { return two("AddV2", x, y); }
  Endpoint sub(Endpoint x, Endpoint y) const { return two("Sub", x, y); }
  Endpoint mul(Endpoint x, Endpoint y) const { return two("Mul", x, y); }
  Endpoint div(Endpoint x, Endpoint y) const { return two("RealDiv", x, y); }
  Endpoint log(Endpoint x) const { return one("Log", x); }
  Endpoint least(Endpoint x, double value) const { return two("Maximum", x, n(value)); }
  Endpoint clip(Endpoint x, double low, double high) const {
    return two("Minimum", least(x, low), n(high));
  }
  Endpoint mean(Endpoint x) const { return Reduce(b, "Mean", x, {-1}); }
  Endpoint sum(Endpoint x, bool keep = false) const { return Reduce(b, "Sum", x, {-1}, keep); }
};

using Formula = std::function<Endpoint(const Writer& w, Endpoint t, Endpoint p)>;

Endpoint Unit(const Writer& w, Endpoint x) {
  const Endpoint squares = w.least(w.sum(w.one("Square", x), true), 1e-12);
  return w.mul(x, w.one("Rsqrt", squares));
}

// 0 and 1 as -1 and 1; other targets stay. Keras asks whether all are 0 or 1.
Endpoint Signs(const Writer& w, Endpoint t) {
  GraphBuilder& b = w.b;
  const Endpoint zero_or_one =
      b.Op("LogicalOr", {b.Op("Equal", {t, w.n(0)}), b.Op("Equal", {t, w.n(1)})});
  std::vector<int64_t> axes;
  for (int i = 0; i < b.ShapeOf(t).rank(); ++i) axes.push_back(i);
  const Endpoint all = Reduce(b, "All", zero_or_one, axes);
  return b.Op("SelectV2", {all, w.sub(w.mul(t, w.n(2)), w.n(1)), t});
}

// Those without settings.
const std::map<std::string, Formula>& Formulas() {
  static const auto* const formulas = new std::map<std::string, Formula>{
      {"MeanSquaredError", [](const Writer& w, Endpoint t,
                              Endpoint p) { return w.mean(w.two("SquaredDifference", p, t)); }},
      {"MeanAbsoluteError",
       [](const Writer& w, Endpoint t, Endpoint p) { return w.mean(w.one("Abs", w.sub(p, t))); }},
      {"MeanAbsolutePercentageError",
       [](const Writer& w, Endpoint t, Endpoint p) {
         const Endpoint share = w.div(w.sub(t, p), w.least(w.one("Abs", t), kEpsilon));
         return w.mul(w.mean(w.one("Abs", share)), w.n(100));
       }},
      {"MeanSquaredLogarithmicError",
       [](const Writer& w, Endpoint t, Endpoint p) {
         const auto logged = [&](Endpoint x) { return w.log(w.add(w.least(x, kEpsilon), w.n(1))); };
         return w.mean(w.two("SquaredDifference", logged(p), logged(t)));
       }},
      {"LogCosh",
       [](const Writer& w, Endpoint t, Endpoint p) {
         const Endpoint off = w.sub(p, t);
         const Endpoint soft = w.one("Softplus", w.mul(off, w.n(-2)));
         return w.mean(w.sub(w.add(off, soft), w.n(std::log(2.0))));
       }},
      {"Hinge",
       [](const Writer& w, Endpoint t, Endpoint p) {
         return w.mean(w.least(w.sub(w.n(1), w.mul(Signs(w, t), p)), 0));
       }},
      {"SquaredHinge",
       [](const Writer& w, Endpoint t, Endpoint p) {
         return w.mean(w.one("Square", w.least(w.sub(w.n(1), w.mul(Signs(w, t), p)), 0)));
       }},
      {"CategoricalHinge",
       [](const Writer& w, Endpoint t, Endpoint p) {
         const Endpoint right = w.sum(w.mul(t, p));
         const Endpoint wrong = Reduce(w.b, "Max", w.mul(w.sub(w.n(1), t), p), {-1});
         return w.least(w.add(w.sub(wrong, right), w.n(1)), 0);
       }},
      {"KLDivergence",
       [](const Writer& w, Endpoint t, Endpoint p) {
         const Endpoint from = w.clip(t, kEpsilon, 1), to = w.clip(p, kEpsilon, 1);
         return w.sum(w.mul(from, w.log(w.div(from, to))));
       }},
      {"Poisson",
       [](const Writer& w, Endpoint t, Endpoint p) {
         return w.mean(w.sub(p, w.mul(t, w.log(w.add(p, w.n(kEpsilon))))));
       }},
      {"CosineSimilarity", [](const Writer& w, Endpoint t, Endpoint p) {
         return w.one("Neg", w.sum(w.mul(Unit(w, t), Unit(w, p))));
       }}};
  return *formulas;
}

// The input of the `op` (Softmax, Sigmoid) that gave `x`: its logits, as Keras finds them. Empty if
// none did.
Endpoint LogitsBehind(Endpoint x, const char* op) {
  if (!x || x.node->op() != op) return {};
  return x.node->input(0);
}

}  // namespace

Loss::Loss(const std::string& name) : class_name_(name) {
  const auto found = LossNames().find(name);
  if (found != LossNames().end()) class_name_ = found->second;
}

bool Loss::IsKnown() const {
  return std::any_of(LossNames().begin(), LossNames().end(),
                     [this](const auto& name) { return name.second == class_name_; });
}

std::string Loss::function_name() const {
  if (class_name_ == "KLDivergence") return "kl_divergence";
  return SnakeCase(class_name_);
}

double Loss::NumberOf(const char* name, double fallback) const {
  const Json* found = config_.Find(name);
  return found == nullptr ? fallback : found->AsDouble().value_or(fallback);
}
bool Loss::Flag(const char* name, bool fallback) const {
  const Json* found = config_.Find(name);
  return found == nullptr ? fallback : found->AsBool().value_or(fallback);
}

Endpoint Loss::BinaryEach(GraphBuilder& b, Endpoint t, Endpoint p) const {
  const Writer w{b, p};
  Endpoint logits = Flag("from_logits", false) ? p : LogitsBehind(p, "Sigmoid");
  if (logits) {
    // max(x, 0) - x t + log(1 + exp(-|x|)), whose gradient is sigmoid(x) - t at 0 too, as Relu's
    // and Abs' there would not make it.
    const Endpoint zeros = w.one("ZerosLike", logits);
    const Endpoint is_positive = w.two("GreaterEqual", logits, zeros);
    const Endpoint positive = b.Op("SelectV2", {is_positive, logits, zeros});
    const Endpoint low = b.Op("SelectV2", {is_positive, w.one("Neg", logits), logits});
    return w.add(w.sub(positive, w.mul(logits, t)), w.one("Softplus", low));
  }
  const Endpoint q = w.clip(p, kEpsilon, 1 - kEpsilon);
  const Endpoint yes = w.mul(t, w.log(w.add(q, w.n(kEpsilon))));
  const Endpoint no = w.mul(w.sub(w.n(1), t), w.log(w.add(w.sub(w.n(1), q), w.n(kEpsilon))));
  return w.one("Neg", w.add(yes, no));
}

Endpoint Loss::CrossEntropy(GraphBuilder& b, Endpoint t, Endpoint p) const {
  const Writer w{b, p};
  const int64_t classes = b.ShapeOf(p).dim(b.ShapeOf(p).rank() - 1);
  const PartialShape shape = b.ShapeOf(p);
  const Endpoint logits = Flag("from_logits", false) ? p : LogitsBehind(p, "Softmax");
  if (TakesClasses()) {
    const Endpoint scores = logits ? logits : w.log(w.clip(p, kEpsilon, 1 - kEpsilon));
    Node* loss = b.AddNode("SparseSoftmaxCrossEntropyWithLogits",
                           {ReshapeTo(b, scores, {-1, classes}), ReshapeTo(b, t, {-1})});
    if (loss == nullptr || shape.rank() == 2) return {loss, 0};
    return b.Op("Reshape", {Endpoint{loss, 0}, b.Op("Shape", {t})});
  }
  if (logits) {
    Node* loss = b.AddNode("SoftmaxCrossEntropyWithLogits",
                           {ReshapeTo(b, logits, {-1, classes}), ReshapeTo(b, t, {-1, classes})});
    if (loss == nullptr || shape.rank() == 2) return {loss, 0};
    return b.Op("Reshape", {Endpoint{loss, 0}, b.Op("Shape", {w.sum(t)})});
  }
  const Endpoint q = w.clip(w.div(p, w.sum(p, true)), kEpsilon, 1 - kEpsilon);
  return w.one("Neg", w.sum(w.mul(t, w.log(q))));
}

Endpoint Loss::Focal(GraphBuilder& b, Endpoint t, Endpoint p) const {
  const Writer w{b, p};
  const double alpha = NumberOf("alpha", 0.25), gamma = NumberOf("gamma", 2);
  const bool from_logits = Flag("from_logits", false);
  if (class_name_ == "CategoricalFocalCrossentropy") {
    Endpoint q = from_logits ? w.one("Softmax", p) : w.div(p, w.sum(p, true));
    q = w.clip(q, kEpsilon, 1 - kEpsilon);
    const Endpoint entropy = w.one("Neg", w.mul(t, w.log(q)));
    const Endpoint factor = w.mul(w.two("Pow", w.sub(w.n(1), q), w.n(gamma)), w.n(alpha));
    return w.sum(w.mul(factor, entropy));
  }
  const Endpoint q = from_logits ? w.one("Sigmoid", p) : p;
  const Endpoint right = w.add(w.mul(t, q), w.mul(w.sub(w.n(1), t), w.sub(w.n(1), q)));
  const Endpoint factor = w.two("Pow", w.sub(w.n(1), right), w.n(gamma));
  Endpoint loss = w.mul(factor, BinaryEach(b, t, p));
  if (Flag("apply_class_balancing", false)) {
    const Endpoint weight = w.add(w.mul(t, w.n(alpha)), w.mul(w.sub(w.n(1), t), w.n(1 - alpha)));
    loss = w.mul(weight, loss);
  }
  return w.mean(loss);
}

// 1 - the share of what both have in what either has, along "axis": a scalar without one.
Endpoint Loss::Overlap(GraphBuilder& b, Endpoint t, Endpoint p) const {
  const Writer w{b, p};
  std::vector<int64_t> axes;
  const Json* given = config_.Find("axis");
  if (given != nullptr && given->is_array()) {
    for (const Json& axis : given->items()) axes.push_back(axis.AsInt().value_or(0));
  } else {
    for (int i = 0; i < b.ShapeOf(p).rank(); ++i) axes.push_back(i);
  }
  const auto sum = [&](Endpoint x) { return Reduce(b, "Sum", x, axes); };
  const Endpoint both = sum(w.mul(t, p));
  Endpoint share;
  if (class_name_ == "Dice") {
    share = w.div(w.mul(both, w.n(2)), w.add(w.add(sum(t), sum(p)), w.n(kEpsilon)));
  } else {
    const Endpoint missed = w.mul(sum(w.mul(t, w.sub(w.n(1), p))), w.n(NumberOf("alpha", 0.5)));
    const Endpoint wrong = w.mul(sum(w.mul(p, w.sub(w.n(1), t))), w.n(NumberOf("beta", 0.5)));
    share = w.div(both, w.add(w.add(both, w.add(missed, wrong)), w.n(kEpsilon)));
  }
  return w.sub(w.n(1), share);
}

// (1 - p^q) / q of the probability of the right class.
Endpoint Loss::Generalized(GraphBuilder& b, Endpoint t, Endpoint p) const {
  const Writer w{b, p};
  const PartialShape shape = b.ShapeOf(p);
  const double q = NumberOf("q", 0.5);
  const Endpoint depth = b.Scalar<int32_t>(static_cast<int32_t>(shape.dim(shape.rank() - 1)));
  const Endpoint right = b.Op("OneHot", {t, depth, w.n(1), w.n(0)});
  const Endpoint of_right = w.sum(w.mul(p, right));
  const Endpoint power = w.two("Pow", of_right, w.n(q));
  return w.mul(w.sub(w.n(1), power), w.n(1 / q));
}

Endpoint Loss::OfEach(GraphBuilder& b, Endpoint t, Endpoint p) const {
  if (!b.ok()) return {};
  const Writer w{b, p};
  if (!TakesClasses()) t = CastTo(b, t, TypeOf(p));
  const double smoothing = NumberOf("label_smoothing", 0);
  if (smoothing != 0) {
    const bool binary =
        class_name_ == "BinaryCrossentropy" || class_name_ == "BinaryFocalCrossentropy";
    const PartialShape shape = b.ShapeOf(p);
    const double classes =
        binary ? 2 : static_cast<double>(std::max<int64_t>(1, shape.dim(shape.rank() - 1)));
    t = w.add(w.mul(t, w.n(1 - smoothing)), w.n(smoothing / classes));
  }
  const auto formula = Formulas().find(class_name_);
  if (formula != Formulas().end()) return formula->second(w, t, p);
  if (class_name_ == "Huber") {
    const double delta = NumberOf("delta", 1);
    const Endpoint off = w.one("Abs", w.sub(p, t));
    const Endpoint near = w.mul(w.one("Square", off), w.n(0.5));
    const Endpoint far = w.sub(w.mul(off, w.n(delta)), w.n(0.5 * delta * delta));
    return w.mean(b.Op("SelectV2", {b.Op("LessEqual", {off, w.n(delta)}), near, far}));
  }
  if (class_name_ == "Dice" || class_name_ == "Tversky") return Overlap(b, t, p);
  if (class_name_ == "CategoricalGeneralizedCrossEntropy") return Generalized(b, t, p);
  if (class_name_ == "BinaryCrossentropy") return w.mean(BinaryEach(b, t, p));
  if (class_name_ == "CategoricalCrossentropy" || TakesClasses()) return CrossEntropy(b, t, p);
  if (class_name_ == "BinaryFocalCrossentropy" || class_name_ == "CategoricalFocalCrossentropy") {
    return Focal(b, t, p);
  }
  b.Fail(InvalidArgument("There is no loss '", class_name_, "'"));
  return {};
}

Endpoint Loss::OfBatch(GraphBuilder& b, Endpoint targets, Endpoint predictions,
                       Endpoint weights) const {
  Endpoint each = OfEach(b, targets, predictions);
  if (!b.ok()) return {};
  const Writer w{b, each};
  std::string reduction = "sum_over_batch_size";
  if (const Json* found = config_.Find("reduction"))
    reduction = found->AsString().value_or(reduction);
  std::vector<int64_t> axes;
  for (int i = 0; i < b.ShapeOf(each).rank(); ++i) axes.push_back(i);
  if (weights && axes.empty()) {  // one loss of the whole batch counts for each of its examples
    each = w.mul(each, b.Op("OnesLike", {CastTo(b, weights, TypeOf(each))}));
    for (int i = 0; i < b.ShapeOf(each).rank(); ++i) axes.push_back(i);
  }
  const Endpoint count = CastTo(b, b.Op("Size", {each}), TypeOf(each));
  Endpoint total = count;
  if (weights) {
    weights = CastTo(b, weights, TypeOf(each));
    for (int rank = b.ShapeOf(weights).rank(); rank < b.ShapeOf(each).rank(); ++rank) {
      weights = ExpandDim(b, weights, -1);
    }
    each = w.mul(each, weights);
    if (reduction == "mean_with_sample_weight") {
      const Endpoint spread = w.mul(weights, b.Op("OnesLike", {each}));
      total = Reduce(b, "Sum", spread, axes);
    }
  }
  const Endpoint sum = Reduce(b, "Sum", each, axes);
  if (reduction == "sum") return sum;
  if (reduction == "sum_over_batch_size" || reduction == "auto" ||
      reduction == "mean_with_sample_weight") {
    return b.Op("DivNoNan", {sum, total});
  }
  b.Fail(InvalidArgument("There is no reduction '", reduction, "' of a loss"));
  return {};
}

namespace {

Loss LossWith(const char* class_name,
              std::initializer_list<std::pair<const char*, Json>> settings) {
  Json config = Json::MakeObject();
  for (const auto& [name, value] : settings) config.Set(name, value);
  return Loss(class_name, std::move(config));
}

Loss Along(const Loss& loss, const std::vector<int64_t>& axes) {
  if (axes.empty()) return loss;
  Json list = Json::MakeArray();
  for (const int64_t axis : axes) list.Append(axis);
  return loss.With("axis", list);
}

}  // namespace

Loss WithReduction(const Loss& loss, const std::string& reduction) {
  return loss.With("reduction", reduction);
}
Loss Huber(double delta) { return LossWith("Huber", {{"delta", delta}}); }
Loss BinaryCrossentropy(bool from_logits, double label_smoothing) {
  return LossWith("BinaryCrossentropy",
                  {{"from_logits", from_logits}, {"label_smoothing", label_smoothing}});
}
Loss CategoricalCrossentropy(bool from_logits, double label_smoothing) {
  return LossWith("CategoricalCrossentropy",
                  {{"from_logits", from_logits}, {"label_smoothing", label_smoothing}});
}
Loss SparseCategoricalCrossentropy(bool from_logits) {
  return LossWith("SparseCategoricalCrossentropy", {{"from_logits", from_logits}});
}
Loss Dice(const std::vector<int64_t>& axis) { return Along(Loss("Dice"), axis); }
Loss Tversky(double alpha, double beta, const std::vector<int64_t>& axis) {
  return Along(LossWith("Tversky", {{"alpha", alpha}, {"beta", beta}}), axis);
}
Loss CategoricalGeneralizedCrossEntropy(double q) {
  return LossWith("CategoricalGeneralizedCrossEntropy", {{"q", q}});
}
Loss BinaryFocalCrossentropy(double alpha, double gamma, bool from_logits) {
  return LossWith("BinaryFocalCrossentropy",
                  {{"alpha", alpha}, {"gamma", gamma}, {"from_logits", from_logits}});
}
Loss CategoricalFocalCrossentropy(double alpha, double gamma, bool from_logits) {
  return LossWith("CategoricalFocalCrossentropy",
                  {{"alpha", alpha}, {"gamma", gamma}, {"from_logits", from_logits}});
}

}  // namespace weft::estimator
