// SPDX-License-Identifier: Apache-2.0
// Synchronous training by whole servers in one process: a parameter server and workers on threads.
#include "weft/train/sync_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"

#include "base/threads.h"
#include "weft/api/ops.h"
#include "weft/train/monitored_session.h"
#include "weft/train/testing/local_cluster_test.h"

namespace weft::train {
namespace {

using testing::LocalCluster;

// One worker of a job that learns w: the loss is w * x, so each gradient is the x that was fed.
class Replica {
 public:
  struct Options {
    int to_aggregate = 2;
    int total = 2;
    int64_t last_step = 5;
    bool rows = false;  // w is a table, x the row whose sum is the loss
  };

  Replica(LocalCluster& cluster, int worker, const Options& options)
      : options_(options),
        sync_(GradientDescent(0.5), options.to_aggregate, options.total, worker) {
    const std::string device = absl::StrCat("/job:worker/task:", worker);
    program_.set_placement(RoundRobinPlacement(1));
    program_.builder().set_device(device);
    hooks_.push_back(StopAtStep(options.last_step));
    Build();
    StatusOr<Node*> train = sync_.Minimize(program_, loss_);
    EXPECT_TRUE(train.ok()) << train.status();
    if (!train.ok()) return;
    train_ = *train;
    if (worker == 0) hooks_.push_back(sync_.ChiefHook());
    MonitoredOptions monitored{.make_session =
                                   [&cluster, worker, device] {
                                     return cluster.NewSession(worker, {"/job:ps", device});
                                   },
                               .is_chief = worker == 0,
                               .train = train_,
                               .chief_init = sync_.chief_init(),
                               .chief_resume = sync_.chief_resume(),
                               .poll = absl::Milliseconds(10)};
    for (const auto& hook : hooks_) monitored.hooks.push_back(hook.get());
    StatusOr<std::unique_ptr<MonitoredSession>> session =
        MonitoredSession::Create(program_, monitored);
    EXPECT_TRUE(session.ok()) << session.status();
    if (session.ok()) session_ = *std::move(session);
  }

  bool ok() const { return session_ != nullptr; }
  int64_t global_step() const { return session_->global_step(); }

  // At most `steps` steps of this worker, fewer if training is over; gives how many.
  int64_t Train(const Tensor& x, int64_t steps = 1000) {
    int64_t done = 0;
    for (; ok() && done < steps && !session_->ShouldStop(); ++done) {
      const Status status = session_->Run({{"x:0", x}}, {}, {train_}, nullptr);
      EXPECT_TRUE(status.ok()) << status;
      if (!status.ok()) break;
    }
    return done;
  }
  std::vector<float> Weights() {
    std::vector<Tensor> values;
    const Status status = session_->RunPlain({}, {weights_.value}, {}, &values);
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) return {};
    const absl::Span<const float> weights = values[0].span<float>();
    return {weights.begin(), weights.end()};
  }

 private:
  void Build() {
    GraphBuilder& b = program_.builder();
    if (options_.rows) {
      const Endpoint x = op::Placeholder(b, DType::kInt32, {.shape = {-1}, .name = "x"});
      weights_ = program_.AddVariable("w", DType::kFloat, {4, 1}, Zeros());
      const Endpoint rows = EmbeddingLookup(b, {weights_}, x);
      loss_ = op::Sum(b, op::Reshape(b, rows, b.Constant(Tensor::Vector<int32_t>({-1}))),
                      b.Scalar<int32_t>(0));
      return;
    }
    const Endpoint x =
        op::Placeholder(b, DType::kFloat, {.shape = PartialShape(Shape()), .name = "x"});
    weights_ = program_.AddVariable("w", DType::kFloat, Shape(), Zeros());
    loss_ = op::Mul(b, weights_.value, x);
  }

  const Options options_;
  Program program_;
  SyncReplicas sync_;
  Variable weights_;
  Endpoint loss_;
  Node* train_ = nullptr;
  std::vector<std::unique_ptr<Hook>> hooks_;
  std::unique_ptr<MonitoredSession> session_;
};

Tensor Scalar(float value) { return Tensor::Scalar<float>(value); }

TEST(SyncReplicasTest, AStepIsTheMeanOfTheWorkersGradients) {
  LocalCluster cluster(2);
  Replica chief(cluster, 0, {});
  Replica other(cluster, 1, {});
  ASSERT_TRUE(chief.ok() && other.ok());
  {
    Thread thread("worker", [&] { other.Train(Scalar(3)); });
    chief.Train(Scalar(1));
  }
  EXPECT_EQ(chief.global_step(), 5);
  EXPECT_EQ(other.global_step(), 5);
  EXPECT_THAT(chief.Weights(), ::testing::ElementsAre(-5));
}

TEST(SyncReplicasTest, EachStepTakesAsManyGradientsAsThereAreWorkers) {
  LocalCluster cluster(2);
  Replica chief(cluster, 0, {});
  Replica other(cluster, 1, {});
  ASSERT_TRUE(chief.ok() && other.ok());
  {
    Thread thread("worker", [&] { other.Train(Scalar(2)); });
    chief.Train(Scalar(2));
  }
  EXPECT_EQ(chief.global_step(), 5);
  EXPECT_THAT(chief.Weights(), ::testing::ElementsAre(-5));
}

TEST(SyncReplicasTest, RowsAreAveragedEachOverTheWorkersThatHadIt) {
  LocalCluster cluster(2);
  Replica chief(cluster, 0, {.last_step = 1, .rows = true});
  Replica other(cluster, 1, {.last_step = 1, .rows = true});
  ASSERT_TRUE(chief.ok() && other.ok());
  {
    Thread thread("worker", [&] { other.Train(Tensor::Vector<int32_t>({3, 1, 1})); });
    chief.Train(Tensor::Vector<int32_t>({1, 0}));
  }
  // A step of 0.5; row 1 had gradients of 1 and of 1 + 1.
  EXPECT_THAT(chief.Weights(), ::testing::ElementsAre(-0.5, -0.75, 0, -0.5));
}

TEST(SyncReplicasTest, DoesNotWaitForABackupWorker) {
  LocalCluster cluster(3);
  const Replica::Options options{.to_aggregate = 2, .total = 3, .last_step = 20};
  Replica chief(cluster, 0, options);
  Replica other(cluster, 1, options);
  Replica slow(cluster, 2, options);
  ASSERT_TRUE(chief.ok() && other.ok() && slow.ok());
  {
    // None of their gradients is in vain for what the slow one left.
    Thread thread("worker", [&] { EXPECT_LE(other.Train(Scalar(1)), 21); });
    EXPECT_LE(chief.Train(Scalar(1)), 21);
  }
  // The slow one never trained: its gradients were not missed, and are now too old.
  EXPECT_GE(chief.global_step(), 20);
  const std::vector<float> before = chief.Weights();
  slow.Train(Scalar(1000), 1);
  EXPECT_GE(slow.global_step(), 20);
  EXPECT_EQ(chief.Weights(), before);
}

TEST(SyncReplicasTest, AWorkerThatStartsAgainJoins) {
  LocalCluster cluster(2);
  Replica chief(cluster, 0, {.last_step = 12});
  ASSERT_TRUE(chief.ok());
  Thread thread("chief", [&] { chief.Train(Scalar(1)); });
  for (const int64_t steps : {3, 4, 1000}) {
    Replica other(cluster, 1, {.last_step = 12});
    ASSERT_TRUE(other.ok());
    other.Train(Scalar(1), steps);
  }
  thread.Join();
  EXPECT_GE(chief.global_step(), 12);
}

TEST(SyncReplicasTest, AChiefThatStartsAgainLetsTheOthersGoOn) {
  LocalCluster cluster(2);
  auto chief = std::make_unique<Replica>(cluster, 0, Replica::Options{.last_step = 12});
  Replica other(cluster, 1, {.last_step = 12});
  ASSERT_TRUE(chief->ok() && other.ok());
  Thread thread("worker", [&] { other.Train(Scalar(1)); });
  for (const int64_t steps : {3, 4, 1000}) {
    chief->Train(Scalar(1), steps);
    if (steps < 1000)
      chief = std::make_unique<Replica>(cluster, 0, Replica::Options{.last_step = 12});
    ASSERT_TRUE(chief->ok());
  }
  thread.Join();
  EXPECT_GE(chief->global_step(), 12);
}

TEST(SyncReplicasTest, RefusesNumbersThatCannotBe) {
  for (const auto& [to_aggregate, total] : {std::pair(0, 1), std::pair(3, 2)}) {
    Program program;
    const Variable w = program.AddVariable("w", DType::kFloat, Shape(), Zeros());
    SyncReplicas sync(GradientDescent(1), to_aggregate, total, /*worker=*/0);
    EXPECT_EQ(sync.Minimize(program, w.value).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace weft::train
