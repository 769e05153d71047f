// SPDX-License-Identifier: Apache-2.0
#include "platform/store/kubernetes/watch_reader.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WatchReaderTest : public ::testing::Test {
 protected:
  std::vector<std::string> names_;
  WatchReader reader_{&Pods(),
                      [this](const WatchEvent& event) { names_.push_back(NameOf(*event.object)); }};
};

TEST_F(WatchReaderTest, PutsPiecesTogether) {
  const std::string text =
      R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"}}}
{"type":"SOMETHING","object":{}}

{"type":"DELETED","object":{"metadata":{"name":"b","resourceVersion":"8"}}}
)";
  for (const char letter : text) ASSERT_TRUE(reader_.Take(std::string(1, letter)).ok());
  EXPECT_THAT(names_, ElementsAre("a", "b"));
  EXPECT_EQ(reader_.revision(), "8");
}

TEST_F(WatchReaderTest, ErrorsEndIt) {
  const Status expired = reader_.Take(
      R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"old"}}
)");
  EXPECT_TRUE(IsExpired(expired)) << expired;
  EXPECT_FALSE(reader_.Take("{\"type\":\"ERROR\",\"object\":{}}\n").ok());
  EXPECT_FALSE(reader_.Take("{\"type\":\n").ok());
  EXPECT_FALSE(reader_.Take("{\"type\":\"ADDED\"}\n").ok());
  EXPECT_THAT(std::string(reader_.Take("{\"type\":\"ADDED\",\"object\":{}}\n").message()),
              HasSubstr("no resourceVersion"));
  EXPECT_THAT(names_, ElementsAre());
}

TEST_F(WatchReaderTest, ALineHasAnEnd) {
  const std::string megabyte(1 << 20, ' ');
  Status status;
  for (int i = 0; i < 17 && status.ok(); ++i) status = reader_.Take(megabyte);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace weft::platform
