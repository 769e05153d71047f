// SPDX-License-Identifier: Apache-2.0
// Metrics of classes that count how often each was taken for which, and correlations.
#include <algorithm>
#include <functional>
#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/metric.h"

namespace weft::estimator {
namespace {

using BatchSums = std::vector<std::vector<double>>;
constexpr double kEpsilon = 1e-7;  // Keras's

double Ratio(double top, double bottom) { return bottom == 0 ? 0 : top / bottom; }

// One sum: weights of examples by their class and the predicted one, [classes, classes].
class IouMetric final : public Metric {
 public:
  using ToClasses = std::function<Endpoint(GraphBuilder&, Endpoint)>;
  IouMetric(std::string name, int64_t classes, std::vector<int64_t> counted, ToClasses targets,
            ToClasses predictions)
      : Metric(std::move(name)),
        classes_(classes),
        counted_(std::move(counted)),
        targets_(std::move(targets)),
        predictions_(std::move(predictions)) {}

  std::vector<Endpoint> Sums(GraphBuilder& b, Endpoint t, Endpoint p, Endpoint w) const override {
    t = targets_(b, t);
    p = predictions_(b, p);
    if (!b.ok()) return {};
    for (int rank = 1; rank < b.ShapeOf(t).rank(); ++rank) w = ExpandDim(b, w, -1);
    w = b.Op("Mul", {w, b.Op("OnesLike", {CastTo(b, t, DType::kFloat)})});
    const auto rows = [&](Endpoint x) {
      return b.Op("OneHot", {ReshapeTo(b, CastTo(b, x, DType::kInt64), {-1}),
                             b.Scalar<int32_t>(static_cast<int32_t>(classes_)), b.Scalar<float>(1),
                             b.Scalar<float>(0)});
    };
    const Endpoint weighted = b.Op("Mul", {rows(t), ReshapeTo(b, w, {-1, 1})});
    const Endpoint counts = b.Op("MatMul", {weighted, rows(p)}, {{"transpose_a", true}});
    return {ReshapeTo(b, counts, {classes_ * classes_})};
  }

  // The mean over the classes that there were.
  double Result(const BatchSums& sums) const override {
    double total = 0;
    int valid = 0;
    for (const int64_t i : counted_) {
      double row = 0, column = 0;
      for (int64_t j = 0; j < classes_; ++j) {
        row += sums[0][i * classes_ + j];
        column += sums[0][j * classes_ + i];
      }
      const double both = sums[0][i * classes_ + i];
      if (row + column - both <= 0) continue;
      total += both / (row + column - both);
      ++valid;
    }
    return Ratio(total, valid);
  }

 private:
  const int64_t classes_;
  const std::vector<int64_t> counted_;
  const ToClasses targets_, predictions_;
};

// Sums of each class: true positives, false positives, false negatives.
class FBetaMetric final : public Metric {
 public:
  explicit FBetaMetric(const FBetaOptions& options) : Metric(options.name), o_(options) {}

  std::vector<Endpoint> Sums(GraphBuilder& b, Endpoint t, Endpoint p, Endpoint w) const override {
    t = CastTo(b, t, TypeOf(p));
    Endpoint says;
    if (o_.threshold < 0) {  // the likeliest class, if any is likely at all
      const Endpoint most = Reduce(b, "Max", p, {-1}, true);
      const Endpoint there = b.Op("Greater", {b.Op("Abs", {p}), NumberLike(b, p, 1e-9)});
      says = b.Op("LogicalAnd", {b.Op("GreaterEqual", {p, most}), there});
    } else {
      says = b.Op("Greater", {p, NumberLike(b, p, o_.threshold)});
    }
    says = CastTo(b, says, TypeOf(p));
    const Endpoint one = NumberLike(b, p, 1), weights = ExpandDim(b, w, 1);
    const std::vector<int64_t> axes =
        o_.average == "micro" ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0};
    const auto sum = [&](Endpoint x, Endpoint y) {
      return Reduce(b, "Sum", b.Op("Mul", {b.Op("Mul", {x, y}), weights}), axes);
    };
    return {sum(says, t), sum(says, b.Op("Sub", {one, t})), sum(b.Op("Sub", {one, says}), t)};
  }

  double Result(const BatchSums& s) const override {
    const double square = o_.beta * o_.beta;
    double total = 0, weight = 0;
    for (size_t i = 0; i < s[0].size(); ++i) {
      const double precision = s[0][i] / (s[0][i] + s[1][i] + kEpsilon);
      const double recall = s[0][i] / (s[0][i] + s[2][i] + kEpsilon);
      const double score =
          (1 + square) * precision * recall / (square * precision + recall + kEpsilon);
      const double share = o_.average == "weighted" ? s[0][i] + s[2][i] : 1;
      total += score * share;
      weight += share;
    }
    return Ratio(total, weight);
  }

 private:
  const FBetaOptions o_;
};

// The mean over examples of how their outputs go with the targets.
class PearsonMetric final : public Metric {
 public:
  explicit PearsonMetric(std::string name) : Metric(std::move(name)) {}
  std::vector<Endpoint> Sums(GraphBuilder& b, Endpoint t, Endpoint p, Endpoint w) const override {
    const auto off_mean = [&](Endpoint x) {
      return b.Op("Sub", {x, Reduce(b, "Mean", x, {-1}, true)});
    };
    const auto mean = [&](Endpoint x) { return Reduce(b, "Mean", x, {-1}); };
    t = off_mean(CastTo(b, t, TypeOf(p)));
    p = off_mean(p);
    const Endpoint spread = b.Op("Mul", {mean(b.Op("Square", {t})), mean(b.Op("Square", {p}))});
    const Endpoint each = b.Op("Mul", {mean(b.Op("Mul", {t, p})), b.Op("Rsqrt", {spread})});
    for (int rank = 1; rank < b.ShapeOf(each).rank(); ++rank) w = ExpandDim(b, w, -1);
    w = b.Op("Mul", {w, b.Op("OnesLike", {each})});
    const auto sum = [&](Endpoint x) { return Reduce(b, "Sum", ReshapeTo(b, x, {-1}), {0}); };
    return {sum(b.Op("Mul", {each, w})), sum(w)};
  }
  double Result(const BatchSums& s) const override { return Ratio(s[0][0], s[1][0]); }
};

Endpoint Likeliest(GraphBuilder& b, Endpoint x) {
  return b.Op("ArgMax", {x, b.Scalar<int32_t>(-1)});
}

IouMetric::ToClasses ClassesOf(bool sparse) {
  if (!sparse) return Likeliest;
  return [](GraphBuilder&, Endpoint x) { return x; };
}

}  // namespace

std::shared_ptr<Metric> Iou(int64_t num_classes, std::vector<int64_t> target_class_ids,
                            const IouOptions& options) {
  return std::make_shared<IouMetric>(options.name, num_classes, std::move(target_class_ids),
                                     ClassesOf(options.sparse_y_true),
                                     ClassesOf(options.sparse_y_pred));
}

std::shared_ptr<Metric> MeanIou(int64_t num_classes, const IouOptions& options) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < num_classes; ++i) all.push_back(i);
  return Iou(num_classes, std::move(all), options);
}

std::shared_ptr<Metric> BinaryIou(double threshold, std::vector<int64_t> target_class_ids,
                                  const std::string& name) {
  return std::make_shared<IouMetric>(
      name, 2, std::move(target_class_ids), ClassesOf(true),
      [threshold](GraphBuilder& b, Endpoint p) {
        return b.Op("GreaterEqual", {p, NumberLike(b, p, threshold)});
      });
}

std::shared_ptr<Metric> FBetaScore(const FBetaOptions& options) {
  return std::make_shared<FBetaMetric>(options);
}

std::shared_ptr<Metric> PearsonCorrelation(const std::string& name) {
  return std::make_shared<PearsonMetric>(name);
}

}  // namespace weft::estimator
