// SPDX-License-Identifier: Apache-2.0
#include "weft/master/master_session.h"

#include <utility>

#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"

namespace weft::master {
namespace {

// Its steps end when they are cancelled, on the thread that cancels, and let go of all they hold.
class WaitingRunner final : public StepRunner {
 public:
  Status Extend(GraphDef, Cancellation*) override { return absl::OkStatus(); }
  void Run(Step step, Done done) override {
    struct Waiting {
      std::shared_ptr<Cancellation> cancellation;
      Done done;
    };
    Cancellation* const cancellation = step.cancellation.get();
    const auto waiting =
        std::make_shared<Waiting>(Waiting{std::move(step.cancellation), std::move(done)});
    Cancellation::Token token;
    ASSERT_TRUE(cancellation->Register(&token, [waiting](const Status& why) {
      Done told = std::move(waiting->done);
      waiting->cancellation.reset();
      told(why);
    }));
  }
  Status CheckComputable(const std::vector<std::string>&, const std::vector<std::string>&,
                         const std::vector<std::string>&) override {
    return absl::OkStatus();
  }
};

class MasterSessionTest : public ::testing::Test {
 protected:
  // Of a step that waits.
  struct Ended {
    absl::Notification told;
    Status status;
  };
  std::shared_ptr<Ended> Start(SessionStep step = {}) {
    auto ended = std::make_shared<Ended>();
    session_->Run(std::move(step), [ended](StatusOr<StepResult> result) {
      ended->status = result.status();
      ended->told.Notify();
    });
    return ended;
  }

  TimerQueue timers_;
  std::shared_ptr<MasterSession> session_ = std::make_shared<MasterSession>(
      "handle", tensorflow::ConfigProto(), std::make_unique<WaitingRunner>(), &timers_);
};

TEST_F(MasterSessionTest, CloseEndsWhatRunsAndThenTells) {
  const auto first = Start();
  const auto second = Start();
  int closed = 0;
  session_->Close(Aborted("closed"), [&] {
    EXPECT_TRUE(first->told.HasBeenNotified() && second->told.HasBeenNotified());
    ++closed;
  });
  EXPECT_EQ(closed, 1);
  EXPECT_EQ(first->status, Aborted("closed"));
  EXPECT_EQ(second->status, Aborted("closed"));
  EXPECT_EQ(Start()->status, FailedPrecondition("Session is closed."));
  EXPECT_GE(session_->idle(), absl::ZeroDuration());
}

TEST_F(MasterSessionTest, TheCallEndsItsStepAndNoOther) {
  Cancellation call, gone;
  const auto mine = Start({.caller = &call});
  const auto other = Start();
  call.Cancel(Cancelled("the client left"));
  EXPECT_EQ(mine->status, Cancelled("the client left"));
  EXPECT_FALSE(other->told.HasBeenNotified());
  EXPECT_EQ(session_->idle(), absl::ZeroDuration());
  gone.Cancel(Cancelled("it had left before"));
  EXPECT_EQ(Start({.caller = &gone})->status, Cancelled("it had left before"));
  session_->Close(Aborted("closed"), [] {});
}

TEST_F(MasterSessionTest, ItsTimeEndsAStep) {
  const auto step = Start({.timeout = absl::Milliseconds(1)});
  step->told.WaitForNotification();
  EXPECT_EQ(step->status.code(), absl::StatusCode::kDeadlineExceeded) << step->status;
}

}  // namespace
}  // namespace weft::master
