// SPDX-License-Identifier: Apache-2.0
// Large tensors lie in an arena from the third step on: values stay right whoever holds on to them.

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/threads.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/builder.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"
#include "weft/tensor/pool_allocator.h"

namespace weft::session {
namespace {

constexpr int64_t kRows = 200;

class MemoryTest : public ::testing::Test {
 protected:
  MemoryTest() {
    x_ = b_.Op("Placeholder", {}, {{"dtype", DType::kFloat}}, "x");
    Endpoint value = x_;
    for (int i = 0; i < 6; ++i) {
      // Reversing is not element-wise: each is a buffer of its own.
      value = b_.Op("ReverseV2",
                    {b_.Op("AddV2", {value, b_.Scalar(1.0f)}, {}, absl::StrCat("sum", i)),
                     b_.Constant(Tensor::Vector<int32_t>({0}))},
                    {}, absl::StrCat("turned", i));
    }
    b_.Op("Mean", {value, b_.Constant(Tensor::Vector<int32_t>({0, 1}))}, {}, "mean");
    const Endpoint handle = b_.Op(
        "VarHandleOp", {},
        {{"dtype", DType::kFloat}, {"shape", Shape{kRows, 1000}}, {"shared_name", "kept"}}, "kept");
    b_.Op("AssignVariableOp", {handle, Endpoint{graph_.Find("turned2"), 0}}, {}, "keep");
    b_.Op("ReadVariableOp", {handle}, {{"dtype", DType::kFloat}}, "read");
    auto session = NewDirectSession(
        {.catalogue = &StandardCatalogue(), .devices = &StandardDevices(), .num_threads = 2});
    EXPECT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
    EXPECT_TRUE(b_.ok()) << b_.status();
    EXPECT_TRUE(session_->Extend(ExportGraph(graph_)).ok());
  }

  static Tensor Filled(int64_t columns, float value) {
    return Tensor::FromSpan<float>(Shape{kRows, columns},
                                   std::vector<float>(kRows * columns, value));
  }
  std::vector<Tensor> Run(const Tensor& x, const std::vector<std::string>& fetches,
                          const std::vector<std::string>& targets = {}) {
    std::vector<Tensor> results;
    const Status status = session_->Run({{"x:0", x}}, fetches, targets, &results);
    EXPECT_TRUE(status.ok()) << status;
    return results;
  }

  Graph graph_{&StandardCatalogue().ops()};
  GraphBuilder b_{&graph_};
  Endpoint x_;
  std::unique_ptr<Session> session_;
};

TEST_F(MemoryTest, SettledStepsAllocateOnlyTheirResults) {
  const Tensor x = Filled(1000, 2);
  for (int i = 0; i < 4; ++i) Run(x, {"mean:0"});
  const int64_t before = HostPoolStatistics().num_allocations;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Run(x, {"mean:0"})[0].scalar<float>(), 8);
  // The result, and what Mean adds up in; none of the twelve large ones.
  EXPECT_LE(HostPoolStatistics().num_allocations - before, 20);
}

TEST_F(MemoryTest, ShapesMayChange) {
  for (int i = 0; i < 60; ++i) {
    const int64_t columns = 500 + i % 7 * 100;
    EXPECT_EQ(Run(Filled(columns, static_cast<float>(i)), {"mean:0"})[0].scalar<float>(),
              static_cast<float>(i + 6));
  }
}

TEST_F(MemoryTest, ResultsOfEarlierStepsKeepTheirValues) {
  std::vector<Tensor> held;
  for (int i = 0; i < 12; ++i)
    held.push_back(Run(Filled(1000, static_cast<float>(i)), {"turned3:0", "mean:0"})[0]);
  for (int i = 0; i < 12; ++i) {
    for (const float value : held[i].span<float>())
      ASSERT_EQ(value, static_cast<float>(i + 4)) << i;
  }
}

TEST_F(MemoryTest, AVariableKeepsWhatItWasGiven) {
  for (int i = 0; i < 12; ++i) {
    const bool keeps = i % 3 == 0;
    const float kept = static_cast<float>(i - i % 3);
    Run(Filled(1000, static_cast<float>(i)), {"mean:0"},
        keeps ? std::vector<std::string>{"keep"} : std::vector<std::string>{});
    const std::vector<Tensor> read = Run(Filled(1000, 0), {"read:0"});
    for (const float value : read[0].span<float>()) ASSERT_EQ(value, kept + 3) << i;
  }
}

TEST_F(MemoryTest, StepsBesideEachOtherDoNotMix) {
  std::vector<Thread> threads;  // joined by their destructors
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back("steps", [this, t] {
      for (int i = 0; i < 20; ++i) {
        const auto first = static_cast<float>(t * 100 + i);
        const std::vector<Tensor> results =
            Run(Filled(400 + 100 * (t % 2), first), {"turned5:0", "mean:0"});
        ASSERT_EQ(results[0].data<float>()[7], first + 6);
        ASSERT_EQ(results[1].scalar<float>(), first + 6);
      }
    });
  }
}

}  // namespace
}  // namespace weft::session
