// SPDX-License-Identifier: Apache-2.0
// Any bytes as the body and the path of a request.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "weft/serving/rest_api.h"
#include "weft/serving/rest_values.h"

namespace {

weft::train::Signature Wanted() {
  weft::train::Signature signature;
  signature.inputs["x"] = {.name = "x:0", .dtype = weft::DType::kFloat};
  signature.inputs["n"] = {.name = "n:0", .dtype = weft::DType::kInt8};
  signature.inputs["s"] = {.name = "s:0", .dtype = weft::DType::kString};
  return signature;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const signature = new weft::train::Signature(Wanted());
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(weft::serving::ParseRestPath("POST", text));
  static_cast<void>(weft::serving::ParseRestPath("GET", text));
  // Bodies that are near ones: the bytes stand for a value as well.
  for (const std::string& body :
       {std::string(text), absl::StrCat("{\"instances\": [", text, "]}"),
        absl::StrCat("{\"inputs\": {\"x\": ", text, ", \"n\": 1, \"s\": \"NaN\"}}"),
        absl::StrCat("{\"examples\": [{\"a\": ", text, "}]}")}) {
    const auto json = weft::serving::ParseRestBody(body);
    if (!json.ok()) continue;
    static_cast<void>(weft::serving::SignatureNameOf(*json));
    const auto inputs = weft::serving::ReadRestInputs(*json, *signature);
    if (inputs.ok()) {
      weft::serving::NamedTensors tensors(inputs->tensors.begin(), inputs->tensors.end());
      static_cast<void>(weft::serving::WriteRestOutputs(tensors, inputs->by_row));
    }
    tensorflow::serving::Input input;
    static_cast<void>(weft::serving::ReadRestExamples(*json, &input));
  }
  return 0;
}
