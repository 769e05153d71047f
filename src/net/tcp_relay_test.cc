// SPDX-License-Identifier: Apache-2.0
#include "net/tcp_relay.h"

#include <map>

#include <gtest/gtest.h>

#include "absl/time/clock.h"

#include "net/http_client.h"
#include "net/http_server.h"

namespace weft {
namespace {

std::unique_ptr<HttpServer> Serve(const std::string& host, const std::string& name) {
  HttpServer::Options options;
  options.address = {host, 0};
  options.allowed_hosts = {"*"};
  options.max_body_bytes = 8 << 20;
  return HttpServer::StartWithHandler(
             options,
             [name](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
               reply->Send({.body = name + " got " + request.body});
             })
      .value();
}

std::string Ask(const SocketAddress& at, const std::string& body) {
  const auto client = HttpClient::Create("http://" + at.ToString(), {}).value();
  HttpCall call;
  call.method = "POST";
  call.path = "/";
  call.body = body;
  call.timeout = absl::Seconds(20);
  const StatusOr<HttpAnswer> answer = client->Send(call);
  return answer.ok() ? answer->body : "none";
}

TEST(TcpRelayTest, ConnectionsGoToOneServerAfterTheOther) {
  std::map<std::string, int> counts;
  auto one = Serve("127.130.0.1", "one");
  auto two = Serve("127.130.0.2", "two");
  const SocketAddress at = {"127.70.3.1", FindFreeLoopbackPorts(1).value()[0]};
  const auto relay = TcpRelay::Start().value();
  const SocketAddress first = {"127.130.0.1", one->port()}, second = {"127.130.0.2", two->port()};
  ASSERT_TRUE(relay->Lead(at, {first, second}).ok());
  for (int i = 0; i < 10; ++i) ++counts[Ask(at, "x")];
  EXPECT_EQ(counts["one got x"], 5);
  EXPECT_EQ(counts["two got x"], 5);
  const std::string large(3 << 20, 'y');
  EXPECT_EQ(Ask(at, large).size(), large.size() + 8);

  // One that has gone is passed over before anybody said so.
  two.reset();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Ask(at, "z"), "one got z");
  ASSERT_TRUE(relay->Lead(at, {}).ok());
  EXPECT_EQ(Ask(at, "z"), "none");
  relay->Drop(at);
  // The thread lets go of the port when it next looks.
  bool is_free = false;
  for (int i = 0; i < 1000 && !is_free; ++i) {
    is_free = ListenTcp(at).ok();
    absl::SleepFor(absl::Milliseconds(is_free ? 0 : 10));
  }
  EXPECT_TRUE(is_free);
}

TEST(TcpRelayTest, AServerThatBreaksBreaksItsConnections) {
  auto one = Serve("127.130.0.1", "one");
  const SocketAddress at = {"127.70.3.2", FindFreeLoopbackPorts(1).value()[0]};
  const auto relay = TcpRelay::Start().value();
  ASSERT_TRUE(relay->Lead(at, {{"127.130.0.1", one->port()}}).ok());
  EXPECT_FALSE(relay->Lead({"127.130.0.1", one->port()}, {}).ok());  // taken
  const auto client = HttpClient::Create("http://" + at.ToString(), {}).value();
  HttpCall call;
  call.path = "/";
  call.timeout = absl::Seconds(20);
  ASSERT_TRUE(client->Send(call).ok());
  one.reset();
  EXPECT_FALSE(client->Send(call).ok());
}

}  // namespace
}  // namespace weft
