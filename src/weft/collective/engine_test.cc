// SPDX-License-Identifier: Apache-2.0
// The engine's results and errors, over a network that delivers in order.
#include "weft/collective/engine.h"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::collective {
namespace {

using testing::HasSubstr;

std::string NameOf(int task) { return absl::StrCat("/job:worker/replica:0/task:", task); }
std::string DeviceOf(int task, int device) {
  return absl::StrCat(NameOf(task), "/device:CPU:", device);
}

// Tasks of one thread: what is sent or executed waits in a queue.
class Tasks {
 public:
  explicit Tasks(int count) {
    for (int task = 0; task < count; ++task) nodes_.push_back(std::make_unique<Node>(this, task));
  }
  Engine& engine(int task) { return *nodes_[static_cast<size_t>(task)]->engine; }
  void RunAll() {
    while (!soon_.empty()) {
      auto what = std::move(soon_.front());
      soon_.pop_front();
      what();
    }
  }
  // What is due within `by`.
  void Advance(absl::Duration by) {
    now_ += by;
    while (!timers_.empty() && timers_.begin()->first <= now_) {
      auto what = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
      what();
      RunAll();
    }
  }
  void Lose(int task) {
    lost_.insert(task);
    for (size_t other = 0; other < nodes_.size(); ++other) {
      if (lost_.contains(static_cast<int>(other))) continue;
      engine(static_cast<int>(other)).TaskLost(NameOf(task), Unavailable("Lost ", NameOf(task)));
    }
    RunAll();
  }

 private:
  struct Node final : public Network {
    Node(Tasks* all, int number) : tasks(all), task(number) {
      me.set_task(NameOf(number));
      me.set_address("10.0.0.1:1");
      me.set_incarnation(100 + static_cast<uint64_t>(number));
      me.set_rank(-1);
      engine = std::make_unique<Engine>(
          EngineOptions{.leader = NameOf(0),
                        .tasks = {NameOf(0), NameOf(1), NameOf(2)},
                        .boards = testing::WithParamInterface<bool>::GetParam()},
          this);
    }
    const CollectiveMember& self() const override { return me; }
    void Send(const std::string& to, CollectiveMessage message, std::vector<Tensor> body) override {
      std::vector<uint8_t> bytes;
      for (const Tensor& part : body) {
        const auto* data = reinterpret_cast<const uint8_t*>(part.bytes());
        bytes.insert(bytes.end(), data, data + part.size_bytes());
      }
      tasks->soon_.push_back([this, number = to.back() - '0', message, bytes] {
        if (tasks->lost_.contains(number) || tasks->lost_.contains(task)) return;
        tasks->engine(number).Received(
            NameOf(task), message,
            bytes.empty() ? Tensor()
                          : Tensor::FromSpan<uint8_t>(Shape{static_cast<int64_t>(bytes.size())},
                                                      absl::MakeConstSpan(bytes)));
      });
    }
    void Learn(const CollectiveMember&) override {}
    void After(absl::Duration delay, absl::AnyInvocable<void()> what) override {
      tasks->timers_.emplace(tasks->now_ + delay, std::move(what));
    }
    void Execute(absl::AnyInvocable<void()> what) override {
      tasks->soon_.push_back(std::move(what));
    }
    Tasks* const tasks;
    const int task;
    CollectiveMember me;
    std::unique_ptr<Engine> engine;
  };

  std::vector<std::unique_ptr<Node>> nodes_;
  std::deque<absl::AnyInvocable<void()>> soon_;
  std::multimap<absl::Duration, absl::AnyInvocable<void()>> timers_;
  absl::Duration now_;
  std::set<int> lost_;
};

CollectiveCall CallOf(CollectiveKind kind, int size, const std::string& device, Tensor input) {
  CollectiveCall call;
  call.kind = kind;
  call.group_key = 3;
  call.group_size = size;
  call.instance_key = 7;
  call.device = device;
  call.node = "node";
  call.step_id = 1;
  call.dtype = input.dtype();
  call.shape = input.shape();
  call.input = std::move(input);
  return call;
}

// Of tasks of one host, which have boards or send messages only.
class EngineTest : public testing::TestWithParam<bool> {
 protected:
  // Runs a call of each rank, `per_task` of them at a task, and gives what each got.
  std::vector<StatusOr<Tensor>> RunRanks(Tasks& tasks, std::vector<CollectiveCall> calls,
                                         int per_task) {
    std::vector<StatusOr<Tensor>> results(calls.size(), Status(absl::StatusCode::kUnknown, "none"));
    for (size_t rank = 0; rank < calls.size(); ++rank) {
      tasks.engine(static_cast<int>(rank) / per_task)
          .Run(std::move(calls[rank]),
               [&results, rank](StatusOr<Tensor> result) { results[rank] = std::move(result); });
    }
    tasks.RunAll();
    return results;
  }
  std::vector<StatusOr<Tensor>> RunAlike(CollectiveKind kind, int num_tasks, int per_task,
                                         absl::FunctionRef<Tensor(int rank)> input,
                                         absl::FunctionRef<void(CollectiveCall*)> change) {
    Tasks tasks(num_tasks);
    std::vector<CollectiveCall> calls;
    for (int rank = 0; rank < num_tasks * per_task; ++rank) {
      calls.push_back(CallOf(kind, num_tasks * per_task, DeviceOf(rank / per_task, rank % per_task),
                             input(rank)));
      change(&calls.back());
    }
    return RunRanks(tasks, std::move(calls), per_task);
  }
};

std::vector<float> ValuesOf(const StatusOr<Tensor>& tensor) {
  if (!tensor.ok()) {
    ADD_FAILURE() << tensor.status();
    return {};
  }
  const auto span = tensor->span<float>();
  return std::vector<float>(span.begin(), span.end());
}

TEST_P(EngineTest, ReducesOverTasksAndTheirDevices) {
  for (const char* algorithm :
       {"auto", "direct", "parts", "ring", "halving-doubling", "hub", "hierarchical"}) {
    for (const auto& [tasks, devices] : {std::pair(1, 1), {1, 3}, {2, 1}, {3, 2}, {5, 1}}) {
      SCOPED_TRACE(absl::StrCat(algorithm, " ", tasks, " x ", devices));
      const int ranks = tasks * devices;
      const auto input = [](int rank) {
        const float r = static_cast<float>(rank + 1);
        return Tensor::Vector<float>({r, 10 * r, -r, 0, r * r});
      };
      float sum = 0;
      float squares = 0;
      for (int rank = 1; rank <= ranks; ++rank) {
        sum += static_cast<float>(rank);
        squares += static_cast<float>(rank * rank);
      }
      const auto n = static_cast<float>(ranks);
      for (const auto& result : RunAlike(CollectiveKind::kReduce, tasks, devices, input,
                                         [&](CollectiveCall* c) { c->algorithm = algorithm; })) {
        EXPECT_EQ(ValuesOf(result), (std::vector<float>{sum, 10 * sum, -sum, 0, squares}));
      }
      for (const auto& result :
           RunAlike(CollectiveKind::kReduce, tasks, devices, input, [&](CollectiveCall* c) {
             c->algorithm = algorithm;
             c->reduction = ReductionOp::kMax;
           })) {
        EXPECT_EQ(ValuesOf(result), (std::vector<float>{n, 10 * n, -1, 0, n * n}));
      }
      for (const auto& result :
           RunAlike(CollectiveKind::kReduce, tasks, devices, input, [&](CollectiveCall* c) {
             c->algorithm = algorithm;
             c->mean = true;
           })) {
        EXPECT_EQ(ValuesOf(result)[0], sum / n);
      }
    }
  }
}

TEST_P(EngineTest, MovesRowsToTheirRanks) {
  for (const auto& [tasks, devices] : {std::pair(1, 2), {2, 1}, {3, 2}}) {
    const int ranks = tasks * devices;
    const auto rows = [ranks = ranks](int rank) {
      std::vector<float> values;
      for (int row = 0; row < ranks; ++row) values.push_back(static_cast<float>(10 * rank + row));
      return Tensor::FromSpan<float>(Shape{ranks}, absl::MakeConstSpan(values));
    };
    const auto nothing = [](CollectiveCall*) {};
    std::vector<float> gathered;
    for (int rank = 0; rank < ranks; ++rank) {
      for (int row = 0; row < ranks; ++row) gathered.push_back(static_cast<float>(10 * rank + row));
    }
    const auto all = RunAlike(CollectiveKind::kAllToAll, tasks, devices, rows, nothing);
    const auto parts = RunAlike(CollectiveKind::kReduceScatter, tasks, devices, rows, nothing);
    const auto gathers = RunAlike(CollectiveKind::kGather, tasks, devices, rows, nothing);
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<float> transposed;
      float sum = 0;
      for (int from = 0; from < ranks; ++from) {
        transposed.push_back(static_cast<float>(10 * from + rank));
        sum += static_cast<float>(10 * from + rank);
      }
      EXPECT_EQ(ValuesOf(all[rank]), transposed);
      EXPECT_EQ(ValuesOf(parts[rank]), std::vector<float>{sum});
      EXPECT_EQ(ValuesOf(gathers[rank]), gathered);
    }
  }
}

TEST_P(EngineTest, BroadcastsFromAnyRank) {
  for (int root = 0; root < 5; ++root) {
    const Tensor value = Tensor::Vector<float>({3, 4});
    int rank = 0;
    const auto results = RunAlike(
        CollectiveKind::kBroadcast, 5, 1, [&](int) { return value; },
        [&](CollectiveCall* call) {
          if (rank++ != root) call->input = Tensor();
        });
    for (const auto& result : results) EXPECT_EQ(ValuesOf(result), (std::vector<float>{3, 4}));
  }
}

TEST_P(EngineTest, RanksThatDisagreeAreBothNamed) {
  Tasks tasks(2);
  std::vector<CollectiveCall> calls{
      CallOf(CollectiveKind::kReduce, 2, DeviceOf(0, 0), Tensor::Vector<float>({1, 2})),
      CallOf(CollectiveKind::kReduce, 2, DeviceOf(1, 0), Tensor::Vector<float>({1, 2, 3}))};
  for (const auto& result : RunRanks(tasks, std::move(calls), 1)) {
    EXPECT_TRUE(absl::IsInvalidArgument(result.status())) << result.status();
    EXPECT_THAT(result.status().message(), HasSubstr("float [2]"));
    EXPECT_THAT(result.status().message(), HasSubstr("float [3]"));
    EXPECT_THAT(result.status().message(), HasSubstr("/task:0"));
    EXPECT_THAT(result.status().message(), HasSubstr("/task:1"));
  }
  // The group is formed again.
  std::vector<CollectiveCall> good{
      CallOf(CollectiveKind::kReduce, 2, DeviceOf(0, 0), Tensor::Vector<float>({1, 2})),
      CallOf(CollectiveKind::kReduce, 2, DeviceOf(1, 0), Tensor::Vector<float>({1, 2}))};
  for (CollectiveCall& call : good) call.step_id = 2;
  for (const auto& result : RunRanks(tasks, std::move(good), 1))
    EXPECT_EQ(ValuesOf(result), (std::vector<float>{2, 4}));
}

TEST_P(EngineTest, SizesThatDisagreeAreToldToBoth) {
  Tasks tasks(2);
  std::vector<CollectiveCall> calls{
      CallOf(CollectiveKind::kReduce, 2, DeviceOf(0, 0), Tensor::Vector<float>({1})),
      CallOf(CollectiveKind::kReduce, 3, DeviceOf(1, 0), Tensor::Vector<float>({1}))};
  for (const auto& result : RunRanks(tasks, std::move(calls), 1)) {
    EXPECT_TRUE(absl::IsInvalidArgument(result.status())) << result.status();
    EXPECT_THAT(result.status().message(), HasSubstr("Group 3 has 2 members"));
  }
}

TEST_P(EngineTest, AGroupThatDoesNotFillSaysWhoIsMissing) {
  Tasks tasks(3);
  CollectiveCall call =
      CallOf(CollectiveKind::kReduce, 3, DeviceOf(1, 0), Tensor::Vector<float>({1}));
  call.timeout = absl::Seconds(5);
  StatusOr<Tensor> result = Status(absl::StatusCode::kUnknown, "none");
  tasks.engine(1).Run(std::move(call), [&](StatusOr<Tensor> got) { result = std::move(got); });
  tasks.RunAll();
  tasks.Advance(absl::Seconds(5));
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
  EXPECT_THAT(result.status().message(), HasSubstr("1 of 3 members are there"));
  EXPECT_THAT(result.status().message(),
              HasSubstr("nothing came from /job:worker/replica:0/task:0, "
                        "/job:worker/replica:0/task:2"));
}

TEST_P(EngineTest, ALateRankIsNamed) {
  Tasks tasks(2);
  std::vector<CollectiveCall> first{
      CallOf(CollectiveKind::kReduce, 2, DeviceOf(0, 0), Tensor::Vector<float>({1})),
      CallOf(CollectiveKind::kReduce, 2, DeviceOf(1, 0), Tensor::Vector<float>({1}))};
  RunRanks(tasks, std::move(first), 1);
  CollectiveCall call =
      CallOf(CollectiveKind::kReduce, 2, DeviceOf(0, 0), Tensor::Vector<float>({1}));
  call.step_id = 2;
  call.timeout = absl::Seconds(5);
  StatusOr<Tensor> result = Status(absl::StatusCode::kUnknown, "none");
  tasks.engine(0).Run(std::move(call), [&](StatusOr<Tensor> got) { result = std::move(got); });
  tasks.RunAll();
  tasks.Advance(absl::Seconds(5));
  EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
  EXPECT_THAT(result.status().message(), HasSubstr("waiting for /job:worker/replica:0/task:1"));
}

TEST_P(EngineTest, RanksThatComeInAnotherOrderAreBothNamed) {
  Tasks tasks(2);
  std::vector<CollectiveCall> first{
      CallOf(CollectiveKind::kReduce, 2, DeviceOf(0, 0), Tensor::Vector<float>({1})),
      CallOf(CollectiveKind::kReduce, 2, DeviceOf(1, 0), Tensor::Vector<float>({1}))};
  RunRanks(tasks, std::move(first), 1);
  std::vector<CollectiveCall> crossed{
      CallOf(CollectiveKind::kReduce, 2, DeviceOf(0, 0), Tensor::Vector<float>({1})),
      CallOf(CollectiveKind::kReduce, 2, DeviceOf(1, 0), Tensor::Vector<float>({1}))};
  for (CollectiveCall& call : crossed) {
    call.step_id = 2;
    call.timeout = absl::Seconds(5);
  }
  crossed[1].instance_key = 8;
  std::vector<StatusOr<Tensor>> results(2, Status(absl::StatusCode::kUnknown, "none"));
  for (size_t task = 0; task < 2; ++task) {
    tasks.engine(static_cast<int>(task)).Run(std::move(crossed[task]), [&, task](auto result) {
      results[task] = std::move(result);
    });
  }
  tasks.RunAll();
  tasks.Advance(absl::Seconds(5));
  EXPECT_TRUE(absl::IsDeadlineExceeded(results[0].status())) << results[0].status();
  EXPECT_THAT(results[0].status().message(),
              HasSubstr("Instance 7 of group 3 did not end within 5s: waiting for "
                        "/job:worker/replica:0/task:1; /job:worker/replica:0/task:1 has come to "
                        "instance 8, but no rank here"));
}

TEST(LeaderTest, SaysWhichTasksAGroupStillLacks) {
  Leader leader(1, {"/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"});
  CollectiveMessage join;
  join.set_group_key(3);
  join.set_group_size(2);
  CollectiveMember* const member = join.add_member();
  member->set_task("/job:worker/replica:0/task:0");
  member->set_device(DeviceOf(0, 0));
  std::vector<Addressed> out;
  leader.Join(join, &out);
  EXPECT_TRUE(leader.IsForming());
  EXPECT_TRUE(leader.Late(leader.next_number() - 1).empty());
  EXPECT_THAT(leader.Late(leader.next_number()),
              testing::ElementsAre(HasSubstr("Group 3 still forms: 1 of 2 members are there, "
                                             "/job:worker/replica:0/task:0/device:CPU:0; nothing "
                                             "came from /job:worker/replica:0/task:1")));
}

TEST_P(EngineTest, ALostTaskEndsTheOthersCalls) {
  Tasks tasks(3);
  const auto call = [](int task, int64_t step) {
    CollectiveCall one =
        CallOf(CollectiveKind::kReduce, 3, DeviceOf(task, 0), Tensor::Vector<float>({1}));
    one.step_id = step;
    return one;
  };
  RunRanks(tasks, {call(0, 1), call(1, 1), call(2, 1)}, 1);
  std::vector<StatusOr<Tensor>> results(2, Status(absl::StatusCode::kUnknown, "none"));
  for (int task = 0; task < 2; ++task) {
    tasks.engine(task).Run(call(task, 2), [&results, task](StatusOr<Tensor> got) {
      results[static_cast<size_t>(task)] = std::move(got);
    });
  }
  tasks.RunAll();
  tasks.Lose(2);
  for (const auto& result : results) {
    EXPECT_TRUE(absl::IsUnavailable(result.status())) << result.status();
    EXPECT_THAT(result.status().message(), HasSubstr("/task:2"));
  }
}

TEST_P(EngineTest, ARankBetweenStepsHearsOfALossAtItsNext) {
  Tasks tasks(2);
  const int session = 0;
  const auto call = [&](int task, int64_t step) {
    CollectiveCall one =
        CallOf(CollectiveKind::kReduce, 2, DeviceOf(task, 0), Tensor::Vector<float>({1}));
    one.step_id = step;
    one.session = &session;
    return one;
  };
  RunRanks(tasks, {call(0, 1), call(1, 1)}, 1);
  tasks.Lose(1);
  StatusOr<Tensor> result = Status(absl::StatusCode::kUnknown, "none");
  tasks.engine(0).Run(call(0, 2), [&](StatusOr<Tensor> got) { result = std::move(got); });
  tasks.RunAll();
  EXPECT_TRUE(absl::IsUnavailable(result.status())) << result.status();
  EXPECT_THAT(result.status().message(), HasSubstr("/task:1"));
  // Another session does not care, and waits for the task to come back.
  bool ended = false;
  CollectiveCall other = call(0, 3);
  other.session = nullptr;
  tasks.engine(0).Run(std::move(other), [&](const StatusOr<Tensor>&) { ended = true; });
  tasks.RunAll();
  EXPECT_FALSE(ended);
}

TEST_P(EngineTest, ACancelledStepEndsTheOthersCalls) {
  Tasks tasks(2);
  Cancellation cancellation;
  CollectiveCall call =
      CallOf(CollectiveKind::kReduce, 2, DeviceOf(0, 0), Tensor::Vector<float>({1}));
  std::vector<CollectiveCall> first{
      call, CallOf(CollectiveKind::kReduce, 2, DeviceOf(1, 0), Tensor::Vector<float>({1}))};
  RunRanks(tasks, std::move(first), 1);
  call.step_id = 2;
  call.cancellation = &cancellation;
  StatusOr<Tensor> result = Status(absl::StatusCode::kUnknown, "none");
  tasks.engine(0).Run(std::move(call), [&](StatusOr<Tensor> got) { result = std::move(got); });
  tasks.RunAll();
  cancellation.Cancel(Cancelled("enough"));
  tasks.RunAll();
  EXPECT_TRUE(absl::IsCancelled(result.status())) << result.status();
}

// One that is not up yet is asked again; one of another kind never will be a leader.
TEST_P(EngineTest, ALeaderThatHasNoPartInOurCollectivesEndsTheCallAtOnce) {
  for (const bool is_foreign : {false, true}) {
    Tasks tasks(2);
    StatusOr<Tensor> result = Status(absl::StatusCode::kUnknown, "none");
    tasks.engine(1).Run(
        CallOf(CollectiveKind::kReduce, 2, DeviceOf(1, 0), Tensor::Vector<float>({1})),
        [&](StatusOr<Tensor> got) { result = std::move(got); });
    tasks.engine(1).TaskLost(
        NameOf(0), is_foreign ? Unimplemented("another's server") : Unavailable("not there"));
    tasks.RunAll();
    EXPECT_EQ(absl::IsUnimplemented(result.status()), is_foreign) << result.status();
    EXPECT_EQ(result.status().message(),
              is_foreign ? "Group 3 cannot be formed: another's server" : "none");
  }
}

TEST_P(EngineTest, RefusesWhatCannotBeSplit) {
  const auto nothing = [](CollectiveCall*) {};
  for (const CollectiveKind kind : {CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll}) {
    for (const auto& result : RunAlike(
             kind, 1, 2,
             [](int) {
               return Tensor::Vector<float>({1, 2, 3});
             },
             nothing)) {
      EXPECT_TRUE(absl::IsInvalidArgument(result.status())) << result.status();
    }
  }
  for (const auto& result : RunAlike(
           CollectiveKind::kGather, 1, 2, [](int) { return Tensor::Scalar<float>(1); }, nothing)) {
    EXPECT_TRUE(absl::IsInvalidArgument(result.status())) << result.status();
  }
}

INSTANTIATE_TEST_SUITE_P(Boards, EngineTest, testing::Bool());

}  // namespace
}  // namespace weft::collective
