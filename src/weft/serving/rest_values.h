// SPDX-License-Identifier: Apache-2.0
// Tensors and examples as TensorFlow Serving's REST interface writes them in JSON.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"
#include "proto/serving/inference.pb.h"
#include "weft/serving/predict.h"
#include "weft/train/meta_graph.h"

namespace weft::serving {

// What a client sends is bounded by the port; nesting by this.
inline constexpr int kMostJsonDepth = 256;

// The object of a request's body, where NaN, Infinity and -Infinity may stand for numbers.
// InvalidArgument with line and column.
StatusOr<Json> ParseRestBody(absl::string_view text);
// "signature_name", or "" where there is none.
StatusOr<std::string> SignatureNameOf(const Json& body);

struct RestInputs {
  std::map<std::string, Tensor> tensors;
  bool by_row = false;  // "instances" was given, not "inputs"
};
// InvalidArgument, mostly in TensorFlow Serving's words, says what does not fit the signature.
StatusOr<RestInputs> ReadRestInputs(const Json& body, const train::Signature& signature);
// {"predictions": [...]} with a value a row, or {"outputs": ...}. InvalidArgument for outputs whose
// rows differ, or of a type that JSON cannot hold.
StatusOr<std::string> WriteRestOutputs(const NamedTensors& outputs, bool by_row);

// The value of each row, as an element of "predictions": the same errors.
StatusOr<std::vector<std::string>> WriteRestRows(const NamedTensors& outputs);

// "examples" and "context". InvalidArgument names the feature that is no such thing.
Status ReadRestExamples(const Json& body, tensorflow::serving::Input* input);
// {"results": [[["label", 0.5], ...], ...]}
std::string WriteRestClasses(const tensorflow::serving::ClassificationResult& result);
// {"results": [0.5, ...]}
std::string WriteRestValues(const tensorflow::serving::RegressionResult& result);
// {"error": "..."}
std::string WriteRestError(const Status& status);

}  // namespace weft::serving
