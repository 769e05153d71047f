// SPDX-License-Identifier: Apache-2.0
#include "platform/launch/line_filter.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kPeriod = absl::Seconds(1);

std::vector<std::string> Lines(const std::vector<std::string>& pieces) {
  LineFilter filter(kPeriod);
  std::vector<std::string> lines;
  for (const std::string& piece : pieces) filter.Feed(piece, absl::ZeroDuration(), &lines);
  filter.Finish(&lines);
  return lines;
}

TEST(LineFilterTest, SplitsLinesAcrossPieces) {
  EXPECT_THAT(Lines({"a\nb", "c\n\nd"}), ElementsAre("a", "bc", "", "d"));
  EXPECT_THAT(Lines({"a\r\nb\r", "\n"}), ElementsAre("a", "b"));
  EXPECT_THAT(Lines({"\r\n"}), ElementsAre(""));
  EXPECT_THAT(Lines({}), IsEmpty());
}

TEST(LineFilterTest, PassesTheFirstAndTheLastOfAProgressBar) {
  EXPECT_THAT(Lines({"1 %\r2 %\r", "3 %\r", "100 %\n", "done\n"}),
              ElementsAre("2 %", "100 %", "done"));
  EXPECT_THAT(Lines({"\r1 %", "\r2 %", "\r100 %", "\n"}), ElementsAre("1 %", "100 %"));
  EXPECT_THAT(Lines({"50 %\r"}), ElementsAre("50 %"));
  EXPECT_THAT(Lines({"99 %\r100 %\r\nnext\n"}), ElementsAre("100 %", "next"));
}

TEST(LineFilterTest, TellsWhatIsToBeOverwritten) {
  LineFilter filter(kPeriod, true);
  std::vector<std::string> lines;
  filter.Feed("1 %\r", absl::ZeroDuration(), &lines);
  filter.Feed("2 %\r", kPeriod, &lines);
  filter.Feed("100 %\ndone\n", kPeriod, &lines);
  EXPECT_THAT(lines, ElementsAre("1 %\r", "2 %\r", "100 %", "done"));
}

TEST(LineFilterTest, PassesProgressOncePerPeriod) {
  LineFilter filter(kPeriod);
  std::vector<std::string> lines;
  for (int i = 0; i < 50; ++i) {
    filter.Feed("\rstep " + std::to_string(i), absl::Milliseconds(100) * i, &lines);
  }
  EXPECT_THAT(lines, ElementsAre("step 0", "step 10", "step 20", "step 30", "step 40"));
  EXPECT_EQ(filter.due(), absl::Seconds(5.1));
  filter.Tick(absl::Seconds(5.1), &lines);
  EXPECT_EQ(lines.back(), "step 48");
  EXPECT_EQ(filter.due(), absl::InfiniteDuration());
}

TEST(LineFilterTest, KeepsColoursAndDropsWhatMovesTheCursor) {
  EXPECT_THAT(Lines({"\x1b[31mred\x1b[0m\x1b[2K\x1b[1A \x1b", "[1;32mgreen\n"}),
              ElementsAre("\x1b[31mred\x1b[0m \x1b[1;32mgreen"));
  EXPECT_THAT(Lines({"a\b\b\ab\tc\x1b"
                     "7d\n"}),
              ElementsAre("ab\tcd"));
  EXPECT_THAT(Lines({"a\x1b[" + std::string(100, '1') + "b\n"}).size(), 1u);
}

TEST(LineFilterTest, CutsEndlessLines) {
  const std::vector<std::string> lines = Lines({std::string(2500000, 'x')});
  EXPECT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].size(), size_t{1} << 20);
}

}  // namespace
}  // namespace weft::platform
