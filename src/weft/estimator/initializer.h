// SPDX-License-Identifier: Apache-2.0
// Keras's initialisers: what the first values of weights are drawn from.
#pragma once

#include <string>

#include "base/status.h"
#include "net/json.h"
#include "weft/train/variable.h"

namespace weft::estimator {

// One initialiser by name, with its settings. A short name such as "he_normal" gives Keras's
// defaults; the functions below give others. Without a seed a weight's values follow the seed of
// its model, or are other ones at each start.
class Initializer {
 public:
  Initializer(const char* name) : Initializer(std::string(name)) {}  // NOLINT: a name is one
  Initializer(const std::string& name);                              // NOLINT: a name is one
  Initializer(std::string class_name, Json config)
      : class_name_(std::move(class_name)), config_(std::move(config)) {}

  const std::string& class_name() const { return class_name_; }
  // What adds the first value to a graph. `seed` is what is drawn with where the initialiser has
  // none; 0 draws anew each time. InvalidArgument for a name that there is not.
  StatusOr<train::Initializer> Make(int64_t seed) const;

  Json ToJson() const;
  // As Keras writes it: an object, or a name. InvalidArgument for a name that there is not.
  static StatusOr<Initializer> FromJson(const Json& json);

 private:
  double Number(const char* name, double fallback) const;
  StatusOr<train::Initializer> MakeScaled(int64_t seed) const;

  std::string class_name_;
  Json config_ = Json::MakeObject();
};

Initializer Constant(double value);
Initializer RandomNormal(double mean = 0, double stddev = 0.05, int64_t seed = 0);
Initializer RandomUniform(double minval = -0.05, double maxval = 0.05, int64_t seed = 0);
Initializer TruncatedNormal(double mean = 0, double stddev = 0.05, int64_t seed = 0);
// `mode` is fan_in, fan_out or fan_avg; `distribution` truncated_normal, untruncated_normal or
// uniform.
Initializer VarianceScaling(double scale = 1, const std::string& mode = "fan_in",
                            const std::string& distribution = "truncated_normal", int64_t seed = 0);
// A matrix of orthonormal rows or columns (Saxe et al. 2014).
Initializer Orthogonal(double gain = 1, int64_t seed = 0);
Initializer Identity(double gain = 1);

}  // namespace weft::estimator
