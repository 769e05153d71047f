// SPDX-License-Identifier: Apache-2.0
#include "platform/search/trial_output.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"

#include "platform/search/event_scalars.h"
#include "platform/search/metric_reader.h"

namespace weft::platform {
namespace {

using Values = std::vector<double>;

// Katib's own example of a filter.
TEST(TrialOutputTest, FiltersFindNamesAndValues) {
  const MetricsCollector collector{
      .filters = {R"({metricName: ([\w|-]+), metricValue: ((-?\d+)(\.\d+)?)})"}};
  const MetricSeries series =
      ReadOutput(collector, {"loss", "accuracy"},
                 "{metricName: loss, metricValue: 0.3} {metricName: accuracy, metricValue: -1}\n"
                 "loss=7\n{metricName: loss, metricValue: 0.2}\n");
  EXPECT_EQ(series.at("loss"), (Values{0.3, 0.2}));
  EXPECT_EQ(series.at("accuracy"), Values{-1});
  EXPECT_TRUE(CheckFilters(collector.filters).ok());
  EXPECT_FALSE(CheckFilters({"(a"}).ok());
  EXPECT_FALSE(CheckFilters({"(a)=b"}).ok());
}

TEST(TrialOutputTest, APageForPrometheus) {
  const auto values = ReadPrometheus(
      "# HELP accuracy so far\naccuracy{step=\"3\"} 0.75 1700000000\nloss 1e-3\nlosses 4\n",
      {"accuracy", "loss"});
  EXPECT_EQ(values, (std::map<std::string, double>{{"accuracy", 0.75}, {"loss", 0.001}}));
}

// An Event of step 7 with the summary value {tag: "accuracy", simple_value: 0.5}, as a record.
std::string EventFile() {
  const std::string value = std::string(
      "\x0a\x08"
      "accuracy"
      "\x15\x00\x00\x00\x3f",
      15);
  const std::string summary = std::string("\x0a\x0f", 2) + value;
  const std::string event = std::string("\x10\x07\x2a\x11", 4) + summary;
  std::string file;
  file.push_back(static_cast<char>(event.size()));
  return file + std::string(11, '\0') + event + std::string(4, '\0');
}

TEST(TrialOutputTest, ScalarsOfEventFiles) {
  const auto scalars = ReadEventScalars(EventFile() + "torn");
  ASSERT_EQ(scalars.size(), 1);
  EXPECT_EQ(scalars[0].tag, "accuracy");
  EXPECT_EQ(scalars[0].step, 7);
  EXPECT_EQ(scalars[0].value, 0.5);
  const MetricsCollector collector{.kind = MetricsCollector::Kind::kTensorFlowEvent};
  const std::string output =
      absl::StrCat("training\n--- metrics of this trial ---\n", absl::Base64Escape(EventFile()),
                   "\n\n", absl::Base64Escape(EventFile()), "\n\n--- end of metrics ---\n");
  const MetricSeries series = ReadOutput(collector, {"accuracy", "test/accuracy", "loss"}, output);
  EXPECT_EQ(series.at("accuracy"), (Values{0.5, 0.5}));
  EXPECT_EQ(series.count("loss"), 0);
}

}  // namespace
}  // namespace weft::platform
