// SPDX-License-Identifier: Apache-2.0
// Keras's losses.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "net/json.h"
#include "weft/graph/builder.h"

namespace weft::estimator {

// A loss by name with its settings: "mse", "binary_crossentropy" and such give Keras's defaults,
// the functions below others. Losses of examples are averaged over the batch
// ("sum_over_batch_size").
class Loss {
 public:
  Loss(const char* name) : Loss(std::string(name)) {}  // NOLINT: a name is one
  Loss(const std::string& name);                       // NOLINT: a name is one
  Loss(std::string class_name, Json config)
      : class_name_(std::move(class_name)), config_(std::move(config)) {}

  const std::string& class_name() const { return class_name_; }
  // Whether there is a loss of this name.
  bool IsKnown() const;
  // Keras's name of its function: "mean_squared_error".
  std::string function_name() const;
  // Whether targets are numbers of classes (int64), one axis fewer than predictions.
  bool TakesClasses() const {
    return class_name_ == "SparseCategoricalCrossentropy" ||
           class_name_ == "CategoricalGeneralizedCrossEntropy";
  }
  // The loss of each example (or step): predictions' shape without the last axis. InvalidArgument
  // in the builder's status for a loss that there is not.
  Endpoint OfEach(GraphBuilder& b, Endpoint targets, Endpoint predictions) const;
  // The scalar to be made small: the mean of OfEach, each weighted by `weights`, which broadcasts
  // from the left ([batch], or empty).
  Endpoint OfBatch(GraphBuilder& b, Endpoint targets, Endpoint predictions, Endpoint weights) const;
  // A copy with one more of Keras's settings.
  Loss With(const std::string& setting, const Json& value) const {
    Loss copy = *this;
    copy.config_.Set(setting, value);
    return copy;
  }

 private:
  double NumberOf(const char* name, double fallback) const;
  bool Flag(const char* name, bool fallback) const;
  Endpoint CrossEntropy(GraphBuilder& b, Endpoint targets, Endpoint predictions) const;
  Endpoint BinaryEach(GraphBuilder& b, Endpoint targets, Endpoint predictions) const;
  Endpoint Focal(GraphBuilder& b, Endpoint targets, Endpoint predictions) const;
  Endpoint Overlap(GraphBuilder& b, Endpoint targets, Endpoint predictions) const;
  Endpoint Generalized(GraphBuilder& b, Endpoint targets, Endpoint predictions) const;

  std::string class_name_;
  Json config_ = Json::MakeObject();
};

// `reduction` is sum_over_batch_size, sum or mean_with_sample_weight.
Loss WithReduction(const Loss& loss, const std::string& reduction);
Loss Huber(double delta = 1);
Loss BinaryCrossentropy(bool from_logits = false, double label_smoothing = 0);
Loss CategoricalCrossentropy(bool from_logits = false, double label_smoothing = 0);
Loss SparseCategoricalCrossentropy(bool from_logits = false);
// Of masks: along `axis` (with none one loss of the whole batch). Tversky's alpha weighs what is
// missed, beta what is too much.
Loss Dice(const std::vector<int64_t>& axis = {});
Loss Tversky(double alpha = 0.5, double beta = 0.5, const std::vector<int64_t>& axis = {});
// For labels that may be wrong: between cross entropy (q toward 0) and absolute error (1).
Loss CategoricalGeneralizedCrossEntropy(double q = 0.5);
Loss BinaryFocalCrossentropy(double alpha = 0.25, double gamma = 2, bool from_logits = false);
Loss CategoricalFocalCrossentropy(double alpha = 0.25, double gamma = 2, bool from_logits = false);

}  // namespace weft::estimator
