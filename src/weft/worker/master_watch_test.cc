// SPDX-License-Identifier: Apache-2.0
#include "weft/worker/master_watch.h"

#include <gtest/gtest.h>

#include "base/threads.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/ops/catalogue.h"

namespace weft::worker {
namespace {

class NoSink final : public rendezvous::TensorSink {
 public:
  Status Push(int64_t, const RendezvousKey&, const Tensor&, bool) override {
    return absl::OkStatus();
  }
};

class MasterWatchTest : public ::testing::Test {
 protected:
  MasterWatchTest() {
    device_ = MakeCpuDevice(task_, 0, &pool_);
    worker_.emplace(WorkerOptions{.task = task_,
                                  .catalogue = &StandardCatalogue(),
                                  .devices = {device_.get()},
                                  .pool = &pool_,
                                  .waits = &waits_,
                                  .clock = &clock_},
                    &sink_);
    watch_.emplace(&*worker_, &clock_, absl::Minutes(10), [this](const std::string& master) {
      asked_.push_back(master);
      return answer_;
    });
  }
  void Open(const std::string& handle, const std::string& master, uint64_t incarnation) {
    ASSERT_EQ(worker_->CreateSession(
                  {.handle = handle, .master = master, .master_incarnation = incarnation}),
              absl::OkStatus());
  }
  size_t sessions() { return worker_->counts().sessions; }

  const DeviceName task_{.job = "ps", .replica = 0, .task = 0};
  ThreadPool pool_{"test", 1};
  FakeClock clock_;
  WaitRegistry waits_{&clock_};
  NoSink sink_;
  std::unique_ptr<Device> device_;
  std::optional<Worker> worker_;
  std::vector<std::string> asked_;
  StatusOr<uint64_t> answer_ = 7;
  std::optional<MasterWatch> watch_;
};

TEST_F(MasterWatchTest, LivingMastersKeepTheirSessions) {
  Open("here", "", 0);
  Open("a", "/job:worker/replica:0/task:0", 7);
  Open("b", "/job:worker/replica:0/task:0", 7);
  for (int i = 0; i < 5; ++i) {
    watch_->Check();
    clock_.Advance(absl::Minutes(20));
  }
  EXPECT_EQ(sessions(), 3u);
  // Our own sessions are not asked about, and each master once a round.
  EXPECT_EQ(asked_, std::vector<std::string>(5, "/job:worker/replica:0/task:0"));
}

TEST_F(MasterWatchTest, SilentMastersAreGivenTime) {
  Open("a", "/job:worker/replica:0/task:0", 7);
  answer_ = Unavailable("gone");
  watch_->Check();
  clock_.Advance(absl::Minutes(9));
  watch_->Check();
  EXPECT_EQ(sessions(), 1u);
  answer_ = 7;  // it was only slow: its time starts again
  watch_->Check();
  answer_ = Unavailable("gone");
  watch_->Check();
  clock_.Advance(absl::Minutes(9));
  watch_->Check();
  EXPECT_EQ(sessions(), 1u);
  clock_.Advance(absl::Minutes(1));
  watch_->Check();
  EXPECT_EQ(sessions(), 0u);
}

TEST_F(MasterWatchTest, AMasterThatWasStartedAgainLosesTheOldOnesAtOnce) {
  Open("old", "/job:worker/replica:0/task:0", 6);
  watch_->Check();
  EXPECT_EQ(sessions(), 0u);
}

}  // namespace
}  // namespace weft::worker
