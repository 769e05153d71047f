// SPDX-License-Identifier: Apache-2.0
#include "base/metrics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/log.h"
#include "base/threads.h"

namespace weft {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsTest, WritesThePrometheusForm) {
  MetricRegistry metrics;
  metrics.GetCounter("weft_steps_total", "Steps run.\nOf all sessions.").Add(3);
  metrics.GetGauge("weft_queue", "Waiting.", {{"task", "a\"b\\c\nd"}}).Set(0.1);
  Histogram& seconds =
      metrics.GetHistogram("weft_step_seconds", "Time.", {0.5, 2}, {{"job", "ps"}});
  seconds.Observe(0.5);
  seconds.Observe(1);
  seconds.Observe(8);
  EXPECT_EQ(metrics.PrometheusText(),
            "# HELP weft_queue Waiting.\n"
            "# TYPE weft_queue gauge\n"
            "weft_queue{task=\"a\\\"b\\\\c\\nd\"} 0.1\n"
            "# HELP weft_step_seconds Time.\n"
            "# TYPE weft_step_seconds histogram\n"
            "weft_step_seconds_bucket{job=\"ps\",le=\"0.5\"} 1\n"
            "weft_step_seconds_bucket{job=\"ps\",le=\"2\"} 2\n"
            "weft_step_seconds_bucket{job=\"ps\",le=\"+Inf\"} 3\n"
            "weft_step_seconds_sum{job=\"ps\"} 9.5\n"
            "weft_step_seconds_count{job=\"ps\"} 3\n"
            "# HELP weft_steps_total Steps run.\\nOf all sessions.\n"
            "# TYPE weft_steps_total counter\n"
            "weft_steps_total 3\n");
}

TEST(MetricsTest, GivesTheSameObjectForTheSameNameAndLabels) {
  MetricRegistry metrics;
  Counter& counter = metrics.GetCounter("a_total", "", {{"x", "1"}});
  EXPECT_EQ(&counter, &metrics.GetCounter("a_total", "", {{"x", "1"}}));
  EXPECT_NE(&counter, &metrics.GetCounter("a_total", "", {{"x", "2"}}));
}

TEST(MetricsTest, ABadNameCountsButIsNotShown) {
  ScopedLogCapture log;
  MetricRegistry metrics;
  metrics.GetCounter("1bad", "").Add();
  metrics.GetCounter("bad\n", "").Add();
  metrics.GetCounter("good_total", "", {{"le-gal", "x"}}).Add();
  metrics.GetCounter("kind", "").Add();
  metrics.GetGauge("kind", "").Set(7);
  EXPECT_EQ(metrics.PrometheusText(), "# HELP kind \n# TYPE kind counter\nkind 1\n");
  EXPECT_FALSE(log.lines().empty());
}

TEST(MetricsTest, KeepsLargeAndOddNumbers) {
  MetricRegistry metrics;
  metrics.GetGauge("a", "").Set(123456789.0);
  metrics.GetGauge("b", "").Set(-std::numeric_limits<double>::infinity());
  metrics.GetGauge("c", "").Set(std::numeric_limits<double>::quiet_NaN());
  const std::string text = metrics.PrometheusText();
  EXPECT_THAT(text, HasSubstr("\na 123456789\n"));
  EXPECT_THAT(text, HasSubstr("\nb -Inf\n"));
  EXPECT_THAT(text, HasSubstr("\nc NaN\n"));
}

TEST(MetricsTest, AddsUpOverThreads) {
  MetricRegistry metrics;
  Counter& counter = metrics.GetCounter("a_total", "");
  Histogram& histogram = metrics.GetHistogram("h", "", ExponentialBounds(1, 2, 3));
  {
    std::vector<Thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back("count", [&] {
        for (int i = 0; i < 10000; ++i) {
          counter.Add();
          histogram.Observe(i % 10);
        }
      });
    }
  }
  EXPECT_EQ(counter.value(), 40000);
  EXPECT_EQ(histogram.Counts(), (std::vector<int64_t>{8000, 4000, 8000, 20000}));
  EXPECT_EQ(histogram.Sum(), 4 * 45000);
}

}  // namespace
}  // namespace weft
