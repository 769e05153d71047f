// SPDX-License-Identifier: Apache-2.0
#include "base/denormals.h"

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

#include "base/threads.h"

namespace weft {
namespace {

// Half of the least number with all its digits.
float HalfOfTheLeast() {
  volatile float least = 1.17549435e-38f;
  return least * 0.5f;
}

TEST(ScopedFlushDenormals, LastsAsLongAsItStands) {
  EXPECT_GT(HalfOfTheLeast(), 0);
  {
    const ScopedFlushDenormals flush;
    EXPECT_EQ(HalfOfTheLeast(), 0);
    {
      const ScopedFlushDenormals again;
      EXPECT_EQ(HalfOfTheLeast(), 0);
    }
    EXPECT_EQ(HalfOfTheLeast(), 0);
  }
  EXPECT_GT(HalfOfTheLeast(), 0);
}

TEST(ScopedFlushDenormals, ThreadsOfPoolsHaveIt) {
  ThreadPool pool("test", 1);
  float half = 1;
  absl::Notification done;
  pool.Schedule([&] {
    half = HalfOfTheLeast();
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_EQ(half, 0);
}

}  // namespace
}  // namespace weft
