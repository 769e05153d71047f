// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class LogTest : public ::testing::Test {
 protected:
  void TearDown() override { ConfigureLog(LogOptions()); }
};

TEST_F(LogTest, WritesTheGlogForm) {
  ConfigureLog(LogOptions());
  ScopedLogCapture capture;
  WEFT_LOG(WARNING) << "disk " << 3 << " is slow";
  EXPECT_THAT(capture.lines(),
              ElementsAre(MatchesRegex("W[0-9]+ [0-9]+:[0-9]+:[0-9]+\\.[0-9]+ [0-9]+ "
                                       "log_test\\.cc:[0-9]+\\] disk 3 is slow\n")));
}

TEST_F(LogTest, WritesJsonWithEscapes) {
  LogOptions options;
  options.form = LogForm::kJson;
  options.job = "worker";
  options.task = 2;
  ConfigureLog(options);
  ScopedLogCapture capture;
  WEFT_LOG(ERROR) << "a \"quoted\"\nline\x01";
  ASSERT_EQ(capture.lines().size(), 1u);
  EXPECT_THAT(capture.lines()[0], HasSubstr(R"("level":"error","msg":"a \"quoted\"\nline\u0001")"));
  EXPECT_THAT(capture.lines()[0], HasSubstr(R"("job":"worker","task":2})"));
}

TEST_F(LogTest, DropsWhatIsBelowTheLevelWithoutEvaluatingIt) {
  LogOptions options;
  options.min_level = LogLevel::ERROR;
  ConfigureLog(options);
  ScopedLogCapture capture;
  int evaluated = 0;
  WEFT_LOG(INFO) << ++evaluated;
  WEFT_LOG_EVERY(WARNING, absl::ZeroDuration()) << ++evaluated;
  WEFT_LOG(ERROR) << "kept";
  EXPECT_EQ(evaluated, 0);
  EXPECT_EQ(capture.lines().size(), 1u);
}

TEST_F(LogTest, ReadsTheLevelFromTheEnvironment) {
  setenv("TF_CPP_MIN_LOG_LEVEL", "2", 1);
  EXPECT_EQ(LogOptionsFromEnvironment().min_level, LogLevel::ERROR);
  setenv("TF_CPP_MIN_LOG_LEVEL", "99", 1);
  EXPECT_EQ(LogOptionsFromEnvironment().min_level, LogLevel::OFF);
  setenv("TF_CPP_MIN_LOG_LEVEL", "loud", 1);
  EXPECT_EQ(LogOptionsFromEnvironment().min_level, LogLevel::INFO);
  unsetenv("TF_CPP_MIN_LOG_LEVEL");
}

TEST_F(LogTest, HoldsRepeatsBackAndSaysHowMany) {
  LogThrottle throttle;
  const absl::Duration second = absl::Seconds(1);
  EXPECT_EQ(throttle.Admit(second, absl::Seconds(10)), 0);
  EXPECT_EQ(throttle.Admit(second, absl::Seconds(10.5)), std::nullopt);
  EXPECT_EQ(throttle.Admit(second, absl::Seconds(10.9)), std::nullopt);
  EXPECT_EQ(throttle.Admit(second, absl::Seconds(11)), 2);
  ScopedLogCapture capture;
  for (int i = 0; i < 5; ++i) WEFT_LOG_EVERY(INFO, absl::Hours(1)) << "again " << i;
  ASSERT_EQ(capture.lines().size(), 1u);
  EXPECT_THAT(capture.lines()[0], HasSubstr("again 0"));
}

}  // namespace
}  // namespace weft
