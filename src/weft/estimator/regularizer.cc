// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/regularizer.h"

#include <vector>

#include "weft/estimator/graph_writing.h"
#include "weft/estimator/keras_object.h"

namespace weft::estimator {
namespace {

Endpoint SumAll(GraphBuilder& b, Endpoint x) {
  const int rank = b.ShapeOf(x).rank();
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  return Reduce(b, "Sum", x, axes);
}

double NumberOr(const Json& config, const char* name, double fallback) {
  const Json* found = config.Find(name);
  return found == nullptr ? fallback : found->AsDouble().value_or(fallback);
}

}  // namespace

Regularizer::Regularizer(const char* name) {
  const std::string text = name;
  if (text == "l1") *this = L1();
  if (text == "l2") *this = L2();
  if (text == "l1_l2") *this = L1L2(0.01, 0.01);
  if (text == "orthogonal_regularizer") *this = OrthogonalRows();
}

Endpoint Regularizer::RowProducts(GraphBuilder& b, Endpoint x) const {
  const Endpoint length = b.Op(
      "Sqrt", {b.Op("Maximum",
                    {Reduce(b, "Sum", b.Op("Square", {x}), {1}, true), NumberLike(b, x, 1e-12)})});
  const Endpoint rows = b.Op("RealDiv", {x, length});
  const Endpoint products = b.Op("MatMul", {rows, rows}, {{"transpose_b", true}});
  const int64_t size = b.ShapeOf(x).dim(0);
  const Endpoint zeros = b.Op("Fill", {IntVector(b, {size}), NumberLike(b, x, 0)});
  const Endpoint others = b.Op("MatrixSetDiag", {products, zeros});
  const double pairs = static_cast<double>(size) * (static_cast<double>(size) - 1) / 2;
  const Endpoint sum = SumAll(b, b.Op("Abs", {others}));
  return b.Op("Mul", {sum, NumberLike(b, x, first_ * 0.5 / (pairs > 0 ? pairs : 1))});
}

Endpoint Regularizer::Loss(GraphBuilder& b, Endpoint x) const {
  if (class_name_ == "OrthogonalRegularizer") {
    if (b.ShapeOf(x).rank() != 2 || b.ShapeOf(x).dim(0) < 0) {
      b.Fail(InvalidArgument("OrthogonalRegularizer needs a matrix, got shape ",
                             b.ShapeOf(x).ToString()));
      return {};
    }
    return RowProducts(b, x);
  }
  Endpoint loss;
  const auto add = [&](Endpoint term, double factor) {
    const Endpoint scaled = b.Op("Mul", {SumAll(b, term), NumberLike(b, x, factor)});
    loss = loss ? b.Op("AddV2", {loss, scaled}) : scaled;
  };
  if (first_ != 0) add(b.Op("Abs", {x}), first_);
  if (second_ != 0) add(b.Op("Square", {x}), second_);
  return loss ? loss : NumberLike(b, x, 0);
}

Json Regularizer::ToJson() const {
  if (empty()) return Json();
  Json config = Json::MakeObject();
  if (class_name_ == "OrthogonalRegularizer") {
    config.Set("factor", first_);
    config.Set("mode", "rows");
  } else {
    if (class_name_ != "L2") config.Set("l1", first_);
    if (class_name_ != "L1") config.Set("l2", second_);
  }
  return KerasObject("keras.regularizers", class_name_, std::move(config));
}

StatusOr<Regularizer> Regularizer::FromJson(const Json& json) {
  if (json.is_string()) {
    WEFT_ASSIGN_OR_RETURN(const std::string name, json.AsString());
    const Regularizer named(name.c_str());
    if (named.empty()) return InvalidArgument("There is no regularizer '", name, "'");
    return named;
  }
  WEFT_ASSIGN_OR_RETURN(const Json* class_name, json.At("class_name"));
  WEFT_ASSIGN_OR_RETURN(const std::string name, class_name->AsString());
  WEFT_ASSIGN_OR_RETURN(const Json* config, json.At("config"));
  if (name == "L1") return L1(NumberOr(*config, "l1", 0.01));
  if (name == "L2") return L2(NumberOr(*config, "l2", 0.01));
  if (name == "L1L2") return L1L2(NumberOr(*config, "l1", 0), NumberOr(*config, "l2", 0));
  if (name == "OrthogonalRegularizer") {
    const Json* mode = config->Find("mode");
    if (mode != nullptr && *mode != Json("rows")) {
      return Unimplemented("OrthogonalRegularizer is there for rows, not ", mode->Dump());
    }
    return OrthogonalRows(NumberOr(*config, "factor", 0.01));
  }
  return InvalidArgument("There is no regularizer '", name, "'");
}

}  // namespace weft::estimator
