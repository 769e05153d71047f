// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/metric.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "weft/estimator/graph_writing.h"

namespace weft::estimator {
namespace {

using BatchSums = std::vector<std::vector<double>>;

double Ratio(double top, double bottom) { return bottom == 0 ? 0 : top / bottom; }

Endpoint SumUp(GraphBuilder& b, Endpoint x) { return Reduce(b, "Sum", ReshapeTo(b, x, {-1}), {0}); }

// `weights` [batch] as the shape of `values`, whose first axis is the batch.
Endpoint Spread(GraphBuilder& b, Endpoint weights, Endpoint values) {
  for (int rank = 1; rank < b.ShapeOf(values).rank(); ++rank) weights = ExpandDim(b, weights, -1);
  return b.Op("Mul", {weights, b.Op("OnesLike", {values})});
}

// The weighted mean of a value of each example.
class MeanMetric final : public Metric {
 public:
  using Each = std::function<Endpoint(GraphBuilder&, Endpoint targets, Endpoint predictions)>;
  MeanMetric(std::string name, Each each, bool root = false)
      : Metric(std::move(name)), each_(std::move(each)), root_(root) {}

  std::vector<Endpoint> Sums(GraphBuilder& b, Endpoint t, Endpoint p, Endpoint w) const override {
    const Endpoint each = each_(b, t, p);
    if (!b.ok()) return {};
    const Endpoint weights = Spread(b, w, each);
    return {SumUp(b, b.Op("Mul", {each, weights})), SumUp(b, weights)};
  }
  double Result(const BatchSums& sums) const override {
    const double mean = Ratio(sums[0][0], sums[1][0]);
    return root_ ? std::sqrt(mean) : mean;
  }

 private:
  const Each each_;
  const bool root_;
};

Endpoint AsFloat(GraphBuilder& b, Endpoint x) { return CastTo(b, x, DType::kFloat); }

Endpoint LikeliestClass(GraphBuilder& b, Endpoint x) {
  return b.Op("ArgMax", {x, b.Scalar<int32_t>(-1)});
}

// Targets that are numbers of classes, of the predictions' shape without the last axis.
Endpoint ClassTargets(GraphBuilder& b, Endpoint t, Endpoint p) {
  t = CastTo(b, t, DType::kInt64);
  if (b.ShapeOf(t).rank() == b.ShapeOf(p).rank()) {
    t = b.Op("Squeeze", {t}, {{"squeeze_dims", AttrValue::IntList{-1}}});
  }
  return t;
}

MeanMetric::Each AccuracyOfClasses(bool sparse) {
  return [sparse](GraphBuilder& b, Endpoint t, Endpoint p) {
    const Endpoint wanted = sparse ? ClassTargets(b, t, p) : LikeliestClass(b, t);
    return AsFloat(b, b.Op("Equal", {wanted, LikeliestClass(b, p)}));
  };
}

MeanMetric::Each AccuracyAbove(double threshold) {
  return [threshold](GraphBuilder& b, Endpoint t, Endpoint p) {
    const Endpoint says = AsFloat(b, b.Op("Greater", {p, NumberLike(b, p, threshold)}));
    const Endpoint right = AsFloat(b, b.Op("Equal", {AsFloat(b, t), says}));
    return Reduce(b, "Mean", right, {-1});
  };
}

MeanMetric::Each AmongTopK(int k, bool sparse) {
  return [k, sparse](GraphBuilder& b, Endpoint t, Endpoint p) {
    const int64_t classes = b.ShapeOf(p).dim(b.ShapeOf(p).rank() - 1);
    const Endpoint wanted = sparse ? ClassTargets(b, t, p) : LikeliestClass(b, t);
    return AsFloat(b, b.Op("InTopKV2", {ReshapeTo(b, p, {-1, classes}), ReshapeTo(b, wanted, {-1}),
                                        b.Scalar<int64_t>(k)}));
  };
}

// Counts at thresholds, as sums of [thresholds]: true and false positives, true and false
// negatives.
class Confusion : public Metric {
 public:
  Confusion(std::string name, std::vector<float> thresholds)
      : Metric(std::move(name)), thresholds_(std::move(thresholds)) {}

  std::vector<Endpoint> Sums(GraphBuilder& b, Endpoint t, Endpoint p, Endpoint w) const override {
    const Endpoint weights = ReshapeTo(b, Spread(b, w, p), {1, -1});
    const Endpoint truth =
        ReshapeTo(b, AsFloat(b, b.Op("Greater", {AsFloat(b, t), b.Scalar<float>(0.5f)})), {1, -1});
    const Endpoint levels = b.Constant(
        Tensor::FromSpan<float>(Shape{static_cast<int64_t>(thresholds_.size()), 1}, thresholds_));
    const Endpoint says = AsFloat(b, b.Op("Greater", {ReshapeTo(b, p, {1, -1}), levels}));
    const Endpoint one = b.Scalar<float>(1);
    const Endpoint untruth = b.Op("Sub", {one, truth}), denies = b.Op("Sub", {one, says});
    const auto count = [&](Endpoint what, Endpoint whether) {
      return Reduce(b, "Sum", b.Op("Mul", {b.Op("Mul", {what, whether}), weights}), {1});
    };
    return {count(says, truth), count(says, untruth), count(denies, untruth), count(denies, truth)};
  }

 protected:
  const std::vector<float> thresholds_;
};

class CountMetric final : public Confusion {
 public:
  using Of = std::function<double(double tp, double fp, double tn, double fn)>;
  CountMetric(std::string name, double threshold, Of of)
      : Confusion(std::move(name), {static_cast<float>(threshold)}), of_(std::move(of)) {}
  double Result(const BatchSums& s) const override {
    return of_(s[0][0], s[1][0], s[2][0], s[3][0]);
  }

 private:
  const Of of_;
};

std::vector<float> EvenThresholds(int count) {
  std::vector<float> levels = {-1e-7f};
  for (int i = 1; i < count - 1; ++i) {
    levels.push_back(static_cast<float>(i) / static_cast<float>(count - 1));
  }
  levels.push_back(1 + 1e-7f);
  return levels;
}

class AucMetric final : public Confusion {
 public:
  explicit AucMetric(const AucOptions& options)
      : Confusion(options.name, EvenThresholds(std::max(2, options.num_thresholds))),
        by_precision_(options.curve == "PR") {}

  double Result(const BatchSums& s) const override {
    return by_precision_ ? OfPrecision(s) : OfRates(s);
  }

 private:
  // Trapezoids under the curve of true over false positive rates.
  double OfRates(const BatchSums& s) const {
    double area = 0, last_x = 0, last_y = 0;
    for (size_t i = 0; i < thresholds_.size(); ++i) {
      const double y = Ratio(s[0][i], s[0][i] + s[3][i]);
      const double x = Ratio(s[1][i], s[1][i] + s[2][i]);
      if (i > 0) area += (last_x - x) * (last_y + y) / 2;
      last_x = x;
      last_y = y;
    }
    return area;
  }

  // Davis and Goadrich 2006: true positives lie on a line between thresholds, precision does not.
  double OfPrecision(const BatchSums& s) const {
    const std::vector<double>&tp = s[0], &fp = s[1], &fn = s[3];
    double area = 0;
    for (size_t i = 0; i + 1 < tp.size(); ++i) {
      const double more = tp[i] - tp[i + 1];
      const double told = tp[i] + fp[i], told_next = tp[i + 1] + fp[i + 1];
      const double slope = Ratio(more, std::max(told - told_next, 0.0));
      const double intercept = tp[i + 1] - slope * told_next;
      const double ratio = told > 0 && told_next > 0 ? told / told_next : 1;
      area +=
          Ratio(slope * (more + intercept * std::log(ratio)), std::max(tp[i + 1] + fn[i + 1], 0.0));
    }
    return area;
  }

  const bool by_precision_;
};

std::vector<float> InnerThresholds(int count) {
  if (count < 2) return {0.5f};
  std::vector<float> levels = EvenThresholds(count);
  levels.front() = 0;
  levels.back() = 1;
  return levels;
}

// Two rates, of counts at one threshold.
struct Rates {
  double best, kept;
};

class BestRateMetric final : public Confusion {
 public:
  using Of = std::function<Rates(double tp, double fp, double tn, double fn)>;
  BestRateMetric(std::string name, int num_thresholds, double least, Of of)
      : Confusion(std::move(name), InnerThresholds(num_thresholds)),
        least_(least),
        of_(std::move(of)) {}

  double Result(const BatchSums& s) const override {
    double best = 0;
    for (size_t i = 0; i < s[0].size(); ++i) {
      const Rates rates = of_(s[0][i], s[1][i], s[2][i], s[3][i]);
      if (rates.kept >= least_) best = std::max(best, rates.best);
    }
    return best;
  }

 private:
  const double least_;
  const Of of_;
};

// 1 - (squared errors) / (squares around the mean), the mean over the outputs.
class R2Metric final : public Metric {
 public:
  R2Metric() : Metric("r2_score") {}
  std::vector<Endpoint> Sums(GraphBuilder& b, Endpoint t, Endpoint p, Endpoint w) const override {
    t = AsFloat(b, t);
    const Endpoint weights = ExpandDim(b, w, -1);
    const auto sum = [&](Endpoint x) { return Reduce(b, "Sum", b.Op("Mul", {x, weights}), {0}); };
    return {sum(b.Op("Square", {t})), sum(t), sum(b.Op("SquaredDifference", {t, p})),
            sum(b.Op("OnesLike", {t}))};
  }
  double Result(const BatchSums& s) const override {
    double score = 0;
    for (size_t i = 0; i < s[0].size(); ++i) {
      const double mean = Ratio(s[1][i], s[3][i]);
      const double total = s[0][i] - s[1][i] * mean;
      score += total == 0 ? 0 : 1 - s[2][i] / total;
    }
    return s[0].empty() ? 0 : score / static_cast<double>(s[0].size());
  }
};

std::shared_ptr<Metric> Mean(const std::string& name, MeanMetric::Each each, bool root = false) {
  return std::make_shared<MeanMetric>(name, std::move(each), root);
}

// Which accuracy "accuracy" is.
std::shared_ptr<Metric> AccuracyFor(const std::string& name, const Loss& loss,
                                    const PartialShape& predictions) {
  const int rank = predictions.rank();
  if (loss.TakesClasses()) return Mean(name, AccuracyOfClasses(true));
  if (rank >= 1 && predictions.dim(rank - 1) == 1) return Mean(name, AccuracyAbove(0.5));
  if (loss.class_name() == "BinaryCrossentropy") return Mean(name, AccuracyAbove(0.5));
  return Mean(name, AccuracyOfClasses(false));
}

std::shared_ptr<Metric> CountFor(const std::string& name) {
  using D = double;
  if (name == "true_positives") {
    return std::make_shared<CountMetric>(name, 0.5, [](D tp, D, D, D) { return tp; });
  }
  if (name == "false_positives") {
    return std::make_shared<CountMetric>(name, 0.5, [](D, D fp, D, D) { return fp; });
  }
  if (name == "true_negatives") {
    return std::make_shared<CountMetric>(name, 0.5, [](D, D, D tn, D) { return tn; });
  }
  if (name == "false_negatives") {
    return std::make_shared<CountMetric>(name, 0.5, [](D, D, D, D fn) { return fn; });
  }
  if (name == "f1_score") {
    return std::make_shared<CountMetric>(
        name, 0.5, [](D tp, D fp, D, D fn) { return Ratio(2 * tp, 2 * tp + fp + fn); });
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<Metric> Auc(const AucOptions& options) {
  return std::make_shared<AucMetric>(options);
}
std::shared_ptr<Metric> Precision(double threshold, const std::string& name) {
  return std::make_shared<CountMetric>(
      name, threshold, [](double tp, double fp, double, double) { return Ratio(tp, tp + fp); });
}
std::shared_ptr<Metric> Recall(double threshold, const std::string& name) {
  return std::make_shared<CountMetric>(
      name, threshold, [](double tp, double, double, double fn) { return Ratio(tp, tp + fn); });
}
std::shared_ptr<Metric> SensitivityAtSpecificity(double least, int num_thresholds,
                                                 const std::string& name) {
  return std::make_shared<BestRateMetric>(name, num_thresholds, least,
                                          [](double tp, double fp, double tn, double fn) {
                                            return Rates{Ratio(tp, tp + fn), Ratio(tn, tn + fp)};
                                          });
}
std::shared_ptr<Metric> SpecificityAtSensitivity(double least, int num_thresholds,
                                                 const std::string& name) {
  return std::make_shared<BestRateMetric>(name, num_thresholds, least,
                                          [](double tp, double fp, double tn, double fn) {
                                            return Rates{Ratio(tn, tn + fp), Ratio(tp, tp + fn)};
                                          });
}
std::shared_ptr<Metric> PrecisionAtRecall(double least, int num_thresholds,
                                          const std::string& name) {
  return std::make_shared<BestRateMetric>(name, num_thresholds, least,
                                          [](double tp, double fp, double, double fn) {
                                            return Rates{Ratio(tp, tp + fp), Ratio(tp, tp + fn)};
                                          });
}
std::shared_ptr<Metric> RecallAtPrecision(double least, int num_thresholds,
                                          const std::string& name) {
  return std::make_shared<BestRateMetric>(name, num_thresholds, least,
                                          [](double tp, double fp, double, double fn) {
                                            return Rates{Ratio(tp, tp + fn), Ratio(tp, tp + fp)};
                                          });
}
std::shared_ptr<Metric> BinaryAccuracy(double threshold, const std::string& name) {
  return Mean(name, AccuracyAbove(threshold));
}
std::shared_ptr<Metric> TopKAccuracy(int k, bool sparse, const std::string& name) {
  return Mean(name, AmongTopK(k, sparse));
}
std::shared_ptr<Metric> MeanOf(const Loss& loss, const std::string& name) {
  const bool cosine = loss.class_name() == "CosineSimilarity";
  return Mean(name.empty() ? loss.function_name() : name,
              [loss, cosine](GraphBuilder& b, Endpoint t, Endpoint p) {
                const Endpoint each = loss.OfEach(b, t, p);
                return cosine ? b.Op("Neg", {each}) : each;  // the metric is the similarity itself
              });
}

StatusOr<std::shared_ptr<Metric>> MakeMetric(const std::string& name, const Loss& loss,
                                             const PartialShape& predictions) {
  if (name == "accuracy" || name == "acc") return AccuracyFor(name, loss, predictions);
  if (name == "binary_accuracy") return BinaryAccuracy();
  if (name == "categorical_accuracy") return Mean(name, AccuracyOfClasses(false));
  if (name == "sparse_categorical_accuracy") return Mean(name, AccuracyOfClasses(true));
  if (name == "top_k_categorical_accuracy") return TopKAccuracy(5, false, name);
  if (name == "sparse_top_k_categorical_accuracy") return TopKAccuracy(5, true, name);
  if (name == "precision") return Precision();
  if (name == "recall") return Recall();
  if (name == "auc") return Auc();
  if (name == "r2_score") return std::shared_ptr<Metric>(std::make_shared<R2Metric>());
  if (name == "root_mean_squared_error") {
    return Mean(
        name, [](GraphBuilder& b, Endpoint t, Endpoint p) { return Loss("mse").OfEach(b, t, p); },
        true);
  }
  if (std::shared_ptr<Metric> count = CountFor(name)) return count;
  const Loss by_name(name);
  if (by_name.IsKnown()) return MeanOf(by_name, name);
  return NotFound("There is no metric '", name, "'");
}

}  // namespace weft::estimator
