// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/rest_values.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/serving/rest_api.h"

namespace weft::serving {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

train::Signature Of(std::vector<std::pair<std::string, DType>> inputs) {
  train::Signature signature;
  for (auto& [name, dtype] : inputs) signature.inputs[name] = {.name = name + ":0", .dtype = dtype};
  return signature;
}

StatusOr<RestInputs> Read(absl::string_view text, const train::Signature& signature) {
  WEFT_ASSIGN_OR_RETURN(const Json body, ParseRestBody(text));
  return ReadRestInputs(body, signature);
}

std::string Refusal(absl::string_view text, const train::Signature& signature) {
  return std::string(Read(text, signature).status().message());
}

TEST(RestValues, RowsAndColumnsBecomeTensors) {
  const train::Signature one = Of({{"x", DType::kFloat}});
  const StatusOr<RestInputs> rows = Read(R"({"instances": [[1, 2.5], [-3, NaN]]})", one);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(rows->by_row);
  const Tensor& x = rows->tensors.at("x");
  EXPECT_EQ(x.shape(), (Shape{2, 2}));
  EXPECT_EQ(x.data<float>()[1], 2.5f);
  EXPECT_TRUE(std::isnan(x.data<float>()[3]));
  const train::Signature two = Of({{"a", DType::kInt64}, {"s", DType::kString}});
  const StatusOr<RestInputs> columns =
      Read(R"({"inputs": {"a": 7, "s": [["NaN"], [{"b64": "AP8="}]]}})", two);
  ASSERT_TRUE(columns.ok()) << columns.status();
  EXPECT_EQ(columns->tensors.at("a").scalar<int64_t>(), 7);
  EXPECT_EQ(columns->tensors.at("s").shape(), (Shape{2, 1}));
  EXPECT_THAT(columns->tensors.at("s").span<std::string>(),
              ElementsAre("NaN", std::string("\0\xff", 2)));
}

TEST(RestValues, WhatDoesNotFitIsTold) {
  const train::Signature one = Of({{"x", DType::kInt8}});
  EXPECT_THAT(Refusal("", one), HasSubstr("The document is empty"));
  EXPECT_THAT(Refusal("[1]", one), HasSubstr("Is not object"));
  EXPECT_THAT(Refusal("{}", one), HasSubstr("Missing 'inputs' or 'instances' key"));
  EXPECT_THAT(Refusal(R"({"instances": 1})", one), HasSubstr("list/array"));
  EXPECT_THAT(Refusal(R"({"instances": []})", one), HasSubstr("No values"));
  EXPECT_THAT(Refusal(R"({"instances": [1], "inputs": 1})", one), HasSubstr("only one of"));
  EXPECT_THAT(Refusal(R"({"instances": [300]})", one), HasSubstr("expected type: int8"));
  EXPECT_THAT(Refusal(R"({"instances": [1.5]})", one), HasSubstr("Type: Number"));
  EXPECT_THAT(Refusal(R"({"instances": [[1], [1, 2]]})", one), HasSubstr("Expecting shape [1]"));
  EXPECT_THAT(Refusal(R"({"inputs": [[1], 2]})", one), HasSubstr("incorrect level: 2"));
  EXPECT_THAT(Refusal(R"({"instances": [{"y": 1}]})", one), HasSubstr("not have named input: y"));
  // Outer lists promise a great many elements, of which few are there.
  EXPECT_THAT(Refusal(R"({"inputs": [[[1,1,1,1,1,1,1,1]],[[]]]})", one),
              HasSubstr("unexpected size: 0"));
}

TEST(RestValues, OutputsAreWrittenAsTensorFlowServingDoes) {
  const Tensor y = Tensor::FromSpan<float>({2, 2}, {{0.2f, 1.0f, -INFINITY, 1e20f}});
  const Tensor s = Tensor::Vector<std::string>({"a\"", "\xff"});
  EXPECT_EQ(*WriteRestOutputs({{"y", y}}, true),
            "{\n    \"predictions\": [[0.2, 1.0], [-Infinity, 1e+20]\n    ]\n}");
  EXPECT_EQ(*WriteRestOutputs({{"s", s}, {"s_bytes", s}}, true),
            "{\n    \"predictions\": [{\"s\": \"a\\\"\", \"s_bytes\": {\"b64\": \"YSI=\"}}, "
            "{\"s\": \"\xef\xbf\xbd\", \"s_bytes\": {\"b64\": \"/w==\"}}\n    ]\n}");
  EXPECT_EQ(*WriteRestOutputs({{"y", Tensor::Scalar<int8_t>(-5)}}, false),
            "{\n    \"outputs\": -5\n}");
  EXPECT_THAT(std::string(WriteRestOutputs({{"y", y}, {"n", Tensor::Vector<bool>({true})}}, true)
                              .status()
                              .message()),
              HasSubstr("inconsistent batch size: 1"));
}

TEST(RestPath, SaysWhichModelAndWhat) {
  const StatusOr<RestTarget> target =
      ParseRestPath("POST", "/v1/models/my%20model/versions/7:Predict");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->spec.name(), "my model");
  EXPECT_EQ(target->spec.version().value(), 7);
  EXPECT_EQ(target->verb, "predict");
  EXPECT_EQ(ParseRestPath("GET", "/v1/models/m/labels/new/metadata")->spec.version_label(), "new");
  for (const char* path : {"/v1/models/m:guess", "/v1/models/:predict", "/v2/models/m:predict",
                           "/v1/models/m/versions/x:predict", "/v1/models/m/7:predict"}) {
    EXPECT_FALSE(ParseRestPath("POST", path).ok()) << path;
  }
}

}  // namespace
}  // namespace weft::serving
