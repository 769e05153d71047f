// SPDX-License-Identifier: Apache-2.0
// Keras's metrics over streams of batches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/json.h"
#include "weft/estimator/loss.h"
#include "weft/graph/builder.h"
#include "weft/tensor/tensor.h"

namespace weft::estimator {

// Of each batch the graph computes sums; the metric adds them up and makes its number of them. So a
// metric has no variables, and counts what its own Fit or Evaluate has seen. Not thread-safe.
class Metric {
 public:
  explicit Metric(std::string name) : name_(std::move(name)) {}
  virtual ~Metric() = default;
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  // Adds nodes for the batch's sums: float tensors of fixed shapes. `weights` is [batch]. Once for
  // each graph part.
  virtual std::vector<Endpoint> Sums(GraphBuilder& b, Endpoint targets, Endpoint predictions,
                                     Endpoint weights) const = 0;
  // The metric of sums over all batches; as many as Sums gives, flat.
  virtual double Result(const std::vector<std::vector<double>>& sums) const = 0;

 private:
  std::string name_;
};

// By Keras's name: "accuracy" (which of the accuracies is meant follows from `loss` and the
// predictions' shape), "binary_accuracy", "categorical_accuracy", "sparse_categorical_accuracy",
// "top_k_categorical_accuracy", "sparse_top_k_categorical_accuracy", "precision", "recall", "auc",
// "true_positives" and its three kin, "root_mean_squared_error", "r2_score", "f1_score", or any
// loss's name. NotFound for another one.
StatusOr<std::shared_ptr<Metric>> MakeMetric(const std::string& name, const Loss& loss,
                                             const PartialShape& predictions);

struct AucOptions {
  int num_thresholds = 200;
  std::string curve = "ROC";  // or "PR"
  std::string name = "auc";
};
std::shared_ptr<Metric> Auc(const AucOptions& options = {});
// Of predictions above `threshold`.
std::shared_ptr<Metric> Precision(double threshold = 0.5, const std::string& name = "precision");
std::shared_ptr<Metric> Recall(double threshold = 0.5, const std::string& name = "recall");
std::shared_ptr<Metric> BinaryAccuracy(double threshold = 0.5,
                                       const std::string& name = "binary_accuracy");
// Whether the class is among the k likeliest; targets are numbers of classes, or one-hot.
std::shared_ptr<Metric> TopKAccuracy(int k = 5, bool sparse = true,
                                     const std::string& name = "top_k_categorical_accuracy");
// The best of one rate at a threshold that keeps the other at `least` or above; thresholds lie
// evenly between 0 and 1.
std::shared_ptr<Metric> SensitivityAtSpecificity(
    double least, int num_thresholds = 200, const std::string& name = "sensitivity_at_specificity");
std::shared_ptr<Metric> SpecificityAtSensitivity(
    double least, int num_thresholds = 200, const std::string& name = "specificity_at_sensitivity");
std::shared_ptr<Metric> PrecisionAtRecall(double least, int num_thresholds = 200,
                                          const std::string& name = "precision_at_recall");
std::shared_ptr<Metric> RecallAtPrecision(double least, int num_thresholds = 200,
                                          const std::string& name = "recall_at_precision");
// What a class and its predictions have in common, as a share of both together; the mean over the
// classes asked for that there were. Sparse ones are numbers of classes; of others the likeliest
// class counts.
struct IouOptions {
  bool sparse_y_true = true, sparse_y_pred = true;
  std::string name = "mean_io_u";
};
std::shared_ptr<Metric> Iou(int64_t num_classes, std::vector<int64_t> target_class_ids,
                            const IouOptions& options = {});
std::shared_ptr<Metric> MeanIou(int64_t num_classes, const IouOptions& options = {});
// Predictions of at least `threshold` are of class 1.
std::shared_ptr<Metric> BinaryIou(double threshold = 0.5,
                                  std::vector<int64_t> target_class_ids = {0, 1},
                                  const std::string& name = "binary_io_u");
// The harmonic mean of precision and recall, which counts beta^2 times; of [batch, classes].
struct FBetaOptions {
  double beta = 1;
  std::string average = "macro";  // over classes; or "micro", or "weighted" by the targets
  double threshold = -1;          // below 0: the likeliest class
  std::string name = "fbeta_score";
};
std::shared_ptr<Metric> FBetaScore(const FBetaOptions& options = {});
std::shared_ptr<Metric> PearsonCorrelation(const std::string& name = "pearson_correlation");
// The mean of the loss of each example.
std::shared_ptr<Metric> MeanOf(const Loss& loss, const std::string& name = "");

}  // namespace weft::estimator
