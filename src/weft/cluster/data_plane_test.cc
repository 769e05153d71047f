// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/data_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"

#include "weft/wire/tensor_frame.h"

namespace weft::cluster {
namespace {

using ::testing::HasSubstr;
using transport::FrameHeader;
using transport::FrameKind;
using transport::Region;

class Recorder : public FrameReceiver {
 public:
  Region BodyFor(const std::string&, const FrameHeader& header, absl::string_view) override {
    StatusOr<Region> body = wire::AllocateBody(header.body_bytes);
    return body.ok() ? *body : Region();
  }
  void Received(const std::string& task, const FrameHeader& header, absl::string_view meta,
                Region body) override {
    absl::MutexLock lock(&mutex_);
    frames_.push_back(absl::StrCat(task, " ", header.step, " ", meta, " ", body.size));
  }
  void TaskLost(const std::string& task, const Status& why) override {
    absl::MutexLock lock(&mutex_);
    lost_.push_back(absl::StrCat(task, " ", absl::StatusCodeToString(why.code())));
  }
  std::vector<std::string> WaitForFrames(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return frames_.size() >= count; };
    mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(60));
    return frames_;
  }
  std::vector<std::string> WaitForLost(size_t count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return lost_.size() >= count; };
    mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(60));
    return lost_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> frames_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> lost_ ABSL_GUARDED_BY(mutex_);
};

class DataPlaneTest : public ::testing::Test {
 protected:
  std::unique_ptr<DataPlane> Start(const std::string& task, uint64_t incarnation,
                                   Recorder* recorder, const std::string& bind = "127.0.0.1:0") {
    StatusOr<std::unique_ptr<DataPlane>> plane =
        DataPlane::Start({.task = task,
                          .incarnation = incarnation,
                          .token = "t",
                          .bind = bind,
                          .connect_timeout = absl::Seconds(5)},
                         recorder, &pool_);
    EXPECT_TRUE(plane.ok()) << plane.status();
    return *std::move(plane);
  }
  Status SendAndWait(DataPlane& from, const std::string& to, uint64_t step,
                     const std::string& meta) {
    auto done = std::make_shared<absl::Notification>();
    auto result = std::make_shared<Status>();
    FrameHeader header;
    header.kind = FrameKind::kStepStart;
    header.step = step;
    from.Send(to, header, meta, {}, [done, result](const Status& status) {
      *result = status;
      done->Notify();
    });
    done->WaitForNotification();
    return *result;
  }
  ThreadPool pool_{"test", 2};
};

TEST_F(DataPlaneTest, ConnectsWhenFirstNeededAndKeepsOrder) {
  Recorder a_told;
  Recorder b_told;
  const auto a = Start("/job:a/replica:0/task:0", 1, &a_told);
  const auto b = Start("/job:b/replica:0/task:0", 2, &b_told);
  a->Know({"/job:b/replica:0/task:0", b->address(), 2});
  for (uint64_t i = 0; i < 50; ++i) {
    FrameHeader header;
    header.kind = FrameKind::kStepStart;
    header.step = i;
    a->Send("/job:b/replica:0/task:0", header, "m", {}, nullptr);
  }
  const std::vector<std::string> frames = b_told.WaitForFrames(50);
  ASSERT_EQ(frames.size(), 50u);
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(frames[i], absl::StrCat("/job:a/replica:0/task:0 ", i, " m 0"));
  }
  // The way back needs no address: the connection is there.
  EXPECT_EQ(SendAndWait(*b, "/job:a/replica:0/task:0", 7, "back"), absl::OkStatus());
  EXPECT_EQ(a_told.WaitForFrames(1)[0], "/job:b/replica:0/task:0 7 back 0");
}

TEST_F(DataPlaneTest, SaysWhoCannotBeReached) {
  Recorder told;
  const auto a = Start("/job:a/replica:0/task:0", 1, &told);
  EXPECT_EQ(SendAndWait(*a, "/job:b/replica:0/task:0", 1, "").code(),
            absl::StatusCode::kUnavailable);
  a->Know({"/job:b/replica:0/task:0", "127.0.0.1:1", 2});
  const Status refused = SendAndWait(*a, "/job:b/replica:0/task:0", 1, "");
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("/job:b/replica:0/task:0"));
  // Somebody else is at that address.
  Recorder c_told;
  const auto c = Start("/job:c/replica:0/task:0", 3, &c_told);
  a->Know({"/job:b/replica:0/task:0", c->address(), 2});
  EXPECT_EQ(SendAndWait(*a, "/job:b/replica:0/task:0", 1, "").code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(DataPlaneTest, WhoIsRefusedForItsClusterDoesNotTryForEver) {
  Recorder told, stranger_told;
  const auto a = Start("/job:a/replica:0/task:0", 1, &told);
  const StatusOr<std::unique_ptr<DataPlane>> stranger =
      DataPlane::Start({.task = "/job:b/replica:0/task:0",
                        .incarnation = 2,
                        .token = "of another cluster",
                        .bind = "127.0.0.1:0"},
                       &stranger_told, &pool_);
  ASSERT_TRUE(stranger.ok()) << stranger.status();
  a->Know({"/job:b/replica:0/task:0", (*stranger)->address(), 2});
  const Status refused = SendAndWait(*a, "/job:b/replica:0/task:0", 1, "");
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("the same cluster?"));
}

TEST_F(DataPlaneTest, TellsOfALostTaskAndConnectsAgain) {
  Recorder a_told;
  Recorder b_told;
  const auto a = Start("/job:a/replica:0/task:0", 1, &a_told);
  std::unique_ptr<DataPlane> b = Start("/job:b/replica:0/task:0", 2, &b_told);
  const std::string address = b->address();
  a->Know({"/job:b/replica:0/task:0", address, 2});
  ASSERT_EQ(SendAndWait(*a, "/job:b/replica:0/task:0", 1, ""), absl::OkStatus());
  b_told.WaitForFrames(1);
  b.reset();
  EXPECT_EQ(a_told.WaitForLost(1), std::vector<std::string>{"/job:b/replica:0/task:0 UNAVAILABLE"});
  b = Start("/job:b/replica:0/task:0", 9, &b_told, address);
  a->Know({"/job:b/replica:0/task:0", address, 9});
  EXPECT_EQ(SendAndWait(*a, "/job:b/replica:0/task:0", 2, ""), absl::OkStatus());
}

TEST_F(DataPlaneTest, ATaskThatWasStartedAgainIsReachedThoughTheOldConnectionStands) {
  Recorder a_told;
  Recorder b_told;
  Recorder again_told;
  const auto a = Start("/job:a/replica:0/task:0", 1, &a_told);
  const auto b = Start("/job:b/replica:0/task:0", 2, &b_told);
  a->Know({"/job:b/replica:0/task:0", b->address(), 2});
  ASSERT_EQ(SendAndWait(*a, "/job:b/replica:0/task:0", 1, ""), absl::OkStatus());
  const auto again = Start("/job:b/replica:0/task:0", 9, &again_told);
  a->Know({"/job:b/replica:0/task:0", again->address(), 9});
  // While the old connection closes the new one may break: sessions try again then.
  Status sent = SendAndWait(*a, "/job:b/replica:0/task:0", 2, "new");
  for (int i = 0; i < 100 && absl::IsUnavailable(sent); ++i) {
    sent = SendAndWait(*a, "/job:b/replica:0/task:0", 2, "new");
  }
  ASSERT_EQ(sent, absl::OkStatus());
  EXPECT_THAT(again_told.WaitForFrames(1), ::testing::Contains("/job:a/replica:0/task:0 2 new 0"));
  EXPECT_EQ(a_told.WaitForLost(1), std::vector<std::string>{"/job:b/replica:0/task:0 ABORTED"});
}

TEST_F(DataPlaneTest, ShutdownFailsWhatWaits) {
  Recorder told;
  const auto a = Start("/job:a/replica:0/task:0", 1, &told);
  a->Know({"/job:b/replica:0/task:0", "127.0.0.1:1", 2});
  a->Shutdown();
  EXPECT_EQ(SendAndWait(*a, "/job:b/replica:0/task:0", 1, "").code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace weft::cluster
