// SPDX-License-Identifier: Apache-2.0
// A layer's configuration under Keras's names, read and written by one description of its fields.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/json.h"
#include "weft/estimator/constraint.h"
#include "weft/estimator/initializer.h"
#include "weft/estimator/regularizer.h"

namespace weft::estimator {

// Sizes along several axes, as Keras takes them: one number for all axes, or one for each.
class Sizes {
 public:
  Sizes() = default;
  Sizes(int64_t all) : values_{all} {}                               // NOLINT: reads as Keras's
  Sizes(std::initializer_list<int64_t> values) : values_(values) {}  // NOLINT: so does a list
  explicit Sizes(std::vector<int64_t> values) : values_(std::move(values)) {}

  bool empty() const { return values_.empty(); }
  const std::vector<int64_t>& values() const { return values_; }
  // One for each of `rank` axes; InvalidArgument names `what` where that does not fit, or where a
  // size is below `least`.
  StatusOr<std::vector<int64_t>> ForAxes(int rank, const char* what, int64_t least = 1) const;

 private:
  std::vector<int64_t> values_;
};

// What an activation is called; empty is "linear".
using ActivationName = std::string;

class Layer;

// Told every field of a layer's options by the layer's Fields(), to write it or to read it.
class ConfigFields {
 public:
  virtual ~ConfigFields() = default;
  // The version of Keras that is written for; 0 when fields are read.
  virtual int keras() const = 0;
  virtual void Field(const char* name, bool& value) = 0;
  virtual void Field(const char* name, int64_t& value) = 0;
  virtual void Field(const char* name, double& value) = 0;
  virtual void Field(const char* name, std::string& value) = 0;
  virtual void Field(const char* name, Sizes& value) = 0;
  virtual void Field(const char* name, Initializer& value) = 0;
  virtual void Field(const char* name, Regularizer& value) = 0;
  virtual void Field(const char* name, Constraint& value) = 0;
  virtual void Activation(const char* name, ActivationName& value) = 0;
  // A number that may be absent, which -1 stands for.
  virtual void OptionalSize(const char* name, int64_t& value) = 0;
  // Any value, for what no other field describes.
  virtual void Raw(const char* name, Json& value) = 0;
  // What weft has one value for: written as it is; another one is refused on reading.
  virtual void Fixed(const char* name, const Json& value) = 0;
};

// Writes fields as members of an object.
class ConfigWriter final : public ConfigFields {
 public:
  explicit ConfigWriter(int keras) : keras_(keras) {}
  int keras() const override { return keras_; }
  void Field(const char* name, bool& value) override { config_.Set(name, value); }
  void Field(const char* name, int64_t& value) override { config_.Set(name, value); }
  void Field(const char* name, double& value) override { config_.Set(name, value); }
  void Field(const char* name, std::string& value) override { config_.Set(name, value); }
  void Field(const char* name, Sizes& value) override;
  void Field(const char* name, Initializer& value) override;
  void Field(const char* name, Regularizer& value) override;
  void Field(const char* name, Constraint& value) override;
  void Activation(const char* name, ActivationName& value) override;
  void OptionalSize(const char* name, int64_t& value) override;
  void Raw(const char* name, Json& value) override { config_.Set(name, value); }
  void Fixed(const char* name, const Json& value) override { config_.Set(name, value); }

  Json Take() { return std::move(config_); }

 private:
  const int keras_;
  Json config_ = Json::MakeObject();
};

// Reads fields; those that are absent or null keep their defaults. The first error sticks.
class ConfigReader final : public ConfigFields {
 public:
  explicit ConfigReader(const Json& config) : config_(config) {}
  int keras() const override { return 0; }
  void Field(const char* name, bool& value) override;
  void Field(const char* name, int64_t& value) override;
  void Field(const char* name, double& value) override;
  void Field(const char* name, std::string& value) override;
  void Field(const char* name, Sizes& value) override;
  void Field(const char* name, Initializer& value) override;
  void Field(const char* name, Regularizer& value) override;
  void Field(const char* name, Constraint& value) override;
  void Activation(const char* name, ActivationName& value) override;
  void OptionalSize(const char* name, int64_t& value) override { Field(name, value); }
  void Raw(const char* name, Json& value) override;
  void Fixed(const char* name, const Json& value) override;

  const Status& status() const { return status_; }

 private:
  // Null when absent, null, or after an error.
  const Json* Find(const char* name) const;
  template <typename T>
  void Keep(const char* name, StatusOr<T> read, T* value);

  const Json& config_;
  Status status_;
};

}  // namespace weft::estimator
