// SPDX-License-Identifier: Apache-2.0
#include "platform/store/kubernetes/list_reader.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ListReaderTest : public ::testing::Test {
 protected:
  // What stands besides the items, or the error.
  std::string Read(const std::string& text, size_t piece) {
    items_.clear();
    ListReader reader([this](Json item) {
      items_.push_back(item.Dump());
      return absl::OkStatus();
    });
    for (size_t at = 0; at < text.size(); at += piece) {
      const Status status = reader.Take(absl::string_view(text).substr(at, piece));
      if (!status.ok()) return std::string(status.message());
    }
    const StatusOr<Json> frame = reader.Finish();
    return frame.ok() ? frame->Dump() : std::string(frame.status().message());
  }
  std::vector<std::string> items_;
};

TEST_F(ListReaderTest, TellsItemsApart) {
  const std::string text =
      R"({"apiVersion":"v1","items" : [ {"a":"]}\\\"{[","items":[{"b":1}]} , {} ],)"
      R"("kind":"List","metadata":{"resourceVersion":"7","items":[{"x":1}]}})";
  for (const size_t piece : {size_t{1}, size_t{7}, text.size()}) {
    EXPECT_EQ(Read(text, piece),
              R"({"apiVersion":"v1","items":[],"kind":"List","metadata":{"resourceVersion":"7",)"
              R"("items":[{"x":1}]}})");
    EXPECT_THAT(items_, ElementsAre(R"({"a":"]}\\\"{[","items":[{"b":1}]})", "{}"));
  }
}

TEST_F(ListReaderTest, ReadsListsWithoutItems) {
  EXPECT_EQ(Read(R"({"items":[]})", 1), R"({"items":[]})");
  EXPECT_EQ(Read(R"({"items":null,"metadata":{}})", 3), R"({"items":null,"metadata":{}})");
  EXPECT_THAT(items_, IsEmpty());
}

TEST_F(ListReaderTest, SaysWhatIsWrong) {
  EXPECT_THAT(Read(R"({"items":[{"a":1})", 4), HasSubstr("ended before its end"));
  EXPECT_THAT(Read("", 4), HasSubstr("ended before its end"));
  EXPECT_THAT(Read(R"({"items":[1]})", 4), HasSubstr("no object"));
  EXPECT_THAT(Read(R"({"items":[{"a":}]})", 4), HasSubstr("did not expect"));
  EXPECT_THAT(Read("{" + std::string(2 << 20, ' '), 1000), HasSubstr("is longer than"));
}

}  // namespace
}  // namespace weft::platform
