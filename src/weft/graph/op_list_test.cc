// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/op_list.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

OpDefinition Op(const std::string& name) {
  OpDefinition op;
  op.schema.name = name;
  op.schema.is_stateful = name == "B";
  op.schema.attrs.push_back(*ParseAttrSchema("T: {float, int32} = DT_FLOAT"));
  op.schema.inputs.push_back(*ParseArgSchema("x: T", op.schema.attrs));
  return op;
}

TEST(OpListTest, PrintsOpsByNameWithTheirAttributes) {
  OpRegistry ops;
  EXPECT_EQ(*OpListJson(ops), "[]\n");
  ASSERT_TRUE(ops.Add(Op("B")).ok());
  ASSERT_TRUE(ops.Add(Op("A")).ok());
  const std::string json = *OpListJson(ops);
  EXPECT_LT(json.find("\"name\":\"A\""), json.find("\"name\":\"B\"")) << json;
  EXPECT_NE(json.find("\"is_stateful\":true"), std::string::npos) << json;
  EXPECT_NE(json.find("\"allowed_values\":{\"list\":{\"type\":[\"DT_FLOAT\",\"DT_INT32\"]}}"),
            std::string::npos)
      << json;
}

}  // namespace
}  // namespace weft
