// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/constraint.h"

#include <utility>

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/keras_object.h"

namespace weft::estimator {
namespace {

constexpr double kSmall = 1e-7;  // Keras's epsilon

StatusOr<Axes> AxesOf(const Json& config) {
  const Json* found = config.Find("axis");
  if (found == nullptr) return Axes{0};
  if (!found->is_array()) {
    WEFT_ASSIGN_OR_RETURN(const int64_t axis, found->AsInt());
    return Axes{axis};
  }
  Axes axes;
  for (const Json& item : found->items()) {
    WEFT_ASSIGN_OR_RETURN(const int64_t axis, item.AsInt());
    axes.push_back(axis);
  }
  return axes;
}

double ValueOr(const Json& config, const char* name, double fallback) {
  const Json* found = config.Find(name);
  return found == nullptr ? fallback : found->AsDouble().value_or(fallback);
}

}  // namespace

Constraint::Constraint(const char* name) {
  const std::string text = name;
  if (text == "non_neg") *this = NonNeg();
  if (text == "max_norm") *this = MaxNorm();
  if (text == "unit_norm") *this = UnitNorm();
  if (text == "min_max_norm") *this = MinMaxNorm();
}

Endpoint Constraint::Apply(GraphBuilder& b, Endpoint weight) const {
  const auto number = [&](double value) { return NumberLike(b, weight, value); };
  if (class_name_ == "NonNeg") return b.Op("Maximum", {weight, number(0)});
  const Endpoint length = b.Op("Sqrt", {Reduce(b, "Sum", b.Op("Square", {weight}), axes_, true)});
  const Endpoint divisor = b.Op("AddV2", {length, number(kSmall)});
  if (class_name_ == "UnitNorm") return b.Op("RealDiv", {weight, divisor});
  const Endpoint clipped = b.Op("Minimum", {b.Op("Maximum", {length, number(min_)}), number(max_)});
  const Endpoint wanted = rate_ == 1 ? clipped
                                     : b.Op("AddV2", {b.Op("Mul", {clipped, number(rate_)}),
                                                      b.Op("Mul", {length, number(1 - rate_)})});
  return b.Op("Mul", {weight, b.Op("RealDiv", {wanted, divisor})});
}

Json Constraint::ToJson() const {
  if (empty()) return Json();
  Json config = Json::MakeObject();
  if (class_name_ == "MinMaxNorm") {
    config.Set("min_value", min_);
    config.Set("rate", rate_);
  }
  if (class_name_ != "NonNeg" && class_name_ != "UnitNorm") config.Set("max_value", max_);
  if (class_name_ != "NonNeg") {
    Json axes = Json::MakeArray();
    for (const int64_t axis : axes_) axes.Append(axis);
    config.Set("axis", axes_.size() == 1 ? Json(axes_[0]) : std::move(axes));
  }
  return KerasObject("keras.constraints", class_name_, std::move(config));
}

StatusOr<Constraint> Constraint::FromJson(const Json& json) {
  if (json.is_string()) {
    WEFT_ASSIGN_OR_RETURN(const std::string name, json.AsString());
    const Constraint named(name.c_str());
    if (named.empty()) return InvalidArgument("There is no constraint '", name, "'");
    return named;
  }
  WEFT_ASSIGN_OR_RETURN(const Json* class_name, json.At("class_name"));
  WEFT_ASSIGN_OR_RETURN(const std::string name, class_name->AsString());
  WEFT_ASSIGN_OR_RETURN(const Json* config, json.At("config"));
  WEFT_ASSIGN_OR_RETURN(Axes axes, AxesOf(*config));
  if (name == "NonNeg") return NonNeg();
  if (name == "MaxNorm") return MaxNorm(ValueOr(*config, "max_value", 2), std::move(axes));
  if (name == "UnitNorm") return UnitNorm(std::move(axes));
  if (name == "MinMaxNorm") {
    return MinMaxNorm(ValueOr(*config, "min_value", 0), ValueOr(*config, "max_value", 1),
                      ValueOr(*config, "rate", 1), std::move(axes));
  }
  return InvalidArgument("There is no constraint '", name, "'");
}

}  // namespace weft::estimator
