// SPDX-License-Identifier: Apache-2.0
#include "weft/inspect/check_graph.h"

#include <memory>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "base/threads.h"
#include "weft/device/cpu/cpu_device.h"

namespace weft::inspect {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Nothing final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const bool good, c.Attr<bool>("good"));
    if (!good) return Unimplemented("only good ones are made");
    return std::unique_ptr<OpKernel>(std::make_unique<Nothing>());
  }
  Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

// Make and Use for float and double, with a kernel for float alone.
class CheckGraphTest : public ::testing::Test {
 protected:
  CheckGraphTest() {
    const KernelDef kernel{.types = {{"T", DTypesOf<float>()}}, .factory = MakeKernel<Nothing>()};
    catalogue_.Add(OpSpec("Make")
                       .Doc("Makes.")
                       .Output("y: T")
                       .Attr("T: {float, double}")
                       .Attr("good: bool = true")
                       .Kernel(kernel));
    catalogue_.Add(OpSpec("Use")
                       .Doc("Uses.")
                       .Input("x: T")
                       .Output("y: T")
                       .Attr("T: {float, double}")
                       .Attr("good: bool = true")
                       .Kernel(kernel));
  }
  CheckReport Check(const std::string& text) {
    EXPECT_EQ(catalogue_.status(), absl::OkStatus());
    tensorflow::GraphDef graph;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph));
    return CheckGraph(graph, catalogue_, device_.get());
  }
  ThreadPool threads_{"test", 1};
  std::unique_ptr<Device> device_ =
      MakeCpuDevice({.job = "localhost", .replica = 0, .task = 0}, 0, &threads_);
  Catalogue catalogue_;
};

constexpr char kFloat[] = R"(attr { key: "T" value { type: DT_FLOAT } } )";
constexpr char kDouble[] = R"(attr { key: "T" value { type: DT_DOUBLE } } )";

std::string Node(const std::string& fields, const std::string& attrs) {
  return absl::StrCat("node { ", fields, " ", attrs, "}\n");
}

TEST_F(CheckGraphTest, WhatRunsHasNoProblems) {
  const CheckReport report = Check(Node(R"(name: "a" op: "Make")", kFloat) +
                                   Node(R"(name: "b" op: "Use" input: "a")", kFloat));
  EXPECT_TRUE(report.ok()) << report.Text();
  EXPECT_EQ(report.num_nodes, 2);
  EXPECT_EQ(report.num_ops, 2);
  EXPECT_TRUE(Check("").ok());
}

TEST_F(CheckGraphTest, TypesWithoutAKernelAreGathered) {
  const CheckReport report = Check(Node(R"(name: "a" op: "Make")", kDouble) +
                                   Node(R"(name: "b" op: "Use" input: "a")", kDouble) +
                                   Node(R"(name: "c" op: "Use" input: "b")", kDouble));
  ASSERT_EQ(report.problems.size(), 2u) << report.Text();
  EXPECT_EQ(report.problems[1].kind, Problem::Kind::kNoKernel);
  EXPECT_THAT(report.problems[1].what, HasSubstr("T=double"));
  EXPECT_THAT(report.problems[1].nodes, ElementsAre("b", "c"));
}

TEST_F(CheckGraphTest, FunctionsAreLookedInto) {
  const CheckReport report = Check(R"(library { function { signature { name: "f" }
      node_def { name: "typed" op: "Make" attr { key: "T" value { type: DT_DOUBLE } } }
      node_def { name: "open" op: "Make" attr { key: "T" value { placeholder: "T" } } }
      node_def { name: "gone" op: "Mak" } } })" +
                                   Node(R"(name: "call" op: "f")", ""));
  ASSERT_EQ(report.problems.size(), 2u) << report.Text();
  EXPECT_THAT(report.problems[0].nodes, ElementsAre("gone in function f"));
  EXPECT_EQ(report.problems[0].nearest, "Make");
  EXPECT_THAT(report.problems[1].nodes, ElementsAre("typed in function f"));
  EXPECT_EQ(report.num_functions, 1);
}

TEST_F(CheckGraphTest, KernelsAreAskedWhetherTheyTakeTheAttributes) {
  const CheckReport report =
      Check(Node(R"(name: "a" op: "Make")",
                 absl::StrCat(kFloat, R"(attr { key: "good" value { b: false } } )")));
  ASSERT_EQ(report.problems.size(), 1u) << report.Text();
  EXPECT_EQ(report.problems[0].kind, Problem::Kind::kAttribute);
  EXPECT_THAT(report.problems[0].what, HasSubstr("only good ones"));
}

TEST_F(CheckGraphTest, MalformedGraphsAreProblemsToo) {
  for (const std::string& graph :
       {Node(R"(name: "b" op: "Use" input: "nowhere")", kFloat),
        Node(R"(name: "a" op: "Make")", ""),
        Node(R"(name: "a" op: "Make")", R"(attr { key: "T" value { type: DT_STRING } })"),
        Node(R"(name: "a" op: "Make" device: "/what")", kFloat),
        Node(R"(name: "a" op: "Make")", kFloat) + Node(R"(name: "a" op: "Make")", kFloat)}) {
    EXPECT_FALSE(Check(graph).ok()) << graph;
  }
}

TEST_F(CheckGraphTest, JsonSaysTheSame) {
  const Json json = Check(Node(R"(name: "a" op: "Mak" device: "/gpu:0")", "")).AsJson();
  EXPECT_EQ(*json.Find("runs"), Json(false));
  EXPECT_EQ(*json.Find("problems")->items()[0].Find("kind"), Json("unknown_op"));
  EXPECT_THAT(json.Find("notes")->Dump(), HasSubstr("GPU"));
}

}  // namespace
}  // namespace weft::inspect
