// SPDX-License-Identifier: Apache-2.0
#include "net/http_client.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include "absl/synchronization/notification.h"

#include "base/threads.h"
#include "base/timers.h"
#include "net/certificate.h"
#include "net/http_server.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kYear = absl::Hours(24 * 365);

// Answers by path, over TLS with a certificate for 127.0.0.1.
class HttpClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    authority_ = MakeAuthority("test-ca", absl::Now(), kYear).value();
    CertificateRequest request;
    request.common_name = "server";
    request.addresses = {"127.0.0.1"};
    const Identity identity = IssueServerCertificate(authority_, request, absl::Now()).value();
    HttpServer::Options options;
    options.tls = TlsConfig::Server(identity.certificate_pem, identity.key_pem).value();
    options.max_body_bytes = 1 << 20;
    options.max_unsent_bytes = 1 << 20;
    options.request_timeout = absl::Minutes(1);  // a busy machine takes seconds to shake hands
    server_ = HttpServer::StartWithHandler(options, [this](HttpRequest request_in,
                                                           std::shared_ptr<HttpReply> reply) {
                Handle(std::move(request_in), std::move(reply));
              }).value();
  }

  void Handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
    if (request.path == "/echo") {
      HttpResponse response;
      response.status = 201;
      response.body = absl::StrCat(request.method, " ", request.query, " ",
                                   request.headers["x-test"], " ", request.body);
      response.headers = {{"X-Back", "yes"}};
      pool_.Schedule([reply, response] { reply->Send(response); });
    } else if (request.path == "/stream") {
      reply->Start(200, "text/plain");
      for (int i = 0; i < 3; ++i) reply->Write(absl::StrCat("piece", i, ";"));
      reply->Finish();
    } else if (request.path == "/endless") {
      reply->OnClose([this] { closed_.Notify(); });
      reply->Start(200, "text/plain");
      reply->Write("first");
      absl::MutexLock lock(&mutex_);
      held_ = std::move(reply);
    } else if (request.path == "/flood") {
      reply->Start(200, "text/plain");
      const std::string chunk(64 << 10, 'x');
      int written = 0;
      while (written < 1000 && reply->Write(chunk)) ++written;
      flooded_.store(written);
    } else if (request.path == "/hang") {
      absl::MutexLock lock(&mutex_);
      held_ = std::move(reply);
    }
    // Anything else is not answered.
  }

  std::unique_ptr<HttpClient> Client(const std::string& authority,
                                     absl::string_view host = "127.0.0.1") {
    TlsClientOptions tls;
    tls.authority_pem = authority;
    return HttpClient::Create(absl::StrCat("https://", host, ":", server_->port()), tls).value();
  }
  StatusOr<HttpAnswer> Ask(const std::string& path, const std::string& method = "GET",
                           const std::string& body = "") {
    HttpCall call;
    call.method = method;
    call.path = path;
    call.body = body;
    call.headers = {{"X-Test", "t"}};
    return Client(authority_.certificate_pem)->Send(call);
  }

  Identity authority_;
  absl::Mutex mutex_;
  std::shared_ptr<HttpReply> held_ ABSL_GUARDED_BY(mutex_);
  absl::Notification closed_;
  std::atomic<int> flooded_{-1};
  ThreadPool pool_{"test", 1};
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpClientTest, SendsAndReceives) {
  const StatusOr<HttpAnswer> answer = Ask("/echo?a=1", "POST", "body");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(answer->body, "POST a=1 t body");
  EXPECT_EQ(answer->headers.at("x-back"), "yes");
  EXPECT_EQ(Ask("/echo", "PUT", std::string(900 << 10, 'x'))->body.size(), (900u << 10) + 7);
}

TEST_F(HttpClientTest, KeepsItsConnection) {
  const auto client = Client(authority_.certificate_pem);
  for (int i = 0; i < 20; ++i) {
    HttpCall call;
    call.path = absl::StrCat("/echo?", i);
    const StatusOr<HttpAnswer> answer = client->Send(call);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_THAT(answer->body, HasSubstr(absl::StrCat("GET ", i)));
  }
}

TEST_F(HttpClientTest, TakesBodiesOnlyUpToTheLimit) {
  EXPECT_EQ(Ask("/echo", "POST", std::string((1 << 20) + 1, 'x'))->status, 413);
}

TEST_F(HttpClientTest, WhatIsNotAnsweredIsAnError) { EXPECT_EQ(Ask("/nothing")->status, 500); }

TEST_F(HttpClientTest, ReadsStreams) {
  const auto client = Client(authority_.certificate_pem);
  std::string text;
  HttpCall call;
  call.path = "/stream";
  const Status status = client
                            ->Stream(call,
                                     [&](absl::string_view piece) {
                                       text.append(piece.data(), piece.size());
                                       return absl::OkStatus();
                                     })
                            .status();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(text, "piece0;piece1;piece2;");
  EXPECT_EQ(Ask("/stream")->body, "piece0;piece1;piece2;");
}

TEST_F(HttpClientTest, AStreamEndsWithItsReaderAndItsWriterHears) {
  const auto client = Client(authority_.certificate_pem);
  HttpCall call;
  call.path = "/endless";
  const Status status =
      client->Stream(call, [](absl::string_view) { return Cancelled("enough"); }).status();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_TRUE(closed_.WaitForNotificationWithTimeout(absl::Seconds(30)));
  absl::MutexLock lock(&mutex_);
  EXPECT_FALSE(held_->IsOpen());
  EXPECT_FALSE(held_->Write("more"));
}

TEST_F(HttpClientTest, AStreamWithoutAnEndIsWaitedForAtRest) {
  const auto client = Client(authority_.certificate_pem);
  Cancellation cancellation;
  TimerQueue timers;
  const auto used = [] {
    timespec time = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return absl::DurationFromTimespec(time);
  };
  HttpCall call;
  call.path = "/endless";
  call.cancellation = &cancellation;
  absl::Duration before;
  const Status status = client
                            ->Stream(call,
                                     [&](absl::string_view) {
                                       timers.Schedule(absl::Seconds(1), [&] {
                                         cancellation.Cancel(Aborted("stop"));
                                       });
                                       before = used();
                                       return absl::OkStatus();
                                     })
                            .status();
  EXPECT_EQ(status, Aborted("stop"));
  EXPECT_LT(used() - before, absl::Milliseconds(200));
}

TEST_F(HttpClientTest, CallsEndByCancellationAndByTime) {
  const auto client = Client(authority_.certificate_pem);
  Cancellation cancellation;
  TimerQueue timers;
  timers.Schedule(absl::Milliseconds(50), [&] { cancellation.Cancel(Aborted("stop")); });
  HttpCall call;
  call.path = "/hang";
  call.cancellation = &cancellation;
  EXPECT_EQ(client->Send(call).status(), Aborted("stop"));
  call.cancellation = nullptr;
  call.timeout = absl::Milliseconds(50);
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->Send(call).status()));
}

TEST_F(HttpClientTest, AStreamThatNobodyReadsIsCutOff) {
  const auto client = Client(authority_.certificate_pem);
  HttpCall call;
  call.path = "/flood";
  call.timeout = absl::Seconds(30);
  const Status status = client
                            ->Stream(call,
                                     [&](absl::string_view) {
                                       // The writer runs on the server's thread, so nothing leaves
                                       // before it has ended.
                                       return absl::OkStatus();
                                     })
                            .status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_LT(flooded_.load(), 20);
}

TEST_F(HttpClientTest, TrustsOnlyItsAuthorityAndTheRightHost) {
  const Identity other = MakeAuthority("other-ca", absl::Now(), kYear).value();
  const Status foreign = Client(other.certificate_pem)->Send({}).status();
  EXPECT_TRUE(absl::IsUnauthenticated(foreign)) << foreign;
  EXPECT_THAT(std::string(foreign.message()), HasSubstr("certificate"));
  EXPECT_TRUE(
      absl::IsUnauthenticated(Client(authority_.certificate_pem, "localhost")->Send({}).status()));
}

TEST_F(HttpClientTest, SaysWhoCannotBeReached) {
  const int port = server_->port();
  const auto client = Client(authority_.certificate_pem);
  server_.reset();
  const Status status = client->Send({}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("127.0.0.1:", port)));
}

TEST(HttpUrlTest, ReadsItsParts) {
  const HttpUrl url = ParseHttpUrl("https://[::1]:6443/api/").value();
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.port, 6443);
  EXPECT_EQ(url.path, "/api");
  EXPECT_EQ(ParseHttpUrl("http://name").value().port, 80);
  EXPECT_EQ(ParseHttpUrl("https://name/x/y").value().path, "/x/y");
  for (const char* text : {"", "ftp://x", "https://", "https://:443", "https://h:x", "name:443"}) {
    EXPECT_FALSE(ParseHttpUrl(text).ok()) << text;
  }
}

TEST(CertificateTest, LivesAsLongAsAsked) {
  const absl::Time now = absl::FromUnixSeconds(1700000000);
  const Identity authority = MakeAuthority("ca", now, kYear).value();
  EXPECT_EQ(CertificateEnd(authority.certificate_pem).value(), now + kYear);
  EXPECT_FALSE(CertificateEnd("no certificate").ok());
  EXPECT_FALSE(TlsConfig::Server(authority.certificate_pem, "no key").ok());
  const Identity other = MakeAuthority("ca", now, kYear).value();
  EXPECT_FALSE(TlsConfig::Server(authority.certificate_pem, other.key_pem).ok());
  EXPECT_EQ(RandomHex(16).size(), 32u);
  EXPECT_NE(RandomHex(16), RandomHex(16));
}

TEST(HttpQueryTest, DecodesNamesAndValues) {
  const auto query = ParseHttpQuery("a=1&b=x%3Dy%2Cz&c&d=p+q&e=%zz&a=2");
  EXPECT_EQ(query.at("a"), "2");
  EXPECT_EQ(query.at("b"), "x=y,z");
  EXPECT_EQ(query.at("c"), "");
  EXPECT_EQ(query.at("d"), "p q");
  EXPECT_EQ(query.at("e"), "%zz");
  EXPECT_EQ(EncodePercent("a=b, c/d"), "a%3Db%2C%20c%2Fd");
}

}  // namespace
}  // namespace weft
