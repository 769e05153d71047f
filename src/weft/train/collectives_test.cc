// SPDX-License-Identifier: Apache-2.0
// Collectives and leases as C++ programs use them, between two servers of one process.
#include "weft/train/collectives.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

#include "base/threads.h"
#include "net/http_client.h"
#include "net/socket_address.h"
#include "weft/client/session.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/server/server.h"
#include "weft/train/leases.h"

namespace weft::train {
namespace {

using ::testing::HasSubstr;

// Workers 0 and 1, which copy what they send.
class TwoWorkersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const StatusOr<std::vector<int>> ports = FindFreeLoopbackPorts(2);
    ASSERT_TRUE(ports.ok()) << ports.status();
    const StatusOr<cluster::ClusterSpec> spec = cluster::ClusterSpec::FromJson(absl::StrCat(
        R"({"worker":["127.0.0.1:)", (*ports)[0], R"(","127.0.0.1:)", (*ports)[1], R"("]})"));
    ASSERT_TRUE(spec.ok()) << spec.status();
    for (int i = 0; i < 2; ++i) {
      server::ServerOptions options{.cluster = *spec,
                                    .task = {"worker", i},
                                    .catalogue = &StandardCatalogue(),
                                    .devices = &StandardDevices(),
                                    .share_memory = false,
                                    .num_threads = 2,
                                    .status_port = 0};
      StatusOr<std::unique_ptr<server::Server>> server = server::Server::Start(options);
      ASSERT_TRUE(server.ok()) << server.status();
      servers_.push_back(*std::move(server));
      tasks_.push_back({.cluster = *spec,
                        .id = options.task,
                        .num_workers = 2,
                        .worker = i,
                        .distributed = true,
                        .is_chief = i == 0,
                        .target = servers_.back()->target()});
    }
  }

  // What both tasks get when rank r gives `values[r]`.
  std::vector<Tensor> AllReduce(const std::vector<Tensor>& values, Reduction reduction,
                                OnTheWire wire) {
    Graph graph(&StandardCatalogue().ops());
    GraphBuilder b(&graph);
    Endpoint out[2];
    for (int rank = 0; rank < 2; ++rank) {
      b.set_device(tasks_[static_cast<size_t>(rank)].Device());
      Collectives all(b, {.group_key = ++group_ / 2 + 1, .size = 2, .wire = wire});
      out[rank] = all.AllReduce(b.Constant(values[static_cast<size_t>(rank)]), reduction, "sum");
      out[rank] = b.Op("Identity", {out[rank]}, {}, absl::StrCat("out", rank));
    }
    EXPECT_TRUE(b.ok()) << b.status();
    const auto session =
        client::NewSession({.target = servers_[0]->target(), .soft_placement = false});
    EXPECT_TRUE(session.ok()) << session.status();
    EXPECT_EQ((*session)->Extend(ExportGraph(graph)), absl::OkStatus());
    std::vector<Tensor> results;
    EXPECT_EQ((*session)->Run({}, {"out0", "out1"}, {}, &results), absl::OkStatus());
    return results;
  }

  // Bytes that both tasks have sent each other.
  double SentBytes() {
    double sum = 0;
    for (const auto& server : servers_) {
      const auto http = HttpClient::Create(absl::StrCat("http://127.0.0.1:", server->status_port()),
                                           TlsClientOptions());
      EXPECT_TRUE(http.ok()) << http.status();
      const StatusOr<HttpAnswer> answer = (*http)->Send({.path = "/metrics"});
      EXPECT_TRUE(answer.ok()) << answer.status();
      for (absl::string_view line : absl::StrSplit(answer->body, '\n')) {
        double value = 0;
        const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
        if (words.size() == 2 && words[0] == "weft_data_sent_bytes_total" &&
            absl::SimpleAtod(words[1], &value)) {
          sum += value;
        }
      }
    }
    return sum;
  }

  std::vector<std::unique_ptr<server::Server>> servers_;
  std::vector<Task> tasks_;
  int32_t group_ = 1;
};

TEST_F(TwoWorkersTest, NarrowerNumbersOnTheWireHalveTheBytesAndRoundEachTerm) {
  constexpr int64_t kElements = 40000;
  std::vector<Tensor> values;
  for (int rank = 0; rank < 2; ++rank) {
    Tensor value = *Tensor::Zeros(DType::kFloat, Shape{kElements});
    for (int64_t i = 0; i < kElements; ++i)
      value.data<float>()[i] = std::sin(static_cast<float>(i * 2 + rank)) * 100;
    values.push_back(value);
  }
  double before = SentBytes();
  const std::vector<Tensor> exact = AllReduce(values, Reduction::kMean, OnTheWire::kAsTheyAre);
  const double whole = SentBytes() - before;
  EXPECT_GT(whole, kElements * 4);
  for (const auto& [wire, mantissa] :
       {std::pair(OnTheWire::kHalf, 11), std::pair(OnTheWire::kBfloat16, 8)}) {
    before = SentBytes();
    const std::vector<Tensor> rounded = AllReduce(values, Reduction::kMean, wire);
    // Each sends the other half of its terms and half of the sums; the second result, in full, goes
    // to the first as well.
    EXPECT_NEAR(whole - (SentBytes() - before), kElements * 2 * 2, kElements * 0.1);
    ASSERT_EQ(rounded.size(), 2U);
    EXPECT_EQ(rounded[0].dtype(), DType::kFloat);
    double worst = 0;
    for (int64_t i = 0; i < kElements; ++i) {
      EXPECT_EQ(rounded[0].data<float>()[i], rounded[1].data<float>()[i]);  // the same at both
      worst = std::max<double>(worst,
                               std::abs(rounded[0].data<float>()[i] - exact[0].data<float>()[i]));
    }
    // Two terms of at most 100, and their sum, each to half a unit of its last place.
    EXPECT_LT(worst, 100 * 2 * std::ldexp(1, -mantissa));
    EXPECT_GT(worst, 0);
  }
}

TEST_F(TwoWorkersTest, WholeNumbersAreNotRounded) {
  const std::vector<Tensor> sums =
      AllReduce({Tensor::Vector<int32_t>({1000001, 7}), Tensor::Vector<int32_t>({2, -9})},
                Reduction::kSum, OnTheWire::kBfloat16);
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[1].ToString(), Tensor::Vector<int32_t>({1000003, -2}).ToString());
}

TEST_F(TwoWorkersTest, EachRecordIsLeasedOnceInAnEpochWhoeverAsks) {
  const LeaseQueueOptions options{.name = "train", .records = 1000, .per_lease = 30, .epochs = 2};
  absl::Mutex mutex;
  std::vector<int> seen(1000);
  const auto work = [&](int rank) {
    const auto queue = LeaseQueueClient::Create(tasks_[static_cast<size_t>(rank)], options);
    ASSERT_TRUE(queue.ok()) << queue.status();
    bool gives_back = rank == 1;
    while (true) {
      const StatusOr<LeasedRange> range = (*queue)->Take();
      if (range.status().code() == absl::StatusCode::kNotFound) break;
      ASSERT_TRUE(range.ok()) << range.status();
      if (std::exchange(gives_back, false)) {
        EXPECT_EQ((*queue)->GiveBack(*range), absl::OkStatus());
        continue;
      }
      {
        absl::MutexLock lock(&mutex);
        for (int64_t i = range->begin; i < range->end; ++i) ++seen[static_cast<size_t>(i)];
      }
      const StatusOr<bool> counted = (*queue)->Finish(*range);
      EXPECT_TRUE(counted.ok()) << counted.status();
      EXPECT_TRUE(counted.value_or(false));
      EXPECT_FALSE((*queue)->Finish(*range).value_or(true));  // once
    }
    const StatusOr<LeaseCounts> counts = (*queue)->Counts();
    ASSERT_TRUE(counts.ok()) << counts.status();
    EXPECT_EQ(counts->records_done, 2000);
    EXPECT_TRUE(counts->is_over);
  };
  {
    Thread other("other", [&] { work(1); });
    work(0);
  }
  EXPECT_THAT(seen, ::testing::Each(2));
  LeaseQueueOptions others = options;
  others.records = 999;
  EXPECT_THAT(LeaseQueueClient::Create(tasks_[1], others).status().message(), HasSubstr("999"));
  EXPECT_EQ(LeaseQueueClient::Create(Task(), options).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(TwoWorkersTest, ARangeWhoseUseFailsGoesToAnother) {
  const LeaseQueueOptions options{.name = "once", .records = 10, .per_lease = 10, .epochs = 1};
  const auto first = LeaseQueueClient::Create(tasks_[0], options);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ((*first)->ForEach([](const LeasedRange&) { return Internal("no disk"); }),
            Internal("no disk"));
  const auto second = LeaseQueueClient::Create(tasks_[1], options);
  ASSERT_TRUE(second.ok()) << second.status();
  int64_t records = 0;
  EXPECT_EQ((*second)->ForEach([&](const LeasedRange& range) {
    records += range.end - range.begin;
    return absl::OkStatus();
  }),
            absl::OkStatus());
  EXPECT_EQ(records, 10);
}

}  // namespace
}  // namespace weft::train
