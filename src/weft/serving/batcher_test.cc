// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/batcher.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/blocking_counter.h"

namespace weft::serving {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A model that doubles its input and notes the rows of each run.
class BatcherTest : public testing::Test {
 protected:
  std::unique_ptr<Batcher> Make(BatchingOptions options) {
    return std::make_unique<Batcher>(
        "model", options, &pool_, &timers_, &metrics_,
        [this](const RunCall& call, std::vector<Tensor>* results) -> Status {
          const Tensor& x = call.feeds[0].second;
          {
            absl::MutexLock lock(&mutex_);
            runs_.push_back(x.dim(0));
          }
          WEFT_ASSIGN_OR_RETURN(Tensor y, Tensor::Allocate(DType::kInt32, x.shape()));
          for (int64_t i = 0; i < x.num_elements(); ++i) {
            if (x.data<int32_t>()[i] < 0) return InvalidArgument("negative");
            y.data<int32_t>()[i] = 2 * x.data<int32_t>()[i];
          }
          results->push_back(std::move(y));
          return absl::OkStatus();
        });
  }

  static RunCall Ask(std::initializer_list<int32_t> rows) {
    return {.feeds = {{"x:0", Tensor::Vector<int32_t>(rows)}}, .fetches = {"y:0"}};
  }

  // Asks all at once and waits: the answers, or the errors' words.
  std::vector<std::string> AskAll(Batcher* batcher,
                                  std::vector<std::initializer_list<int32_t>> all) {
    std::vector<std::string> answers(all.size());
    absl::BlockingCounter left(static_cast<int>(all.size()));
    for (size_t i = 0; i < all.size(); ++i) {
      batcher->Enqueue(Ask(all[i]), [&, i](StatusOr<std::vector<Tensor>> results) {
        answers[i] =
            results.ok() ? (*results)[0].ToString() : std::string(results.status().message());
        left.DecrementCount();
      });
    }
    left.Wait();
    return answers;
  }

  std::vector<int64_t> runs() {
    absl::MutexLock lock(&mutex_);
    return runs_;
  }

  MetricRegistry registry_;
  ServingMetrics metrics_{&registry_};
  TimerQueue timers_;
  ThreadPool pool_{"batches", 2};
  absl::Mutex mutex_;
  std::vector<int64_t> runs_;
};

TEST_F(BatcherTest, AFullBatchRunsAndEachGetsItsRows) {
  const auto batcher = Make({.max_rows = 4, .timeout = absl::Hours(1), .threads = 1});
  EXPECT_THAT(AskAll(batcher.get(), {{1}, {2, 3}, {4}}),
              ElementsAre(HasSubstr("[2]"), HasSubstr("[4 6]"), HasSubstr("[8]")));
  EXPECT_THAT(runs(), ElementsAre(4));
}

TEST_F(BatcherTest, AnOldBatchRunsFilledUpToAnAllowedSize) {
  const auto batcher =
      Make({.max_rows = 8, .timeout = absl::Milliseconds(1), .threads = 1, .allowed_rows = {4, 8}});
  EXPECT_THAT(AskAll(batcher.get(), {{5}}), ElementsAre(HasSubstr("[10]")));
  EXPECT_THAT(runs(), ElementsAre(4));
}

TEST_F(BatcherTest, OneBadRequestFailsAlone) {
  const auto batcher = Make({.max_rows = 3, .timeout = absl::Hours(1), .threads = 1});
  EXPECT_THAT(AskAll(batcher.get(), {{1}, {-1}, {2}}),
              ElementsAre(HasSubstr("[2]"), "negative", HasSubstr("[4]")));
}

TEST_F(BatcherTest, LargeRequestsAreRefusedOrRunInParts) {
  const auto strict = Make({.max_rows = 2});
  EXPECT_THAT(AskAll(strict.get(), {{1, 2, 3}}), ElementsAre(HasSubstr("Task size 3 is larger")));
  const auto splitting = Make({.max_rows = 10, .max_execution_rows = 2, .split_large = true});
  EXPECT_THAT(AskAll(splitting.get(), {{1, 2, 3, 4, 5}}), ElementsAre(HasSubstr("[2 4 6 8 10]")));
  for (const int64_t rows : runs()) EXPECT_LE(rows, 2);
}

TEST_F(BatcherTest, WhoGaveUpIsNotRun) {
  const auto batcher = Make({.max_rows = 2, .timeout = absl::Hours(1), .threads = 1});
  Cancellation gone;
  gone.Cancel(Cancelled("gone"));
  RunCall call = Ask({1});
  call.cancellation = &gone;
  std::string told;
  batcher->Enqueue(std::move(call), [&](StatusOr<std::vector<Tensor>> results) {
    told = std::string(results.status().message());
  });
  EXPECT_THAT(AskAll(batcher.get(), {{7}}), ElementsAre(HasSubstr("[14]")));
  EXPECT_EQ(told, "gone");
  EXPECT_THAT(runs(), ElementsAre(1));
}

TEST_F(BatcherTest, SettingsThatDoNotGoTogetherAreRefused) {
  EXPECT_TRUE(CheckBatchingOptions({}).ok());
  EXPECT_FALSE(CheckBatchingOptions({.max_rows = 0}).ok());
  EXPECT_FALSE(CheckBatchingOptions({.max_rows = 8, .allowed_rows = {4}}).ok());
  EXPECT_FALSE(CheckBatchingOptions({.max_rows = 8, .allowed_rows = {8, 4}}).ok());
}

}  // namespace
}  // namespace weft::serving
