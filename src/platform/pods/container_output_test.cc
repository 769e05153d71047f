// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/container_output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/status.h"

namespace weft::platform {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Time kPrinted = absl::FromUnixSeconds(1700000000);

// Both ends of a pipe; the reader's does not block, as those of processes.
struct Ends {
  OwnedFd read;
  OwnedFd write;
};

Ends MakeEnds() {
  int fds[2];
  EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  EXPECT_EQ(::fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
  return {OwnedFd(fds[0]), OwnedFd(fds[1])};
}

void Print(const Ends& ends, const std::string& text) {
  ASSERT_EQ(::write(ends.write.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

Ends MakeSockets() {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
  return {OwnedFd(fds[0]), OwnedFd(fds[1])};
}

std::string Received(const Ends& ends) {
  char buffer[64];
  const ssize_t count = ::read(ends.read.get(), buffer, sizeof(buffer));
  return count < 0 ? "nothing" : std::string(buffer, static_cast<size_t>(count));
}

TEST(ContainerOutputTest, WhoAttachesGetsEachByteUntilTheEnd) {
  OutputReader reader("main", {});
  Ends out = MakeEnds();
  Ends err = MakeEnds();
  reader.Begin(std::move(out.read), std::move(err.read), /*keeps_tail=*/false);
  Print(out, "before\n");
  reader.Read(absl::Seconds(1), kPrinted);
  Ends heard_out = MakeSockets();
  Ends heard_err = MakeSockets();
  Ends gone = MakeSockets();
  reader.AddListener(std::move(heard_out.write), std::move(heard_err.write));
  reader.AddListener(std::move(gone.write), OwnedFd());
  gone.read.Reset();
  Print(out, "a\rpart");
  Print(err, "b");
  reader.Read(absl::Seconds(1), kPrinted);
  EXPECT_EQ(Received(heard_out), "a\rpart");
  EXPECT_EQ(Received(heard_err), "b");
  EXPECT_EQ(Received(heard_out), "nothing");
  reader.Finish(absl::Seconds(2), kPrinted);
  EXPECT_EQ(Received(heard_out), "");
  EXPECT_EQ(Received(heard_err), "");
}

TEST(ContainerOutputTest, LinesReachTheListenerTheTailAndTheLog) {
  ContainerOutput output;
  output.log_folder = absl::StrCat(::testing::TempDir(), "/output_", ::getpid());
  std::vector<std::string> heard;
  output.listener = [&](const std::string& container, int descriptor,
                        const std::vector<std::string>& lines) {
    if (descriptor == 0) heard.push_back(absl::StrCat(container, " ended"));
    for (const std::string& line : lines)
      heard.push_back(absl::StrCat(container, " ", descriptor, " ", line));
  };
  OutputReader reader("main", output);
  reader.OpenLog(2);
  Ends out = MakeEnds();
  Ends err = MakeEnds();
  reader.Begin(std::move(out.read), std::move(err.read), /*keeps_tail=*/true);
  EXPECT_GE(reader.stdout_fd(), 0);
  Print(out, "one\ntwo\nhal");
  Print(err, "bad\n");
  reader.Read(absl::Seconds(1), kPrinted);
  EXPECT_THAT(heard, ElementsAre("main 1 one", "main 1 two", "main 2 bad"));
  Print(out, "f");
  out.write.Reset();
  err.write.Reset();
  reader.Finish(absl::Seconds(2), kPrinted);
  EXPECT_THAT(heard,
              ElementsAre("main 1 one", "main 1 two", "main 2 bad", "main 1 half", "main ended"));
  EXPECT_EQ(reader.tail(), "one\ntwo\nbad\nhalf\n");
  EXPECT_EQ(reader.stdout_fd(), -1);
  RealFileSystem files;
  const auto log = ReadFile(files, output.log_folder + "/main/2.log", 1 << 20);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_THAT(*log, HasSubstr("two\n"));
  EXPECT_THAT(*log, HasSubstr("half\n"));
}

TEST(ContainerOutputTest, TheTailIsTheEndOfOneRun) {
  OutputReader reader("main", ContainerOutput());
  for (int run = 0; run < 2; ++run) {
    Ends out = MakeEnds();
    Ends err = MakeEnds();
    reader.Begin(std::move(out.read), std::move(err.read), /*keeps_tail=*/run == 0);
    EXPECT_EQ(reader.tail(), "");
    Print(out, std::string(5000, 'x') + "\nlast\n");
    reader.Finish(absl::Seconds(1), kPrinted);
    EXPECT_EQ(reader.tail().size(), run == 0 ? 2048u : 0u);
  }
}

TEST(ContainerOutputTest, NamesThatLeadElsewhereNameNoLog) {
  EXPECT_EQ(ContainerLogPath("/logs", "main", 3).value_or(""), "/logs/main/3.log");
  for (const char* name : {"../x", "a/b", ".", ""}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ContainerLogPath("/logs", name, 0).status())) << name;
  }
}

}  // namespace
}  // namespace weft::platform
