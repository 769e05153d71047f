// SPDX-License-Identifier: Apache-2.0
#include "weft/worker/lease_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/notification.h"

#include "base/files.h"
#include "base/threads.h"

namespace weft::worker {
namespace {

using ::testing::HasSubstr;

constexpr char kMethod[] = "/weft.Leases/Call";

class LeaseServiceTest : public ::testing::Test {
 protected:
  // Keeps the book, or asks the task at `keeper`.
  LeaseService* Make(const std::string& keeper) {
    services_.push_back(*LeaseService::Make(
        {.task = "/job:ps/replica:0/task:0", .incarnation = 1, .keeper = keeper}, &files_, &clock_,
        &stopping_));
    return services_.back().get();
  }
  std::string Serve(LeaseService* service) {
    wire::MethodTable methods;
    service->AddMethods(&methods);
    servers_.push_back(*wire::GrpcServer::Start("127.0.0.1:0", std::move(methods), &pool_, &pool_));
    return absl::StrCat("127.0.0.1:", servers_.back()->port());
  }
  StatusOr<std::string> Call(const std::string& address, const std::string& request) {
    wire::ClientCall call{.method = kMethod,
                          .request = wire::Payload(request),
                          .deadline = absl::Now() + absl::Seconds(20)};
    WEFT_ASSIGN_OR_RETURN(const auto reply,
                          wire::GrpcChannel::Connect(address)->CallAndWait(std::move(call)));
    std::string bytes;
    for (const absl::string_view part : reply->response()) absl::StrAppend(&bytes, part);
    return bytes;
  }

  RealFileSystem files_;
  RealClock clock_;
  Cancellation stopping_;
  ThreadPool pool_{"test", 4};
  std::vector<std::unique_ptr<LeaseService>> services_;
  std::vector<std::unique_ptr<wire::GrpcServer>> servers_;
};

constexpr char kDefine[] =
    R"({"do":"define","queue":{"name":"q","records":4,"per_lease":2,"epochs":1,"seed":0,)"
    R"("lease_seconds":600}})";

TEST_F(LeaseServiceTest, OneThatEndsNamesTheKeeperAndWhoAsksGoesThere) {
  const std::string keeper = Serve(Make(""));
  LeaseService* const before = Make("");  // of the task's process before, which has handed over
  before->Leave();
  before->GoTo(keeper);
  const std::string worker = Serve(Make(Serve(before)));
  ASSERT_TRUE(Call(worker, kDefine).ok());
  EXPECT_THAT(*Call(worker, R"({"do":"take","queue":"q"})"), HasSubstr("lease"));
  before->Drain();
  EXPECT_THAT(*Call(worker, R"({"do":"take","queue":"q"})"), HasSubstr("lease"));
  EXPECT_THAT(*Call(worker, R"({"do":"counts","queue":"q"})"), HasSubstr(R"("held":2)"));
}

TEST_F(LeaseServiceTest, WhatIsAskedForOthersIsAnsweredBeforeTheEnd) {
  absl::Notification came;
  std::vector<std::unique_ptr<wire::ServerCall>> held;
  wire::MethodTable slow;
  slow.emplace(kMethod, wire::Method{[&](std::unique_ptr<wire::ServerCall> call) {
                 held.push_back(std::move(call));
                 came.Notify();
               }});
  servers_.push_back(*wire::GrpcServer::Start("127.0.0.1:0", std::move(slow), &pool_, &pool_));
  LeaseService* const before = Make("");
  before->Leave();
  before->GoTo(absl::StrCat("127.0.0.1:", servers_.back()->port()));
  const std::string address = Serve(before);
  StatusOr<std::string> answer = Internal("none");
  Thread asker("asker", [&] { answer = Call(address, R"({"do":"counts","queue":"q"})"); });
  came.WaitForNotification();
  Thread keeper("keeper", [&] {
    absl::SleepFor(absl::Milliseconds(100));
    held[0]->Reply(absl::OkStatus(), wire::Payload(std::string(R"({"held":0})")));
  });
  before->Drain();
  stopping_.Cancel(Cancelled("The server is shutting down"));
  asker.Join();
  keeper.Join();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, R"({"held":0})");
}

}  // namespace
}  // namespace weft::worker
