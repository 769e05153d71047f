// SPDX-License-Identifier: Apache-2.0
#include "net/socket_address.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

TEST(SocketAddressTest, ParsesAndPrints) {
  EXPECT_EQ(ParseSocketAddress("ps0.example.com:2222").value(),
            (SocketAddress{"ps0.example.com", 2222}));
  EXPECT_EQ(ParseSocketAddress("[::1]:80").value(), (SocketAddress{"::1", 80}));
  EXPECT_EQ(ParseSocketAddress("10.0.0.1:0").value().port, 0);
  for (const char* text : {"localhost:65535", "[fe80::1]:1", "[fe80::1%eth0]:1"}) {
    EXPECT_EQ(ParseSocketAddress(text).value().ToString(), text);
  }
}

TEST(SocketAddressTest, SaysWhatIsWrong) {
  for (const char* text :
       {"", "host", "::1", "1:2:3", "[::1]", "[::1]80", "[::1", "[x]:1", ":80", "h:", "h:-1",
        "h:65536", "h:+1", "h: 1", "h:1 ", "h:1x", "a b:1", "a/b:1", "h:99999999999"}) {
    const Status status = ParseSocketAddress(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("'", text, "'")));
  }
}

TEST(SocketAddressTest, KnowsLoopback) {
  for (const char* host : {"localhost", "LOCALHOST", "127.0.0.1", "127.8.9.1", "::1"}) {
    EXPECT_TRUE(IsLoopbackHost(host)) << host;
  }
  for (const char* host :
       {"", "0.0.0.0", "::", "128.0.0.1", "localhost.example.com", "ps0.localhost"}) {
    EXPECT_FALSE(IsLoopbackHost(host)) << host;
  }
}

TEST(SocketAddressTest, ListensAndRefusesATakenPort) {
  const OwnedFd first = ListenTcp({"127.0.0.1", 0}).value();
  const int port = LocalPort(first.get()).value();
  EXPECT_GT(port, 0);
  EXPECT_EQ(ListenTcp({"localhost", port}).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(ListenTcp({"", 0}).ok());
  EXPECT_EQ(ListenTcp({"example.com", 0}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SocketAddressTest, FreePortsDiffer) {
  const std::vector<int> ports = FindFreeLoopbackPorts(20).value();
  EXPECT_EQ(std::set<int>(ports.begin(), ports.end()).size(), 20u);
  EXPECT_TRUE(ListenTcp({"127.0.0.1", ports[3]}).ok());
}

TEST(SocketAddressTest, IsRefusedWhereNobodyListens) {
  const StatusOr<OwnedFd> listens = ListenTcp({"127.0.0.1", 0});
  ASSERT_TRUE(listens.ok()) << listens.status();
  const StatusOr<int> port = LocalPort(listens->get());
  ASSERT_TRUE(port.ok()) << port.status();
  EXPECT_FALSE(IsRefused({"127.0.0.1", *port}));
  const StatusOr<std::vector<int>> free = FindFreeLoopbackPorts(1);
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_TRUE(IsRefused({"127.0.0.1", (*free)[0]}));
  EXPECT_FALSE(IsRefused({"ps-0.job", (*free)[0]}));
}

}  // namespace
}  // namespace weft
