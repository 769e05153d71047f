// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/webhook.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"

#include "base/files.h"
#include "net/http_client.h"

namespace weft::platform {
namespace {

using ::testing::HasSubstr;

constexpr absl::Time kStart = absl::FromUnixSeconds(1700000000);

std::string Authority(absl::Duration validity) {
  return MakeAuthority("a", kStart, validity).value().certificate_pem;
}

TEST(WebhookTest, AuthoritiesStandTogetherUntilTheyEnd) {
  const std::string a = Authority(absl::Hours(1));
  const std::string b = Authority(absl::Hours(2));
  EXPECT_EQ(JoinAuthorities("", a, kStart), a);
  EXPECT_EQ(JoinAuthorities("nonsense", a, kStart), a);
  EXPECT_EQ(JoinAuthorities(a, b, kStart), a + b);
  EXPECT_EQ(JoinAuthorities(a + b, a, kStart), a + b);
  EXPECT_EQ(JoinAuthorities(a, b, kStart + absl::Minutes(90)), b);
  std::string bundle;
  for (int i = 0; i < 40; ++i) {
    bundle = JoinAuthorities(bundle, Authority(absl::Hours(1)), kStart);
  }
  const std::vector<std::string> parts = absl::StrSplit(bundle, "BEGIN CERTIFICATE");
  EXPECT_EQ(parts.size(), 33u);  // 32 authorities
}

class ServedTest : public ::testing::Test {
 protected:
  ServedTest() { EXPECT_TRUE(RealFileSystem().MakeDirectories(folder_).ok()); }

  std::string Held(const std::string& name) {
    RealFileSystem files;
    return ReadFile(files, JoinPath(folder_, name), 1 << 20).value_or("");
  }
  // What a client that trusts `authority` gets.
  std::string Healthz(int port, const std::string& authority) {
    TlsClientOptions tls;
    tls.authority_pem = authority;
    const auto client = HttpClient::Create(absl::StrCat("https://127.0.0.1:", port), tls).value();
    HttpCall call;
    call.path = "/healthz";
    const StatusOr<HttpAnswer> answer = client->Send(call);
    return answer.ok() ? answer->body : std::string(answer.status().message());
  }

  const std::string folder_ =
      JoinPath(::testing::TempDir(), absl::StrCat("webhook-", absl::ToUnixNanos(absl::Now())));
  RealClock clock_;
};

TEST_F(ServedTest, ACertificateIsRenewedBeforeItEnds) {
  WebhookOptions options;
  options.address.port = 0;
  options.folder = folder_;
  options.validity = absl::Seconds(6);
  const auto webhook = Webhook::Start(options, &clock_).value();
  const std::string first = Held("ca.crt");
  EXPECT_EQ(Healthz(webhook->port(), first), "ok");
  EXPECT_TRUE(webhook->IsTold());
  while (Held("ca.crt") == first) absl::SleepFor(absl::Milliseconds(20));
  // The files are written before the certificate is shown.
  while (Healthz(webhook->port(), Held("ca.crt")) != "ok") absl::SleepFor(absl::Milliseconds(20));
  EXPECT_THAT(Healthz(webhook->port(), first), HasSubstr("TLS failed"));
  EXPECT_NE(Held("webhook.yaml"), "");
}

TEST_F(ServedTest, SomebodyElsesCertificateIsFollowed) {
  const Identity authority = MakeAuthority("a", absl::Now(), absl::Hours(1)).value();
  CertificateRequest request;
  request.common_name = "webhook";
  request.addresses = {"127.0.0.1"};
  RealFileSystem files;
  const auto put = [&](const Identity& by) {
    const Identity made = IssueServerCertificate(by, request, absl::Now()).value();
    ASSERT_TRUE(WriteFile(files, JoinPath(folder_, "tls.key"), made.key_pem).ok());
    ASSERT_TRUE(WriteFile(files, JoinPath(folder_, "tls.crt"), made.certificate_pem).ok());
  };
  put(authority);
  WebhookOptions options;
  options.address.port = 0;
  options.folder = folder_;
  options.validity = absl::Seconds(5);  // looks often
  const auto webhook = Webhook::Start(options, &clock_).value();
  EXPECT_EQ(Healthz(webhook->port(), authority.certificate_pem), "ok");
  EXPECT_EQ(Held("webhook.yaml"), "");
  const Identity other = MakeAuthority("b", absl::Now(), absl::Hours(1)).value();
  put(other);
  while (Healthz(webhook->port(), other.certificate_pem) != "ok") {
    absl::SleepFor(absl::Milliseconds(20));
  }
}

}  // namespace
}  // namespace weft::platform
