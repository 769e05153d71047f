// SPDX-License-Identifier: Apache-2.0
#include "weft/session/chrome_trace.h"

#include <map>

#include <gtest/gtest.h>

#include "net/json.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/builder.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"

namespace weft::session {
namespace {

TEST(ChromeTrace, EmptyIsStillATrace) {
  const StatusOr<Json> trace = Json::Parse(ChromeTrace({}));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->Find("traceEvents")->size(), 0u);
}

TEST(ChromeTrace, OddNamesStayJson) {
  const StatusOr<Json> trace = Json::Parse(
      ChromeTrace({{.node = "a\"\\\n\xff", .op = "Op", .device = "d\"", .end_us = -5}}));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(*trace->Find("traceEvents")->items()[1].Find("dur"), Json(0));
}

TEST(ChromeTrace, HoldsWhatAStepRan) {
  Graph graph(&StandardCatalogue().ops());
  GraphBuilder builder(&graph);
  const Endpoint x = builder.Op("Placeholder", {},
                                {{"dtype", DType::kFloat}, {"shape", PartialShape({2, 3})}}, "x");
  const Endpoint y = builder.Op("MatMul", {x, x}, {{"transpose_b", true}}, "y");
  builder.Op("Sum", {y, builder.Constant(Tensor::Vector<int32_t>({0, 1}))}, {}, "z");
  ASSERT_TRUE(builder.ok()) << builder.status();
  DirectOptions options{.catalogue = &StandardCatalogue(),
                        .devices = &StandardDevices(),
                        .num_threads = 1,
                        .fold = false,
                        .fuse = false};
  StatusOr<std::unique_ptr<Session>> session = NewDirectSession(options);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_EQ((*session)->Extend(ExportGraph(graph)), absl::OkStatus());
  RunMetadata metadata;
  std::vector<Tensor> results;
  ASSERT_EQ((*session)->Run({.trace = true}, {{"x", *Tensor::Zeros(DType::kFloat, Shape{2, 3})}},
                            {"z"}, {}, &results, &metadata),
            absl::OkStatus());
  const StatusOr<Json> trace = Json::Parse(ChromeTrace(metadata.trace));
  ASSERT_TRUE(trace.ok()) << trace.status();
  std::map<std::string, Json> slices;
  for (const Json& event : trace->Find("traceEvents")->items()) {
    slices[*event.Find("name")->AsString()] = event;
  }
  ASSERT_TRUE(slices.contains("y"));
  ASSERT_TRUE(slices.contains("z"));
  ASSERT_TRUE(slices.contains("process_name"));
  const Json& args = *slices["y"].Find("args");
  EXPECT_EQ(*args.Find("op"), Json("MatMul"));
  EXPECT_EQ(args.Find("outputs")->items()[0], Json("float [2,2]"));
  EXPECT_EQ(*slices["y"].Find("pid"), *slices["process_name"].Find("pid"));
  EXPECT_GT(*slices["y"].Find("tid")->AsInt(), 0);
  EXPECT_LE(*slices["y"].Find("ts")->AsInt(), *slices["z"].Find("ts")->AsInt());

  metadata = {};
  ASSERT_EQ((*session)->Run({}, {{"x", *Tensor::Zeros(DType::kFloat, Shape{2, 3})}}, {"z"}, {},
                            &results, &metadata),
            absl::OkStatus());
  EXPECT_TRUE(metadata.trace.empty());
}

}  // namespace
}  // namespace weft::session
