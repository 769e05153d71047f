// SPDX-License-Identifier: Apache-2.0
#include "weft/api/generator.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/api/ops.h"
#include "weft/ops/catalogue.h"

namespace weft::api {
namespace {

using ::testing::HasSubstr;

TEST(GeneratorTest, InputsThenRequiredAttributesThenOptions) {
  Catalogue catalogue;
  catalogue.Add(OpSpec("Demo")
                    .Doc("Shows a constructor.")
                    .Input("x: T")
                    .Input("rest: N * T")
                    .Output("y: T")
                    .Output("z: int32")
                    .Attr("T: type")
                    .Attr("N: int >= 1")
                    .Attr("mode: string")
                    .Attr("rate: float = 0.5")
                    .Attr("least: float = -inf")
                    .Attr("sizes: list(int) = [1, 2]"));
  ASSERT_TRUE(catalogue.status().ok()) << catalogue.status();
  const Constructors code = GenerateConstructors(catalogue);
  EXPECT_THAT(code.header, HasSubstr("DemoOutputs Demo(GraphBuilder& builder, Endpoint x, "
                                     "const std::vector<Endpoint>& rest, const std::string& mode, "
                                     "const DemoOptions& options = {});"));
  EXPECT_THAT(code.header, HasSubstr("float rate = 0.5f;"));
  EXPECT_THAT(code.header, HasSubstr("float least = -HUGE_VALF;"));
  EXPECT_THAT(code.header, HasSubstr("std::vector<int64_t> sizes = {1, 2};"));
  const std::string reference = GenerateReference(catalogue);
  EXPECT_THAT(reference, HasSubstr("\n[Demo](#demo)\n"));
  EXPECT_THAT(reference, HasSubstr("## Demo\n\nShows a constructor."));
  EXPECT_THAT(reference, HasSubstr("- attribute `N: int >= 1`\n"));
  EXPECT_THAT(reference, HasSubstr("- attribute `rate: float = 0.5`\n"));
  EXPECT_THAT(
      reference,
      HasSubstr("- C++: `op::Demo(builder, x, rest, mode)`; options `rate`, `least`, `sizes`\n"));
}

TEST(GeneratorTest, ConstructorsBuildNodes) {
  Graph graph(&StandardCatalogue().ops());
  GraphBuilder builder(&graph);
  Endpoint x = builder.Constant(Tensor::Scalar(1.0f));
  Endpoint same = op::Identity(builder, x, {.name = "same"});
  ASSERT_TRUE(builder.ok()) << builder.status();
  EXPECT_EQ(same.node->name(), "same");
  std::vector<Endpoint> all = op::IdentityN(builder, {x, same});
  ASSERT_TRUE(builder.ok()) << builder.status();
  EXPECT_EQ(all.size(), 2u);
}

}  // namespace
}  // namespace weft::api
