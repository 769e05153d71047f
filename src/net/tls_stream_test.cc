// SPDX-License-Identifier: Apache-2.0
// Two sides over a pair of sockets: who is let in, and bytes both ways at once.
#include "net/tls_stream.h"

#include <cstdlib>
#include <filesystem>
#include <random>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/threads.h"
#include "net/certificate.h"
#include "net/job_identity.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kJobYear = absl::Hours(24 * 365);

JobIdentity IdentityOf(const std::string& name) {
  return *MakeJobIdentity(name, absl::Now(), kJobYear);
}

// A second job whose certificate the first one's authority has signed, as where a cluster has one
// issuer for all.
std::pair<JobIdentity, JobIdentity> TwoJobsOfOneAuthority(
    absl::Duration second_validity = kJobYear) {
  const absl::Time past = absl::Now() - absl::Hours(48);
  const Identity authority = *MakeAuthority("shared", past, kJobYear);
  const auto issue = [&](const std::string& name, absl::Duration validity) {
    CertificateRequest request;
    request.common_name = "weft task";
    request.dns_names = {name};
    request.validity = validity;
    request.for_clients_too = true;
    const Identity made = *IssueServerCertificate(authority, request, past);
    return JobIdentity{authority.certificate_pem, made.certificate_pem, made.key_pem, name};
  };
  return {issue("one.weft-job", kJobYear), issue("two.weft-job", second_validity)};
}

class Link {
 public:
  Link(const JobIdentity& server, const JobIdentity& client) {
    MakeSockets();
    server_ = *TlsStream::Accept(*MakeJobTls(server)->server, fds_[0]);
    client_ = *TlsStream::Connect(*MakeJobTls(client)->client, fds_[1], "ignored");
  }
  ~Link() {
    server_.reset();
    client_.reset();
    ::close(fds_[0]);
    ::close(fds_[1]);
  }
  void MakeSockets() {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds_), 0);
  }
  // What either side says of a word that the client sends and the server has to read.
  struct Ends {
    std::string heard, server_error, client_error;
  };
  Ends Talk() {
    Ends ends;
    char word[] = "hello";
    char room[64];
    iovec out = {word, 5};
    iovec in = {room, sizeof(room)};
    bool sent = false;
    for (int round = 0; round < 50; ++round) {
      if (!sent) sent = client_->Write(&out, 1) == 5;
      const ssize_t got = server_->Read(&in, 1, false);
      if (got > 0) ends.heard.append(room, static_cast<size_t>(got));
      if (got < 0 && errno == EPROTO) ends.server_error = server_->error();
      iovec none = {room, sizeof(room)};
      if (client_->Read(&none, 1, false) < 0 && errno == EPROTO)
        ends.client_error = client_->error();
    }
    return ends;
  }

  int fds_[2] = {-1, -1};
  std::unique_ptr<TlsStream> server_, client_;
};

TEST(TlsStreamTest, TasksOfOneJobHearEachOther) {
  const JobIdentity job = IdentityOf("a.weft-job");
  Link link(job, job);
  EXPECT_FALSE(link.client_->is_ready());
  const Link::Ends ends = link.Talk();
  EXPECT_EQ(ends.heard, "hello");
  EXPECT_EQ(ends.server_error + ends.client_error, "");
  EXPECT_TRUE(link.client_->is_ready());
  EXPECT_TRUE(link.server_->is_ready());
}

TEST(TlsStreamTest, AnotherJobIsRefusedOnBothSides) {
  const Link::Ends ends = Link(IdentityOf("a.weft-job"), IdentityOf("a.weft-job")).Talk();
  EXPECT_EQ(ends.heard, "");
  // The client is the first to see a certificate, and says so to the server.
  EXPECT_THAT(ends.client_error, HasSubstr("certificate is not accepted"));
  EXPECT_THAT(ends.server_error, HasSubstr("alert unknown ca"));
}

TEST(TlsStreamTest, AnotherJobOfTheSameAuthorityIsRefused) {
  const auto [one, two] = TwoJobsOfOneAuthority();
  EXPECT_THAT(Link(one, two).Talk().client_error, HasSubstr("hostname mismatch"));
  // A client that does not care whom it calls.
  Link link(one, one);
  TlsClientOptions careless;
  careless.certificate_pem = two.certificate_pem;
  careless.key_pem = two.key_pem;
  careless.skip_verification = true;
  link.client_ = *TlsStream::Connect(**TlsConfig::Client(careless), link.fds_[1], "anything");
  const Link::Ends ends = link.Talk();
  EXPECT_EQ(ends.heard, "");
  EXPECT_THAT(ends.server_error, HasSubstr("hostname mismatch"));
  EXPECT_THAT(ends.client_error, HasSubstr("alert"));
}

TEST(TlsStreamTest, AClientWithoutACertificateIsRefused) {
  const JobIdentity job = IdentityOf("a.weft-job");
  Link link(job, job);
  TlsClientOptions nobody;
  nobody.skip_verification = true;
  link.client_ = *TlsStream::Connect(**TlsConfig::Client(nobody), link.fds_[1], "anything");
  const Link::Ends ends = link.Talk();
  EXPECT_EQ(ends.heard, "");
  EXPECT_THAT(ends.server_error, HasSubstr("peer did not return a certificate"));
  EXPECT_THAT(ends.client_error, HasSubstr("certificate required"));
}

TEST(TlsStreamTest, AnExpiredCertificateIsRefused) {
  const auto [one, two] = TwoJobsOfOneAuthority(absl::Hours(24));
  EXPECT_THAT(Link(two, two).Talk().client_error, HasSubstr("certificate has expired"));
}

TEST(TlsStreamTest, OtherProtocolsAreNamedAsSuch) {
  const JobIdentity job = IdentityOf("a.weft-job");
  for (const std::string& words :
       {std::string("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), std::string("WEFT\1\2\3\4 and so on"),
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")}) {
    Link link(job, job);
    ASSERT_EQ(::send(link.fds_[1], words.data(), words.size(), 0),
              static_cast<ssize_t>(words.size()));
    char room[64];
    iovec in = {room, sizeof(room)};
    EXPECT_EQ(link.server_->Read(&in, 1, false), -1);
    EXPECT_EQ(errno, EPROTO) << words;
    EXPECT_THAT(link.server_->error(), HasSubstr("does not speak TLS")) << words;
  }
}

TEST(TlsStreamTest, HalfAHandshakeWaitsAndItsEndIsAnEnd) {
  const JobIdentity job = IdentityOf("a.weft-job");
  Link link(job, job);
  ASSERT_EQ(::send(link.fds_[1], "\x16\x03\x01\x02", 4, 0), 4);
  char room[64];
  iovec in = {room, sizeof(room)};
  EXPECT_EQ(link.server_->Read(&in, 1, false), -1);
  EXPECT_EQ(errno, EAGAIN);
  iovec out = {room, 5};
  EXPECT_EQ(link.server_->Write(&out, 1), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_FALSE(link.server_->is_ready());
  ::shutdown(link.fds_[1], SHUT_WR);
  EXPECT_EQ(link.server_->Read(&in, 1, false), 0);
}

// Each side sends while it receives, in pieces of all sizes, through sockets that are often full,
// and changes its key after each MiB.
TEST(TlsStreamTest, BytesCrossBothWaysAtOnceInOrder) {
  const JobIdentity job = IdentityOf("a.weft-job");
  Link link(job, job);
  link.server_ = *TlsStream::Accept(*MakeJobTls(job)->server, link.fds_[0], 1 << 20);
  link.client_ = *TlsStream::Connect(*MakeJobTls(job)->client, link.fds_[1], "", 1 << 20);
  constexpr size_t kBytes = 24 << 20;
  std::vector<char> source(kBytes);
  std::mt19937 random(3);
  for (char& c : source) c = static_cast<char>(random());
  const auto write_all = [&](TlsStream* stream, int fd, unsigned seed) {
    std::mt19937 sizes(seed);
    size_t done = 0;
    while (done < kBytes || stream->has_output()) {
      std::vector<iovec> pieces;
      for (size_t at = done; at < kBytes && pieces.size() < 5;) {
        const size_t size = std::min<size_t>(kBytes - at, 1 + sizes() % (sizes() % 2 ? 99 : 90000));
        pieces.push_back({source.data() + at, size});
        at += size;
      }
      const ssize_t taken = stream->Write(pieces.data(), static_cast<int>(pieces.size()));
      if (taken > 0) done += static_cast<size_t>(taken);
      if (taken >= 0) continue;
      ASSERT_EQ(errno, EAGAIN) << stream->error();
      pollfd ready = {fd, static_cast<short>(stream->has_output() ? POLLOUT : 0), 0};
      ::poll(&ready, 1, 1);
    }
  };
  const auto read_all = [&](TlsStream* stream, int fd, unsigned seed) {
    std::mt19937 sizes(seed);
    std::vector<char> room(200000);
    size_t done = 0;
    while (done < kBytes) {
      const size_t first = 1 + sizes() % 50;
      const iovec pieces[] = {{room.data(), first}, {room.data() + first, 1 + sizes() % 150000}};
      const bool buffered_only = stream->has_input() && sizes() % 4 == 0;
      const ssize_t got = stream->Read(pieces, 2, buffered_only);
      if (got > 0) {
        ASSERT_EQ(std::memcmp(room.data(), source.data() + done, static_cast<size_t>(got)), 0);
        done += static_cast<size_t>(got);
        continue;
      }
      ASSERT_EQ(got, -1) << "it ended";
      ASSERT_EQ(errno, EAGAIN) << stream->error();
      if (buffered_only) continue;
      // All that came has been given: only the socket can bring more.
      pollfd ready = {fd, POLLIN, 0};
      ASSERT_EQ(::poll(&ready, 1, 30000), 1);
    }
  };
  const Thread threads[] = {
      Thread("write", [&] { write_all(link.server_.get(), link.fds_[0], 1); }),
      Thread("write", [&] { write_all(link.client_.get(), link.fds_[1], 2); }),
      Thread("read", [&] { read_all(link.server_.get(), link.fds_[0], 3); }),
      Thread("read", [&] { read_all(link.client_.get(), link.fds_[1], 4); })};
}

class JobIdentityTest : public ::testing::Test {
 protected:
  JobIdentityTest() {
    std::string path = ::testing::TempDir() + "weft-identity-XXXXXX";
    root_ = ::mkdtemp(path.data());
    folder_ = root_ + "/secret";
  }
  ~JobIdentityTest() override { std::filesystem::remove_all(root_); }
  StatusOr<JobIdentity> Read(absl::Time now = absl::Now()) {
    return ReadJobIdentity(files_, folder_, now);
  }
  RealFileSystem files_;
  std::string root_, folder_;
};

TEST_F(JobIdentityTest, IsReadAsItWasWrittenAndNobodyElseMay) {
  const JobIdentity job = IdentityOf("a.weft-job");
  ASSERT_TRUE(WriteJobIdentity(job, folder_).ok());
  const StatusOr<JobIdentity> read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->name, "a.weft-job");
  EXPECT_EQ(read->key_pem, job.key_pem);
  EXPECT_EQ(std::filesystem::status(folder_).permissions(), std::filesystem::perms::owner_all);
  EXPECT_EQ(std::filesystem::status(folder_ + "/tls.key").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_TRUE(absl::IsAlreadyExists(WriteJobIdentity(job, folder_)));
}

TEST_F(JobIdentityTest, WhatIsWrongWithAFolderIsSaid) {
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("ca.crt"));
  JobIdentity job = IdentityOf("a.weft-job");
  ASSERT_TRUE(WriteJobIdentity(job, folder_).ok());
  EXPECT_THAT(std::string(Read(absl::Now() + 2 * kJobYear).status().message()),
              HasSubstr("expired"));
  ASSERT_TRUE(WriteFile(files_, folder_ + "/tls.key", IdentityOf("b").key_pem).ok());
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("private key"));
  ASSERT_TRUE(WriteFile(files_, folder_ + "/ca.crt", IdentityOf("b").authority_pem).ok());
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("is not accepted with"));
  ASSERT_TRUE(WriteFile(files_, folder_ + "/tls.crt", "nonsense").ok());
  EXPECT_THAT(std::string(Read().status().message()), HasSubstr("tls.crt"));
}

}  // namespace
}  // namespace weft
