// SPDX-License-Identifier: Apache-2.0
#include "net/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Client {
 public:
  explicit Client(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval timeout = {30, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  void Send(const std::string& text) {
    EXPECT_EQ(::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  std::string ReadToEnd() {
    std::string text;
    char buffer[4096];
    ssize_t count = 0;
    while ((count = ::recv(fd_.get(), buffer, sizeof(buffer), 0)) > 0) {
      text.append(buffer, static_cast<size_t>(count));
    }
    return count < 0 && errno == EAGAIN ? text + "<timeout>" : text;
  }

 private:
  OwnedFd fd_;
};

std::unique_ptr<HttpServer> StartServer(HttpServer::Options options = {}) {
  std::map<std::string, HttpHandler> routes;
  routes["/healthz"] = [](const HttpRequest&) {
    HttpResponse response;
    response.body = "ok\n";
    return response;
  };
  routes["/big"] = [](const HttpRequest& request) {
    HttpResponse response;
    response.body = request.query + std::string(4 << 20, 'x');
    return response;
  };
  return HttpServer::Start(std::move(options), std::move(routes)).value();
}

std::string Ask(int port, const std::string& text) {
  Client client(port);
  client.Send(text);
  return client.ReadToEnd();
}

constexpr char kHost[] = "Host: localhost:1\r\n";

TEST(HttpServerTest, ServesItsRoutes) {
  const auto server = StartServer();
  const std::string reply = Ask(server->port(), absl::StrCat("GET /healthz HTTP/1.1\r\n", kHost,
                                                             "Connection: close\r\n\r\n"));
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(reply, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(reply, EndsWith("\r\n\r\nok\n"));
  EXPECT_THAT(Ask(server->port(), absl::StrCat("HEAD /healthz HTTP/1.0\r\n", kHost, "\r\n")),
              EndsWith("Connection: close\r\n\r\n"));
  const std::string missing =
      Ask(server->port(), absl::StrCat("GET /nope HTTP/1.0\r\n", kHost, "\r\n"));
  EXPECT_THAT(missing, StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(missing, HasSubstr("There are: /big /healthz"));
}

TEST(HttpServerTest, KeepsAConnectionAndTakesRequestsInARow) {
  const auto server = StartServer();
  const std::string get = absl::StrCat("GET /healthz HTTP/1.1\r\n", kHost);
  Client client(server->port());
  client.Send(get + "\r\n" + get + "\r\n" + get + "Connection: close\r\n\r\n");
  const std::string replies = client.ReadToEnd();
  size_t count = 0;
  for (size_t at = replies.find("\r\n\r\nok\n"); at != std::string::npos;
       at = replies.find("\r\n\r\nok\n", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, 3u);
}

TEST(HttpServerTest, SendsLargeBodies) {
  const auto server = StartServer();
  const std::string reply =
      Ask(server->port(), absl::StrCat("GET /big?a=1 HTTP/1.0\r\n", kHost, "\r\n"));
  EXPECT_THAT(reply.substr(0, 300), HasSubstr("\r\n\r\na=1xxx"));
  EXPECT_GT(reply.size(), size_t{4} << 20);
}

TEST(HttpServerTest, RefusesForeignHostsMethodsAndBodies) {
  const auto server = StartServer();
  EXPECT_THAT(Ask(server->port(), "GET /healthz HTTP/1.0\r\nHost: evil.example\r\n\r\n"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Ask(server->port(), "GET /healthz HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Ask(server->port(), "GET /healthz HTTP/1.0\r\nHost: [::1]:80\r\n\r\n"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask(server->port(), absl::StrCat("DELETE /healthz HTTP/1.0\r\n", kHost, "\r\n")),
              StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(Ask(server->port(), absl::StrCat("POST /healthz HTTP/1.1\r\n", kHost,
                                               "Content-Length: 4\r\n\r\nabcd")),
              StartsWith("HTTP/1.1 400"));
}

TEST(HttpServerTest, RefusesMalformedRequests) {
  const auto server = StartServer();
  for (const std::string& text :
       {std::string("\r\n\r\n"), std::string("GET\r\n\r\n"), std::string("GET / HTTP/2.0\r\n\r\n"),
        std::string("GET x HTTP/1.1\r\n\r\n"), std::string("GET / HTTP/1.1\r\nno colon\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\n: x\r\n\r\n"), std::string("G\0T / HTTP/1.1\r\n\r\n", 18),
        std::string("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")}) {
    EXPECT_THAT(Ask(server->port(), text), StartsWith("HTTP/1.1 400")) << text;
  }
}

TEST(HttpServerTest, StopsReadingEndlessHeaders) {
  const auto server = StartServer();
  Client client(server->port());
  client.Send("GET / HTTP/1.1\r\nX: " + std::string(17 << 10, 'x'));
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 431"));
}

TEST(HttpServerTest, ASlowClientIsCutOffAndOthersAreServed) {
  HttpServer::Options options;
  options.request_timeout = absl::Milliseconds(700);
  options.max_connections = 2;
  const auto server = StartServer(options);
  Client slow(server->port());
  slow.Send("GET /healthz HT");
  EXPECT_THAT(Ask(server->port(), absl::StrCat("GET /healthz HTTP/1.0\r\n", kHost, "\r\n")),
              StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(slow.ReadToEnd(), "");
}

TEST(HttpServerTest, WhoDoesNotSayItsRequestMakesRoom) {
  HttpServer::Options options;
  options.request_timeout = absl::Minutes(10);
  options.max_connections = 2;
  const auto server = StartServer(options);
  Client slow(server->port());
  slow.Send("GET /healthz HT");
  Client slower(server->port());
  slower.Send("G");
  EXPECT_THAT(Ask(server->port(), absl::StrCat("GET /healthz HTTP/1.0\r\n", kHost, "\r\n")),
              StartsWith("HTTP/1.1 200"));
}

TEST(HttpServerTest, EndsWithOpenConnections) {
  auto server = StartServer();
  Client client(server->port());
  client.Send("GET /he");
  server.reset();
  EXPECT_THAT(client.ReadToEnd(), Not(HasSubstr("<timeout>")));
}

TEST(HttpServerTest, ATakenPortIsAnError) {
  const auto server = StartServer();
  HttpServer::Options options;
  options.address.port = server->port();
  EXPECT_EQ(HttpServer::Start(options, {}).status().code(), absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace weft
