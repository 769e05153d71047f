// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/graph_writing.h"
#include "weft/estimator/model_fn/head_losses.h"

namespace weft::estimator {
namespace {

class Regression final : public Head {
 public:
  Regression(int64_t dimension, HeadOptions options)
      : dimension_(dimension), options_(std::move(options)) {}
  int64_t logits_dimension() const override { return dimension_; }

  StatusOr<EstimatorSpec> Spec(const ModelCall& call, Endpoint logits,
                               const TrainOpFn& train) const override {
    GraphBuilder& b = call.b();
    if (dimension_ < 1) return InvalidArgument("label_dimension is ", dimension_);
    if (!options_.label_vocabulary.empty()) {
      return InvalidArgument("A regression has no label_vocabulary");
    }
    WEFT_RETURN_IF_ERROR(b.status());
    EstimatorSpec spec;
    b.PushName("head");
    spec.predictions["predictions"] = logits;
    if (call.mode == Mode::kPredict) {
      const train::Signature regress = OfferedAs(b, "regress", {{"outputs", logits}});
      spec.export_outputs = {{"serving_default", regress},
                             {"regression", regress},
                             {"predict", OfferedAs(b, "predict", spec.predictions)}};
      b.PopName();
      WEFT_RETURN_IF_ERROR(b.status());
      return spec;
    }
    Endpoint labels = LabelsInShape(b, call.labels, dimension_);
    if (b.ok() && TypeOf(labels) == DType::kString) {
      b.Fail(InvalidArgument("The labels are string, expected numbers"));
    }
    WEFT_RETURN_IF_ERROR(b.status());
    labels = CastTo(b, labels, DType::kFloat);
    HeadLoss loss;
    loss.each = b.Op("SquaredDifference", {labels, logits});
    loss.weights = WeightsOf(call, options_.weight_column, logits);
    loss.whole = ReducedLoss(b, loss.each, loss.weights, options_.loss_reduction);
    spec.loss = loss.whole;
    if (call.mode == Mode::kEvaluate) {
      spec.eval_metrics["average_loss"] = MeanOfValues(b, loss.each, loss.weights);
      spec.eval_metrics["prediction/mean"] = MeanOfValues(b, logits, loss.weights);
      spec.eval_metrics["label/mean"] = MeanOfValues(b, labels, loss.weights);
    }
    b.PopName();
    WEFT_RETURN_IF_ERROR(AddTraining(call, train, &spec));
    return spec;
  }

 private:
  const int64_t dimension_;
  const HeadOptions options_;
};

}  // namespace

std::shared_ptr<const Head> RegressionHead(int64_t label_dimension, const HeadOptions& options) {
  return std::make_shared<Regression>(label_dimension, options);
}

}  // namespace weft::estimator
