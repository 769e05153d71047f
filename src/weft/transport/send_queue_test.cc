// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/send_queue.h"

#include <random>

#include "gtest/gtest.h"

namespace weft::transport {
namespace {

OutFrame Frame(FrameKind kind, uint64_t bytes, uint32_t key = 0) {
  OutFrame frame;
  frame.header.kind = kind;
  frame.header.key = key;
  frame.header.body_bytes = bytes;
  return frame;
}

TEST(SendQueue, ControlGoesBeforeBulkAndEachLaneKeepsItsOrder) {
  SendQueue queue(1 << 20, 100);
  queue.set_window(1 << 20);
  for (uint32_t key = 0; key < 3; ++key) {
    OutFrame bulk = Frame(FrameKind::kTensor, 10, key);
    OutFrame control = Frame(FrameKind::kStepDone, 0, 10 + key);
    ASSERT_TRUE(queue.Push(bulk).ok());
    ASSERT_TRUE(queue.Push(control).ok());
  }
  queue.PushOwn(MakeControl(FrameKind::kPing, 1));
  EXPECT_EQ(queue.Pop().header.kind, FrameKind::kPing);
  for (const uint32_t key : {10u, 11u, 12u, 0u, 1u, 2u}) EXPECT_EQ(queue.Pop().header.key, key);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.queued_bytes(), 0u);
}

TEST(SendQueue, BulkWaitsForCreditAndControlDoesNot) {
  SendQueue queue(1 << 20, 100);
  queue.set_window(1000);
  for (int i = 0; i < 3; ++i) {
    OutFrame bulk = Frame(FrameKind::kTensor, 600);
    ASSERT_TRUE(queue.Push(bulk).ok());
  }
  ASSERT_TRUE(queue.Ready());
  queue.Pop();
  EXPECT_FALSE(queue.Ready());
  OutFrame abort = Frame(FrameKind::kAbort, 0);
  ASSERT_TRUE(queue.Push(abort).ok());
  ASSERT_TRUE(queue.Ready());
  EXPECT_EQ(queue.Pop().header.kind, FrameKind::kAbort);
  EXPECT_FALSE(queue.Ready());
  ASSERT_TRUE(queue.AddCredit(600).ok());
  EXPECT_TRUE(queue.Ready());
}

TEST(SendQueue, AFrameLargerThanTheWindowGoesAlone) {
  SendQueue queue(1 << 20, 100);
  queue.set_window(1000);
  OutFrame huge = Frame(FrameKind::kTensor, 5000);
  ASSERT_TRUE(queue.Push(huge).ok());
  ASSERT_TRUE(queue.Ready());
  queue.Pop();
  OutFrame next = Frame(FrameKind::kTensor, 1);
  ASSERT_TRUE(queue.Push(next).ok());
  EXPECT_FALSE(queue.Ready());
}

TEST(SendQueue, RefusesMoreCreditThanWasUsed) {
  SendQueue queue(1 << 20, 100);
  queue.set_window(1000);
  OutFrame bulk = Frame(FrameKind::kTensor, 600);
  ASSERT_TRUE(queue.Push(bulk).ok());
  queue.Pop();
  EXPECT_FALSE(queue.AddCredit(601).ok());
  EXPECT_TRUE(queue.AddCredit(600).ok());
  EXPECT_FALSE(queue.AddCredit(1).ok());
}

TEST(SendQueue, RefusesWhenFullAndLeavesTheFrame) {
  SendQueue queue(1000, 3);
  OutFrame first = Frame(FrameKind::kStepStart, 5000);  // alone it may exceed the limit
  ASSERT_TRUE(queue.Push(first).ok());
  OutFrame second = Frame(FrameKind::kStepStart, 10, 77);
  EXPECT_TRUE(absl::IsResourceExhausted(queue.Push(second)));
  EXPECT_EQ(second.header.key, 77u);
  queue.Pop();
  for (int i = 0; i < 3; ++i) {
    OutFrame small = Frame(FrameKind::kStepStart, 0);
    EXPECT_TRUE(queue.Push(small).ok());
  }
  OutFrame one_more = Frame(FrameKind::kStepStart, 0);
  EXPECT_TRUE(absl::IsResourceExhausted(queue.Push(one_more)));
  EXPECT_EQ(queue.TakeAll().size(), 3u);
  EXPECT_EQ(queue.queued_bytes(), 0u);
}

// Sender and receiver never wait for each other, whatever the sizes.
TEST(Credit, NeverLocksUp) {
  std::mt19937 random(3);
  for (const uint64_t window : {0u, 1u, 2u, 3u, 4u, 7u, 100u, 1000u}) {
    SendQueue queue(1 << 30, 1 << 20);
    queue.set_window(window);
    CreditReturn credit(window);
    for (int i = 0; i < 2000; ++i) {
      OutFrame frame = Frame(FrameKind::kTensor, random() % (2 * window + 3));
      ASSERT_TRUE(queue.Push(frame).ok());
    }
    int sent = 0;
    while (!queue.empty()) {
      ASSERT_TRUE(queue.Ready()) << "window " << window << " after " << sent;
      const uint64_t bytes = queue.Pop().header.body_bytes;
      ++sent;
      credit.Owe(bytes);
      const uint64_t announce = credit.Add(bytes);
      ASSERT_TRUE(queue.AddCredit(announce).ok());
    }
  }
}

TEST(Credit, CutsWhatIsNotOwed) {
  CreditReturn credit(4);
  credit.Owe(10);
  EXPECT_EQ(credit.Add(1000), 10u);
  EXPECT_EQ(credit.Add(1000), 0u);
}

TEST(MakeFrame, RefusesWhatACallerMayNotSend) {
  OutFrame frame;
  FrameHeader header;
  for (const FrameKind kind : {FrameKind::kHello, FrameKind::kCredit, FrameKind::kPing,
                               FrameKind::kPong, FrameKind::kGoodbye}) {
    header.kind = kind;
    EXPECT_TRUE(absl::IsInvalidArgument(MakeFrame(header, "", {}, &frame)));
  }
  header.kind = FrameKind::kAbort;
  EXPECT_TRUE(MakeFrame(header, std::string(kMaxMetaBytes, 'x'), {}, &frame).ok());
  EXPECT_FALSE(MakeFrame(header, std::string(kMaxMetaBytes + 1, 'x'), {}, &frame).ok());
  header.flags = 0x100;
  EXPECT_FALSE(MakeFrame(header, "", {}, &frame).ok());
}

}  // namespace
}  // namespace weft::transport
