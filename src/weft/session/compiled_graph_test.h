// SPDX-License-Identifier: Apache-2.0
// Graphs run with and without what the compiler makes of them, for the tests of its passes.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/builder.h"
#include "weft/graph/graph_proto.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"

namespace weft::session {

struct Outcome {
  Status status;
  std::vector<Tensor> results;
  std::vector<std::string> ops;  // that ran, in order, without arguments and results
  int Count(const std::string& op) const {
    return static_cast<int>(std::count(ops.begin(), ops.end(), op));
  }
};

// Of several steps the last one's results and ops.
inline Outcome RunGraph(const Graph& graph, bool optimise, const std::vector<Feed>& feeds,
                        const std::vector<std::string>& fetches, int steps = 1) {
  Outcome outcome;
  auto session = NewDirectSession({.catalogue = &StandardCatalogue(),
                                   .devices = &StandardDevices(),
                                   .num_threads = 2,
                                   .fold = optimise,
                                   .fuse = optimise});
  EXPECT_TRUE(session.ok()) << session.status();
  outcome.status = (*session)->Extend(ExportGraph(graph, {}));
  for (int step = 0; step < steps && outcome.status.ok(); ++step) {
    RunMetadata metadata;
    outcome.ops.clear();
    outcome.status =
        (*session)->Run({.trace = true}, feeds, fetches, {}, &outcome.results, &metadata);
    for (const executor::NodeTrace& node : metadata.trace) outcome.ops.push_back(node.op);
  }
  return outcome;
}

// The optimised run, whose results are those of the plain one.
inline Outcome RunBothWays(const Graph& graph, const std::vector<Feed>& feeds,
                           const std::vector<std::string>& fetches, int steps = 1) {
  const Outcome plain = RunGraph(graph, false, feeds, fetches, steps);
  Outcome optimised = RunGraph(graph, true, feeds, fetches, steps);
  EXPECT_EQ(plain.status.code(), optimised.status.code()) << plain.status << "\n"
                                                          << optimised.status;
  EXPECT_EQ(plain.results.size(), optimised.results.size());
  for (size_t i = 0; i < std::min(plain.results.size(), optimised.results.size()); ++i) {
    EXPECT_EQ(plain.results[i].shape(), optimised.results[i].shape()) << fetches[i];
    EXPECT_EQ(plain.results[i].ToString(1000), optimised.results[i].ToString(1000)) << fetches[i];
  }
  return optimised;
}

class CompiledGraphTest : public ::testing::Test {
 protected:
  Endpoint Feed(const char* name, DType dtype = DType::kFloat) {
    return b_.Op("Placeholder", {}, {{"dtype", dtype}}, name);
  }
  Endpoint Floats(const Shape& shape, std::vector<float> values) {
    return b_.Constant(Tensor::FromSpan<float>(shape, values));
  }
  Outcome Run(std::vector<session::Feed> feeds, std::vector<std::string> fetches) {
    EXPECT_TRUE(b_.ok()) << b_.status();
    return RunBothWays(graph_, feeds, fetches);
  }

  Graph graph_{&StandardCatalogue().ops()};
  GraphBuilder b_{&graph_};
};

}  // namespace weft::session
