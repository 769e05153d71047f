// SPDX-License-Identifier: Apache-2.0
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/ops/state/queue_kernel.h"
#include "weft/ops/testing/kernel_runner.h"

namespace weft::ops::state {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::KernelRunner;
using testing::RunOp;
using testing::TestDevice;

Queue::Element Number(int64_t value) { return {Tensor::Scalar(value)}; }

// A queue, a step that may be cancelled, and calls that remember how they ended.
class QueueTest : public ::testing::Test {
 protected:
  static Ref<Queue> Make(int64_t capacity, const std::string& kind = "FIFOQueue",
                         int64_t min_after_dequeue = 0) {
    return MakeQueue({.kind = kind,
                      .name = "q",
                      .capacity = capacity,
                      .types = {DType::kInt64},
                      .shapes = {Shape()},
                      .min_after_dequeue = min_after_dequeue});
  }
  // What a call came to: empty while it waits.
  struct Call {
    bool over = false;
    Status status;
    std::vector<int64_t> values;
  };
  std::shared_ptr<Call> Put(Queue& queue, std::vector<int64_t> values) {
    Queue::Elements elements;
    for (const int64_t value : values) elements.push_back(Number(value));
    auto call = std::make_shared<Call>();
    queue.Enqueue(caller_, std::move(elements), [call](Status status) {
      EXPECT_FALSE(call->over);
      *call = {true, std::move(status), {}};
    });
    return call;
  }
  std::shared_ptr<Call> Take(Queue& queue, int64_t count, bool fewer = false) {
    auto call = std::make_shared<Call>();
    queue.Dequeue(caller_, count, fewer, [call](StatusOr<Queue::Elements> elements) {
      EXPECT_FALSE(call->over);
      *call = {true, elements.status(), {}};
      if (!elements.ok()) return;
      for (const Queue::Element& element : *elements) {
        call->values.push_back(element[0].scalar<int64_t>());
      }
    });
    return call;
  }
  std::shared_ptr<Call> CloseIt(Queue& queue, bool cancel = false) {
    auto call = std::make_shared<Call>();
    queue.CloseQueue(caller_, cancel, [call](Status status) {
      *call = {true, std::move(status), {}};
    });
    return call;
  }

  Cancellation cancellation_;
  Caller caller_{&cancellation_, nullptr, "device", 1};
};

TEST_F(QueueTest, GivesInOrderAndWaitsWhenEmptyOrFull) {
  auto queue = Make(2);
  EXPECT_TRUE(Put(*queue, {1})->over);
  EXPECT_TRUE(Put(*queue, {2})->over);
  auto third = Put(*queue, {3});
  EXPECT_FALSE(third->over);
  EXPECT_THAT(Take(*queue, 1)->values, ElementsAre(1));
  EXPECT_TRUE(third->over);
  EXPECT_THAT(Take(*queue, 2)->values, ElementsAre(2, 3));
  auto waiting = Take(*queue, 1);
  EXPECT_FALSE(waiting->over);
  Put(*queue, {4});
  EXPECT_THAT(waiting->values, ElementsAre(4));
}

TEST_F(QueueTest, ConsumersTakeTurnsInOrderOfArrival) {
  auto queue = Make(10);
  auto first = Take(*queue, 2);
  auto second = Take(*queue, 1);
  Put(*queue, {1});
  EXPECT_FALSE(first->over);
  EXPECT_FALSE(second->over);
  Put(*queue, {2, 3});
  EXPECT_THAT(first->values, ElementsAre(1, 2));
  EXPECT_THAT(second->values, ElementsAre(3));
}

TEST_F(QueueTest, ABatchMayExceedTheCapacity) {
  auto queue = Make(2);
  auto put = Put(*queue, {1, 2, 3, 4, 5});
  EXPECT_FALSE(put->over);
  EXPECT_EQ(queue->size(), 2);
  EXPECT_THAT(Take(*queue, 4)->values, ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(put->over);
  EXPECT_EQ(queue->size(), 1);
}

TEST_F(QueueTest, AClosedQueueGivesWhatItHasAndTakesNothing) {
  auto queue = Make(10);
  Put(*queue, {1, 2});
  EXPECT_TRUE(CloseIt(*queue)->status.ok());
  EXPECT_TRUE(queue->is_closed());
  const Status put = Put(*queue, {3})->status;
  EXPECT_EQ(put.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(put.message(), "FIFOQueue 'q' is closed.");
  const Status many = Take(*queue, 3)->status;
  EXPECT_EQ(many.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(many.message(),
            "FIFOQueue 'q' is closed and has insufficient elements (requested 3, current size 2)");
  EXPECT_THAT(Take(*queue, 1)->values, ElementsAre(1));
  EXPECT_THAT(Take(*queue, 5, true)->values, ElementsAre(2));
  EXPECT_EQ(Take(*queue, 5, true)->status.code(), absl::StatusCode::kOutOfRange);
  const Status again = CloseIt(*queue)->status;
  EXPECT_EQ(again.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(again.message(), "Queue 'q' is already closed.");
}

TEST_F(QueueTest, ClosingEndsConsumersThatWaitAndReturnsWhatTheyHeld) {
  auto queue = Make(10);
  auto batch = Take(*queue, 3);
  Put(*queue, {1, 2});
  auto later = Take(*queue, 1);
  CloseIt(*queue);
  EXPECT_EQ(batch->status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(later->values, ElementsAre(1));
  EXPECT_THAT(Take(*queue, 1)->values, ElementsAre(2));
}

TEST_F(QueueTest, ClosingWaitsForProducersUnlessItCancelsThem) {
  auto queue = Make(1);
  Put(*queue, {1});
  auto second = Put(*queue, {2});
  auto close = CloseIt(*queue);
  auto late = Put(*queue, {3});
  EXPECT_FALSE(close->over);
  EXPECT_THAT(Take(*queue, 1)->values, ElementsAre(1));
  EXPECT_TRUE(second->status.ok() && second->over);
  EXPECT_TRUE(close->over && close->status.ok());
  EXPECT_EQ(late->status.code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(Take(*queue, 1)->values, ElementsAre(2));

  auto other = Make(1);
  Put(*other, {1});
  auto waiting = Put(*other, {2});
  EXPECT_TRUE(CloseIt(*other, true)->status.ok());
  EXPECT_EQ(waiting->status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(waiting->status.message(), "Enqueue operation was cancelled");
  EXPECT_THAT(Take(*other, 1)->values, ElementsAre(1));
}

TEST_F(QueueTest, ACancelledStepLeavesTheQueueAsItWas) {
  auto queue = Make(3);
  auto batch = Take(*queue, 3);
  Put(*queue, {1, 2});
  cancellation_.Cancel(Cancelled("the step is over"));
  EXPECT_EQ(batch->status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(batch->status.message(), "Dequeue operation was cancelled");
  EXPECT_EQ(Take(*queue, 1)->status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Put(*queue, {9})->status.message(), "Enqueue operation was cancelled");
  Cancellation next;
  caller_.cancellation = &next;
  EXPECT_THAT(Take(*queue, 2)->values, ElementsAre(1, 2));
  auto waiting = Take(*queue, 1);
  EXPECT_FALSE(waiting->over);
  next.Cancel(Cancelled("this too"));
  EXPECT_TRUE(waiting->over);
}

TEST_F(QueueTest, RemovalEndsWhatWaits) {
  auto queue = Make(1);
  auto consumer = Take(*queue, 1);
  queue->Close();
  EXPECT_EQ(consumer->status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Put(*queue, {1})->status.code(), absl::StatusCode::kCancelled);
}

TEST_F(QueueTest, WaitsAreRegistered) {
  RealClock clock;
  WaitRegistry waits(&clock);
  caller_.waits = &waits;
  auto queue = Make(1);
  auto consumer = Take(*queue, 1);
  ASSERT_EQ(waits.Snapshot().size(), 1u);
  EXPECT_EQ(waits.Snapshot()[0].subject->what, "1 of FIFOQueue 'q'");
  Put(*queue, {1});
  EXPECT_TRUE(waits.Snapshot().empty());
}

TEST_F(QueueTest, TheShuffleKeepsItsReserveWhileOpen) {
  auto queue = Make(10, "RandomShuffleQueue", 2);
  Put(*queue, {1, 2, 3});
  EXPECT_TRUE(Take(*queue, 1)->over);
  auto waiting = Take(*queue, 1);
  EXPECT_FALSE(waiting->over);
  CloseIt(*queue);
  EXPECT_TRUE(waiting->over && waiting->status.ok());
  EXPECT_TRUE(Take(*queue, 1)->status.ok());
  EXPECT_EQ(queue->size(), 0);
}

TEST_F(QueueTest, ASeededShuffleGivesTheOrderThatProgramsKnow) {
  auto queue = MakeQueue({.kind = "RandomShuffleQueue",
                          .name = "q",
                          .capacity = 10,
                          .types = {DType::kInt64},
                          .shapes = {Shape()},
                          .min_after_dequeue = 2,
                          .seed = 3,
                          .seed2 = 4});
  Put(*queue, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(Take(*queue, 5)->values, ElementsAre(1, 3, 5, 4, 6));
}

TEST_F(QueueTest, PriorityComesFirstThenArrival) {
  auto queue = MakeQueue({.kind = "PriorityQueue",
                          .name = "q",
                          .capacity = 10,
                          .types = {DType::kInt64, DType::kString},
                          .shapes = {Shape(), Shape()}});
  Queue::Elements elements;
  for (const auto& [priority, name] : {std::pair{2, "a"}, {1, "b"}, {2, "c"}, {1, "d"}}) {
    elements.push_back({Tensor::Scalar<int64_t>(priority), Tensor::Scalar(name)});
  }
  queue->Enqueue(caller_, std::move(elements), [](Status status) { EXPECT_TRUE(status.ok()); });
  std::string order;
  queue->Dequeue(caller_, 4, false, [&](StatusOr<Queue::Elements> taken) {
    ASSERT_TRUE(taken.ok());
    for (const Queue::Element& element : *taken) order += element[1].scalar<std::string>();
  });
  EXPECT_EQ(order, "bdac");
}

TEST_F(QueueTest, ManyThreadsLoseAndRepeatNothing) {
  auto queue = Make(3);
  constexpr int64_t kEach = 500;
  std::atomic<int64_t> sum{0};
  {
    std::vector<Thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back("put", [&, t] {
        for (int64_t i = 0; i < kEach; ++i) {
          absl::Notification done;
          queue->Enqueue(caller_, {Number(t * kEach + i)}, [&](Status status) {
            EXPECT_TRUE(status.ok());
            done.Notify();
          });
          done.WaitForNotification();
        }
      });
      threads.emplace_back("take", [&] {
        for (int64_t i = 0; i < kEach; ++i) {
          absl::Notification done;
          queue->Dequeue(caller_, 1, false, [&](StatusOr<Queue::Elements> elements) {
            if (elements.ok()) sum += elements->front()[0].scalar<int64_t>();
            done.Notify();
          });
          done.WaitForNotification();
        }
      });
    }
  }
  EXPECT_EQ(sum, (2 * kEach - 1) * kEach);
  EXPECT_EQ(queue->size(), 0);
}

// The ops, on one device.
class QueueOpTest : public ::testing::Test {
 protected:
  StatusOr<std::vector<Tensor>> On(const char* op, std::vector<testing::TestInput> inputs,
                                   AttrMap attrs = {}) {
    WEFT_ASSIGN_OR_RETURN(auto runner, KernelRunner::Make(op, std::move(inputs), std::move(attrs)));
    runner->environment().device = device_.get();
    return runner->Run();
  }
  Tensor Handle(const char* op, AttrMap attrs) {
    auto outputs = On(op, {}, std::move(attrs));
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? (*outputs)[0] : Tensor();
  }
  TestDevice device_;
};

TEST_F(QueueOpTest, BatchesGoInByRowsAndComeOutStacked) {
  const Tensor q = Handle("FIFOQueueV2",
                          {{"component_types", AttrValue::TypeList{DType::kInt64, DType::kString}},
                           {"shapes", AttrValue::ShapeList{Shape{2}, Shape()}}});
  const Tensor numbers = Tensor::FromSpan<int64_t>(Shape{3, 2}, {1, 2, 3, 4, 5, 6});
  const std::vector<Tensor> batch = {numbers, Tensor::Vector<std::string>({"a", "b", "c"})};
  ASSERT_TRUE(On("QueueEnqueueManyV2", {q, batch}).ok());
  EXPECT_EQ((*On("QueueSizeV2", {q}))[0].scalar<int32_t>(), 3);
  const AttrMap types = {{"component_types", AttrValue::TypeList{DType::kInt64, DType::kString}}};
  auto one = On("QueueDequeueV2", {q}, types);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ((*one)[0].shape(), Shape{2});
  EXPECT_EQ((*one)[1].scalar<std::string>(), "a");
  auto two = On("QueueDequeueManyV2", {q, Tensor::Scalar<int32_t>(2)}, types);
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_THAT((*two)[0].span<int64_t>(), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT((*two)[1].span<std::string>(), ElementsAre("b", "c"));
  auto none = On("QueueDequeueManyV2", {q, Tensor::Scalar<int32_t>(0)}, types);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ((*none)[0].shape(), (Shape{0, 2}));
}

TEST_F(QueueOpTest, RefusesWhatDoesNotFit) {
  const Tensor q = Handle("FIFOQueueV2", {{"component_types", AttrValue::TypeList{DType::kInt64}},
                                          {"shapes", AttrValue::ShapeList{Shape{2}}},
                                          {"capacity", 2},
                                          {"shared_name", "q"}});
  const auto message = [&](const char* op, Tensor value) {
    return std::string(On(op, {q, std::vector<Tensor>{std::move(value)}}).status().message());
  };
  EXPECT_THAT(message("QueueEnqueueV2", Tensor::Scalar<int64_t>(1)),
              HasSubstr("Shape mismatch in tuple component 0. Expected [2], got []"));
  EXPECT_THAT(message("QueueEnqueueManyV2", Tensor::Vector<int64_t>({1})),
              HasSubstr("Shape mismatch in tuple component 0. Expected [1,2], got [1]"));
  EXPECT_THAT(message("QueueEnqueueManyV2", Tensor::Scalar<int64_t>(1)),
              HasSubstr("must have rows"));
  EXPECT_THAT(message("QueueEnqueueV2", Tensor::Scalar(1.0f)), HasSubstr("Signature mismatch"));
  EXPECT_THAT(On("FIFOQueueV2", {},
                 {{"component_types", AttrValue::TypeList{DType::kInt64}},
                  {"shapes", AttrValue::ShapeList{Shape{2}}},
                  {"capacity", 3},
                  {"shared_name", "q"}})
                  .status()
                  .message(),
              HasSubstr("Shared queue 'q' has capacity 2 but requested capacity was 3"));
}

TEST_F(QueueOpTest, PaddingFillsUpWithZeros) {
  const Tensor q =
      Handle("PaddingFIFOQueueV2", {{"component_types", AttrValue::TypeList{DType::kInt64}},
                                    {"shapes", AttrValue::ShapeList{PartialShape{-1, -1}}}});
  for (const Tensor& value : {Tensor::FromSpan<int64_t>(Shape{1, 2}, {1, 2}),
                              Tensor::FromSpan<int64_t>(Shape{2, 1}, {3, 4}),
                              Tensor::FromSpan<int64_t>(Shape{0, 1}, {})}) {
    ASSERT_TRUE(On("QueueEnqueueV2", {q, std::vector<Tensor>{value}}).ok());
  }
  auto batch = On("QueueDequeueManyV2", {q, Tensor::Scalar<int32_t>(3)},
                  {{"component_types", AttrValue::TypeList{DType::kInt64}}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ((*batch)[0].shape(), (Shape{3, 2, 2}));
  EXPECT_THAT((*batch)[0].span<int64_t>(), ElementsAre(1, 2, 0, 0, 3, 0, 4, 0, 0, 0, 0, 0));
}

TEST_F(QueueOpTest, TheOlderFormNamesTheQueueByReference) {
  auto create = KernelRunner::Make(
      "FIFOQueue", {},
      {{"component_types", AttrValue::TypeList{DType::kFloat}}, {"shared_name", "old"}});
  ASSERT_TRUE(create.ok()) << create.status();
  (*create)->environment().device = device_.get();
  ASSERT_TRUE((*create)->Run().ok());
  const Ref<Variable> names = (*create)->outputs()[0].variable;
  EXPECT_THAT(names->Read()->span<std::string>(), ElementsAre("localhost", "old"));
  ASSERT_TRUE(On("QueueEnqueue", {names, std::vector<Tensor>{Tensor::Scalar(2.5f)}}).ok());
  EXPECT_EQ((*On("QueueSize", {names}))[0].scalar<int32_t>(), 1);
  auto value =
      On("QueueDequeue", {names}, {{"component_types", AttrValue::TypeList{DType::kFloat}}});
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ((*value)[0].scalar<float>(), 2.5f);
}

}  // namespace
}  // namespace weft::ops::state
