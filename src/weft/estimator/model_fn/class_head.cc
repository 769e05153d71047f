// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "absl/strings/str_cat.h"

#include "weft/estimator/checks.h"
#include "weft/estimator/graph_writing.h"
#include "weft/estimator/model_fn/head_losses.h"
#include "weft/estimator/vocabulary.h"

namespace weft::estimator {
namespace {

// The area under precision over recall as tf.compat.v1.metrics.auc has it, by trapezoids; `sums`
// are true and false positives, true and false negatives at each of the rising thresholds.
double PrecisionArea(const std::vector<std::vector<double>>& sums) {
  constexpr double kSmall = 1e-6;
  const std::vector<double>&tp = sums[0], &fp = sums[1], &fn = sums[3];
  double area = 0, last_recall = 0, last_precision = 0;
  for (size_t i = 0; i < tp.size(); ++i) {
    const double recall = (tp[i] + kSmall) / (tp[i] + fn[i] + kSmall);
    const double precision = (tp[i] + kSmall) / (tp[i] + fp[i] + kSmall);
    if (i > 0) area += (last_recall - recall) * (last_precision + precision) / 2;
    last_recall = recall;
    last_precision = precision;
  }
  return area;
}

class Classes final : public Head {
 public:
  Classes(int64_t count, HeadOptions options) : count_(count), options_(std::move(options)) {}
  int64_t logits_dimension() const override { return is_binary() ? 1 : count_; }

  StatusOr<EstimatorSpec> Spec(const ModelCall& call, Endpoint logits,
                               const TrainOpFn& train) const override {
    GraphBuilder& b = call.b();
    WEFT_RETURN_IF_ERROR(Check());
    WEFT_RETURN_IF_ERROR(b.status());
    EstimatorSpec spec;
    b.PushName("head");
    spec.predictions = PredictionsOf(call, logits);
    if (call.mode == Mode::kPredict) {
      spec.export_outputs = Exports(b, spec.predictions);
      b.PopName();
      WEFT_RETURN_IF_ERROR(b.status());
      return spec;
    }
    const Endpoint labels = LabelsOf(call);
    const HeadLoss loss = LossOf(call, logits, labels);
    spec.loss = loss.whole;
    if (call.mode == Mode::kEvaluate && b.ok()) {
      spec.eval_metrics = MetricsOf(b, spec.predictions, labels, loss);
    }
    b.PopName();
    WEFT_RETURN_IF_ERROR(AddTraining(call, train, &spec));
    return spec;
  }

 private:
  bool is_binary() const { return count_ == 2; }

  Status Check() const {
    if (count_ < 2) return InvalidArgument("There are ", count_, " classes, expected two or more");
    const auto words = static_cast<int64_t>(options_.label_vocabulary.size());
    if (words == 0 || words == count_) return absl::OkStatus();
    return InvalidArgument("label_vocabulary has ", words, " words for ", count_, " classes");
  }

  std::vector<std::string> Names() const {
    if (!options_.label_vocabulary.empty()) return options_.label_vocabulary;
    std::vector<std::string> names;
    for (int64_t i = 0; i < count_; ++i) names.push_back(absl::StrCat(i));
    return names;
  }

  // `row` [classes] for each row of `logits`.
  Endpoint Repeated(GraphBuilder& b, const Tensor& row, Endpoint logits) const {
    const Endpoint batch =
        b.Op("StridedSlice",
             {b.Op("Shape", {logits}), b.Constant(Tensor::Vector<int32_t>({0})),
              b.Constant(Tensor::Vector<int32_t>({1})), b.Constant(Tensor::Vector<int32_t>({1}))});
    const std::vector<Endpoint> times = {batch, b.Constant(Tensor::Vector<int32_t>({1}))};
    return b.Op("Tile", {b.Constant(row), b.Op("ConcatV2", {times, b.Scalar<int32_t>(0)})});
  }

  std::map<std::string, Endpoint> PredictionsOf(const ModelCall& call, Endpoint logits) const {
    GraphBuilder& b = call.b();
    std::map<std::string, Endpoint> p;
    p["logits"] = logits;
    Endpoint by_class = logits;
    if (is_binary()) {
      p["logistic"] = b.Op("Sigmoid", {logits}, {}, "logistic");
      const std::vector<Endpoint> both = {b.Op("ZerosLike", {logits}), logits};
      by_class = b.Op("ConcatV2", {both, b.Scalar<int32_t>(-1)});
    }
    p["probabilities"] = b.Op("Softmax", {by_class}, {}, "probabilities");
    const Endpoint likeliest = b.Op("ArgMax", {by_class, b.Scalar<int32_t>(-1)});
    p["class_ids"] = ExpandDim(b, likeliest, -1);
    if (call.mode != Mode::kPredict || !b.ok()) return p;
    p["classes"] = options_.label_vocabulary.empty()
                       ? b.Op("AsString", {p["class_ids"]}, {}, "str_classes")
                       : Vocabulary(options_.label_vocabulary)
                             .WordsOf(call.program, p["class_ids"], "class_string",
                                      Tensor::Scalar<std::string>("UNK"));
    const std::vector<std::string> names = Names();
    p["all_classes"] = Repeated(b, Tensor::FromSpan<std::string>(Shape{1, count_}, names), logits);
    std::vector<int32_t> ids(names.size());
    std::iota(ids.begin(), ids.end(), 0);
    p["all_class_ids"] = Repeated(b, Tensor::FromSpan<int32_t>(Shape{1, count_}, ids), logits);
    return p;
  }

  static std::map<std::string, train::Signature> Exports(GraphBuilder& b,
                                                         const std::map<std::string, Endpoint>& p) {
    const train::Signature classify = OfferedAs(
        b, "classify", {{"scores", p.at("probabilities")}, {"classes", p.at("all_classes")}});
    std::map<std::string, train::Signature> exports = {{"serving_default", classify},
                                                       {"classification", classify},
                                                       {"predict", OfferedAs(b, "predict", p)}};
    const auto logistic = p.find("logistic");
    if (logistic != p.end()) {
      exports["regression"] = OfferedAs(b, "regress", {{"outputs", logistic->second}});
    }
    return exports;
  }

  // int64 [batch, 1].
  Endpoint LabelsOf(const ModelCall& call) const {
    GraphBuilder& b = call.b();
    Endpoint labels = LabelsInShape(b, call.labels, 1);
    if (!b.ok()) return {};
    const bool is_text = TypeOf(labels) == DType::kString;
    if (is_text == options_.label_vocabulary.empty()) {
      b.Fail(InvalidArgument("The labels are ", DTypeName(TypeOf(labels)),
                             is_text ? ", and there is no label_vocabulary for them"
                                     : ", expected words of the label_vocabulary"));
      return {};
    }
    labels = is_text ? Vocabulary(options_.label_vocabulary)
                           .IdsOf(call.program, nullptr, labels, "class_id", -1)
                     : CastTo(b, labels, DType::kInt64);
    return InRange(b, labels, count_, "The labels have classes");
  }

  HeadLoss LossOf(const ModelCall& call, Endpoint logits, Endpoint labels) const {
    GraphBuilder& b = call.b();
    if (!b.ok()) return {};
    HeadLoss loss;
    if (is_binary()) {
      // max(x, 0) - x * z + log(1 + exp(-|x|)), which does not overflow. With choices and not Relu
      // and Abs, whose gradients at 0, where linear models begin, do not add up to sigmoid(0) - z.
      const Endpoint z = CastTo(b, labels, DType::kFloat);
      const Endpoint zeros = b.Op("ZerosLike", {logits});
      const Endpoint is_positive = b.Op("GreaterEqual", {logits, zeros});
      const Endpoint positive = b.Op("SelectV2", {is_positive, logits, zeros});
      const Endpoint low = b.Op("SelectV2", {is_positive, b.Op("Neg", {logits}), logits});
      const Endpoint large = b.Op("Sub", {positive, b.Op("Mul", {logits, z})});
      loss.each = b.Op("AddV2", {large, b.Op("Log1p", {b.Op("Exp", {low})})});
    } else {
      const Endpoint ids = ReshapeTo(b, labels, {-1});
      loss.each = ExpandDim(b, b.Op("SparseSoftmaxCrossEntropyWithLogits", {logits, ids}), -1);
    }
    loss.weights = WeightsOf(call, options_.weight_column, logits);
    loss.whole = ReducedLoss(b, loss.each, loss.weights, options_.loss_reduction);
    return loss;
  }

  std::map<std::string, EvalMetric> MetricsOf(GraphBuilder& b,
                                              const std::map<std::string, Endpoint>& p,
                                              Endpoint labels, const HeadLoss& loss) const {
    const Endpoint w = loss.weights, ids = p.at("class_ids");
    std::map<std::string, EvalMetric> metrics;
    metrics["accuracy"] = MeanOfValues(b, b.Op("Equal", {ids, labels}), w);
    metrics["average_loss"] = MeanOfValues(b, loss.each, w);
    if (!is_binary()) return metrics;
    const Endpoint logistic = p.at("logistic"), flat = ReshapeTo(b, w, {-1});
    metrics["prediction/mean"] = MeanOfValues(b, logistic, w);
    metrics["label/mean"] = MeanOfValues(b, labels, w);
    // What always saying the same class would reach.
    EvalMetric baseline = MeanOfValues(b, labels, w);
    baseline.result = [mean = baseline.result](const std::vector<std::vector<double>>& sums) {
      return std::max(mean(sums), 1 - mean(sums));
    };
    metrics["accuracy_baseline"] = baseline;
    const Endpoint truth = CastTo(b, labels, DType::kFloat), says = CastTo(b, ids, DType::kFloat);
    metrics["precision"] = MetricOf(b, Precision(), truth, says, flat);
    metrics["recall"] = MetricOf(b, Recall(), truth, says, flat);
    metrics["auc"] = MetricOf(b, Auc(), truth, logistic, flat);
    metrics["auc_precision_recall"] = metrics["auc"];
    metrics["auc_precision_recall"].result = PrecisionArea;
    return metrics;
  }

  const int64_t count_;
  const HeadOptions options_;
};

}  // namespace

std::shared_ptr<const Head> ClassHead(int64_t num_classes, const HeadOptions& options) {
  return std::make_shared<Classes>(num_classes, options);
}

}  // namespace weft::estimator
