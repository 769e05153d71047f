// SPDX-License-Identifier: Apache-2.0
#include "weft/server/status_page.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/json.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/ops/catalogue.h"
#include "weft/server/server.h"

namespace weft::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The whole answer, from its status line to its last byte.
std::string Get(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request =
        absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    if (send(fd, request.data(), request.size(), 0) == static_cast<ssize_t>(request.size())) {
      char buffer[4096];
      for (ssize_t got = 0; (got = recv(fd, buffer, sizeof(buffer), 0)) > 0;)
        answer.append(buffer, got);
    }
  }
  close(fd);
  return answer;
}

TEST(StatusPage, HealthFollowsTheServersLife) {
  RealClock clock;
  WaitRegistry waits(&clock);
  MetricRegistry metrics;
  int updates = 0;
  StatusOr<std::unique_ptr<StatusPage>> page =
      StatusPage::Start(0, &metrics, &waits, [&](MetricRegistry*) { ++updates; });
  ASSERT_TRUE(page.ok()) << page.status();
  const int port = (*page)->port();
  EXPECT_THAT(Get(port, "/healthz"), StartsWith("HTTP/1.1 503"));
  Get(port, "/metrics");
  EXPECT_EQ(updates, 0);  // there is nothing to ask yet
  (*page)->SetReady();
  EXPECT_THAT(Get(port, "/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(port, "/metrics"), HasSubstr("process_resident_memory_bytes"));
  EXPECT_EQ(updates, 1);
  (*page)->SetStopping();
  EXPECT_THAT(Get(port, "/healthz"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(Get(port, "/nothing"), StartsWith("HTTP/1.1 404"));
}

TEST(StatusPage, ListsWaits) {
  RealClock clock;
  WaitRegistry waits(&clock);
  MetricRegistry metrics;
  StatusOr<std::unique_ptr<StatusPage>> page =
      StatusPage::Start(0, &metrics, &waits, [](MetricRegistry*) {});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(Get((*page)->port(), "/waits?json"), HasSubstr("\r\n\r\n[]"));
  Wait wait = waits.Begin({.waiter = "/job:a", .what = "tensor 'w'", .on = "/job:b"}, 7);
  const std::string text = Get((*page)->port(), "/waits");
  for (const char* part : {"/job:a", "tensor 'w'", "step 7", "/job:b"})
    EXPECT_THAT(text, HasSubstr(part));
  const std::string answer = Get((*page)->port(), "/waits?json");
  const StatusOr<Json> list = Json::Parse(answer.substr(answer.find("\r\n\r\n") + 4));
  ASSERT_TRUE(list.ok()) << answer;
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ(*list->items()[0].Find("on"), Json("/job:b"));
  EXPECT_EQ(*list->items()[0].Find("step"), Json(7));
  wait.End();
  EXPECT_THAT(Get((*page)->port(), "/waits?json"), HasSubstr("\r\n\r\n[]"));
}

TEST(StatusPage, ServersHaveOne) {
  StatusOr<cluster::ClusterSpec> spec =
      cluster::ClusterSpec::FromJson(R"({"local":["127.0.0.1:0"]})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  const StatusOr<std::unique_ptr<Server>> server = Server::Start({.cluster = *spec,
                                                                  .task = {"local", 0},
                                                                  .catalogue = &StandardCatalogue(),
                                                                  .devices = &StandardDevices(),
                                                                  .status_port = 0});
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->status_port();
  EXPECT_THAT(Get(port, "/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(port, "/metrics"), HasSubstr("\nweft_sessions 0\n"));
  const StatusOr<std::unique_ptr<Server>> second = Server::Start({.cluster = *spec,
                                                                  .task = {"local", 0},
                                                                  .catalogue = &StandardCatalogue(),
                                                                  .devices = &StandardDevices(),
                                                                  .status_port = port});
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(absl::StrCat(port)));
  (*server)->Shutdown(absl::ZeroDuration());
  EXPECT_THAT(Get(port, "/healthz"), StartsWith("HTTP/1.1 503"));
}

}  // namespace
}  // namespace weft::server
