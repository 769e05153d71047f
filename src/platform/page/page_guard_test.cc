// SPDX-License-Identifier: Apache-2.0
#include "platform/page/page_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/page/page_files.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

HttpRequest Request(const std::string& method, const std::string& path,
                    std::map<std::string, std::string> headers) {
  HttpRequest request;
  request.method = method;
  request.path = path;
  headers.emplace("host", "127.0.0.1:8087");
  request.headers = std::move(headers);
  return request;
}

bool IsLetIn(const HttpRequest& request) {
  const Status status = CheckSameSite(request);
  EXPECT_TRUE(status.ok() || absl::IsPermissionDenied(status)) << status;
  return status.ok();
}

TEST(PageGuardTest, OtherSitesMayLinkHereAndNoMore) {
  const std::map<std::string, std::string> link = {{"sec-fetch-site", "cross-site"},
                                                   {"sec-fetch-mode", "navigate"}};
  EXPECT_TRUE(IsLetIn(Request("GET", "/", link)));
  EXPECT_FALSE(IsLetIn(Request("GET", "/api/who", link)));
  EXPECT_FALSE(IsLetIn(Request("GET", "/app.js", {{"sec-fetch-site", "cross-site"}})));
  EXPECT_FALSE(IsLetIn(Request("GET", "/api/who", {{"sec-fetch-site", "same-site"}})));
  EXPECT_TRUE(IsLetIn(Request("GET", "/api/who", {{"sec-fetch-site", "same-origin"}})));
  EXPECT_TRUE(IsLetIn(Request("GET", "/api/who", {})));  // no browser
}

TEST(PageGuardTest, WritesNeedThePagesOwnHeaderAndOrigin) {
  EXPECT_FALSE(IsLetIn(Request("POST", "/api/stop", {})));
  EXPECT_FALSE(IsLetIn(Request("POST", "/api/stop", {{"x-weft-page", "yes"}})));
  EXPECT_TRUE(IsLetIn(Request("POST", "/api/stop", {{"x-weft-page", "1"}})));
  EXPECT_TRUE(IsLetIn(
      Request("POST", "/api/stop", {{"x-weft-page", "1"}, {"origin", "http://127.0.0.1:8087"}})));
  for (const char* origin : {"http://127.0.0.1:8088", "http://127.0.0.1:80870", "null",
                             "http://127.0.0.1:8087.evil.example"}) {
    EXPECT_FALSE(IsLetIn(Request("POST", "/api/stop", {{"x-weft-page", "1"}, {"origin", origin}})))
        << origin;
  }
}

TEST(PageGuardTest, OnlyTheHeaderHoldsAKey) {
  EXPECT_EQ(KeyOf(Request("GET", "/api/who", {{"authorization", "Bearer abc"}})), "abc");
  EXPECT_EQ(KeyOf(Request("GET", "/api/who", {{"authorization", "Basic abc"}})), "");
  EXPECT_EQ(KeyOf(Request("GET", "/api/who?key=abc", {{"cookie", "key=abc"}})), "");
}

TEST(PageGuardTest, TheFilesHoldNothingThatThePolicyForbids) {
  ASSERT_EQ(PageFiles().count("/index.html"), 1u);
  size_t bytes = 0;
  for (const auto& [path, text] : PageFiles()) {
    bytes += text.size();
    EXPECT_THAT(std::string(text), Not(HasSubstr("innerHTML"))) << path;
    EXPECT_THAT(std::string(text), Not(HasSubstr("https://"))) << path;
    EXPECT_THAT(std::string(text), Not(HasSubstr(" style=\""))) << path;
  }
  EXPECT_LT(bytes, 300000u);
}

}  // namespace
}  // namespace weft::platform
