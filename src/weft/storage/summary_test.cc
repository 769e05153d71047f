// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/summary.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "proto/tensorflow/summary.pb.h"
#include "weft/storage/histogram.h"

namespace weft::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

tensorflow::Summary Parsed(const std::string& bytes) {
  tensorflow::Summary summary;
  EXPECT_TRUE(summary.ParseFromString(bytes));
  return summary;
}

TEST(HistogramTest, LimitsRiseByATenthAndAreSymmetric) {
  const std::vector<double>& limits = Histogram::BucketLimits();
  ASSERT_EQ(limits.size(), 1551u);
  EXPECT_EQ(limits.back(), std::numeric_limits<double>::max());
  EXPECT_EQ(limits[775], 0);
  EXPECT_EQ(limits[776], 1e-12);
  EXPECT_EQ(limits[777], 1e-12 * 1.1);
  for (size_t i = 1; i < limits.size(); ++i) {
    EXPECT_LT(limits[i - 1], limits[i]);
    EXPECT_EQ(limits[i], -limits[limits.size() - 1 - i]);
  }
}

TEST(HistogramTest, CountsAndCollapsesEmptyRuns) {
  Histogram histogram;
  for (double value : {1.0, 2.0, 2.0, -3.0, 0.0, 1e300}) histogram.Add(value);
  tensorflow::HistogramProto proto;
  histogram.ToProto(&proto);
  EXPECT_EQ(proto.num(), 6);
  EXPECT_EQ(proto.min(), -3);
  EXPECT_EQ(proto.max(), 1e300);
  double total = 0;
  ASSERT_EQ(proto.bucket_size(), proto.bucket_limit_size());
  for (int i = 0; i < proto.bucket_size(); ++i) {
    total += proto.bucket(i);
    if (i > 0) {
      EXPECT_FALSE(proto.bucket(i) == 0 && proto.bucket(i - 1) == 0);
    }
  }
  EXPECT_EQ(total, 6);
  EXPECT_EQ(proto.bucket_limit(proto.bucket_limit_size() - 1), std::numeric_limits<double>::max());
  histogram.Clear();
  histogram.ToProto(&proto);
  EXPECT_EQ(proto.num(), 0);
  EXPECT_THAT(proto.bucket(), ElementsAre(0));
}

TEST(SummaryTest, Scalar) {
  const tensorflow::Summary summary = Parsed(ScalarSummary("loss", 2.5f));
  EXPECT_EQ(summary.value(0).tag(), "loss");
  EXPECT_EQ(summary.value(0).simple_value(), 2.5f);
}

TEST(SummaryTest, HistogramOfEveryRealTypeAndNothingElse) {
  const tensorflow::Summary summary =
      Parsed(HistogramSummary("h", Tensor::Vector<Bfloat16>({1.0f, 2.0f})).value());
  EXPECT_EQ(summary.value(0).histo().sum(), 3);
  EXPECT_TRUE(HistogramSummary("h", Tensor::Vector<uint8_t>({1, 255})).ok());
  EXPECT_FALSE(HistogramSummary("h", Tensor::Scalar("text")).ok());
  EXPECT_FALSE(HistogramSummary("h", Tensor()).ok());
  const double bad[] = {std::numeric_limits<double>::quiet_NaN(),
                        -std::numeric_limits<double>::infinity()};
  for (double value : bad) {
    const Status status = HistogramSummary("tag/h", Tensor::Scalar(value)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("in summary histogram for: tag/h"));
  }
}

TEST(SummaryTest, TextTensorAndImage) {
  const tensorflow::Summary text = Parsed(TextSummary("t", Tensor::Scalar("hello")).value());
  EXPECT_EQ(text.value(0).metadata().plugin_data().plugin_name(), "text");
  EXPECT_EQ(text.value(0).tensor().string_val(0), "hello");
  EXPECT_FALSE(TextSummary("t", Tensor::Scalar<float>(1)).ok());
  EXPECT_FALSE(TensorSummary("t", Tensor::Scalar<float>(1), "\xff").ok());
  const tensorflow::Summary image = Parsed(ImageSummary("i", 2, 3, 1, "png"));
  EXPECT_EQ(image.value(0).image().width(), 3);
  EXPECT_EQ(image.value(0).image().encoded_image_string(), "png");
}

TEST(SummaryTest, MergingKeepsAllAndRefusesATagTwice) {
  const std::string a = ScalarSummary("a", 1), b = ScalarSummary("b", 2);
  EXPECT_EQ(Parsed(MergeSummaries({a, b}).value()).value_size(), 2);
  EXPECT_EQ(Parsed(MergeSummaries({}).value()).value_size(), 0);
  EXPECT_FALSE(MergeSummaries({a, b, a}).ok());
  EXPECT_FALSE(MergeSummaries({"\xff"}).ok());
}

}  // namespace
}  // namespace weft::storage
