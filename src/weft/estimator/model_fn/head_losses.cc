// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/model_fn/head_losses.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "weft/estimator/graph_writing.h"

namespace weft::estimator {

Endpoint LabelsInShape(GraphBuilder& b, Endpoint labels, int64_t dimension) {
  if (!labels) {
    b.Fail(
        InvalidArgument("The input function gives no labels, expected [batch, ", dimension, "]"));
    return {};
  }
  const PartialShape shape = b.ShapeOf(labels);
  const bool is_vector = shape.rank() == 1 && dimension == 1;
  const bool is_matrix = shape.rank() == 2 && (shape.dim(1) == dimension || shape.dim(1) < 0);
  if (!is_vector && !is_matrix) {
    b.Fail(InvalidArgument("The labels have shape ", shape.ToString(), ", expected [batch, ",
                           dimension, "]", dimension == 1 ? " or [batch]" : ""));
    return {};
  }
  return is_vector ? ExpandDim(b, labels, -1)
                   : b.Op("EnsureShape", {labels}, {{"shape", PartialShape{-1, dimension}}});
}

Endpoint WeightsOf(const ModelCall& call, const std::string& column, Endpoint logits) {
  GraphBuilder& b = call.b();
  if (column.empty()) return b.Op("OnesLike", {SliceLast(b, logits, 0, 1)});
  const Feature weights = call.Columns().FeatureOf(column);
  if (!b.ok()) return {};
  const PartialShape shape = b.ShapeOf(weights.values);
  if (weights.is_sparse() || shape.rank() != 2 || TypeOf(weights.values) == DType::kString) {
    b.Fail(InvalidArgument("Weight column '", column, "': expected one number an example"));
    return {};
  }
  return b.Op("EnsureShape", {CastTo(b, weights.values, DType::kFloat)},
              {{"shape", PartialShape{-1, 1}}});
}

Endpoint ReducedLoss(GraphBuilder& b, Endpoint each, Endpoint weights, LossReduction reduction) {
  const Endpoint weighted = ReshapeTo(b, b.Op("Mul", {each, weights}), {-1});
  return Reduce(b, reduction == LossReduction::kSum ? "Sum" : "Mean", weighted, {0});
}

Status AddTraining(const ModelCall& call, const TrainOpFn& train, EstimatorSpec* spec) {
  if (call.mode != Mode::kTrain) return call.b().status();
  GraphBuilder& b = call.b();
  spec->loss = b.Op("Identity", {spec->loss}, {}, "loss");  // hooks may fetch "loss:0"
  call.program.AddSummary(b.Op("ScalarSummary", {b.Scalar<std::string>("loss"), spec->loss}));
  WEFT_RETURN_IF_ERROR(b.status());
  WEFT_ASSIGN_OR_RETURN(spec->train_op, train(call.program, spec->loss));
  return b.status();
}

train::Signature OfferedAs(GraphBuilder& b, const char* method,
                           const std::map<std::string, Endpoint>& outputs) {
  train::Signature signature = train::MakeSignature(b, {}, outputs);
  signature.method = absl::StrCat("tensorflow/serving/", method);
  return signature;
}

TrainOpFn MinimizeWith(OptimizerMaker maker) {
  return [maker = std::move(maker)](train::Program& program, Endpoint loss) {
    return maker()->Minimize(program, loss);
  };
}

}  // namespace weft::estimator
