// SPDX-License-Identifier: Apache-2.0
#include "weft/wire/grpc_service.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"

#include "weft/tensor/tensor.h"
#include "weft/wire/listen_check.h"

namespace weft::wire {
namespace {

using ::testing::HasSubstr;

std::string Join(absl::Span<const absl::string_view> chunks) {
  std::string all;
  for (absl::string_view chunk : chunks) absl::StrAppend(&all, chunk);
  return all;
}

class GrpcServiceTest : public ::testing::Test {
 protected:
  void Start(MethodTable methods) {
    StatusOr<std::unique_ptr<GrpcServer>> server =
        GrpcServer::Start("127.0.0.1:0", std::move(methods), &pool_, &pool_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = GrpcChannel::Connect(absl::StrCat("127.0.0.1:", server_->port()));
  }
  StatusOr<std::string> Call(const std::string& method, std::string request,
                             absl::Duration timeout = absl::Seconds(60)) {
    ClientCall call{.method = method, .request = Payload(std::move(request))};
    call.deadline = absl::Now() + timeout;
    WEFT_ASSIGN_OR_RETURN(auto reply, channel_->CallAndWait(std::move(call)));
    return Join(reply->response());
  }

  ThreadPool pool_{"test", 2};
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<GrpcChannel> channel_;
};

TEST_F(GrpcServiceTest, ServesItsMethodsAndNoOther) {
  Start({{"/a.B/Echo", [](std::unique_ptr<ServerCall> call) {
            call->Reply(absl::OkStatus(), Payload(Join(call->request())));
          }}});
  EXPECT_EQ(*Call("/a.B/Echo", "hello"), "hello");
  EXPECT_EQ(*Call("/a.B/Echo", ""), "");
  const Status unknown = Call("/a.B/Other", "x").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("/a.B/Other"));
}

TEST_F(GrpcServiceTest, SendsSharedBytesWithoutOwningThem) {
  const size_t size = 20 << 20;  // over gRPC's own limit of 4 MB
  StatusOr<Tensor> tensor = Tensor::Zeros(DType::kUint8, Shape{static_cast<int64_t>(size)});
  ASSERT_TRUE(tensor.ok());
  const Ref<Buffer> buffer = tensor->buffer();
  Start({{"/a.B/Get", [&](std::unique_ptr<ServerCall> call) {
            Payload payload("head");
            payload.AppendShared(tensor->bytes(), size, buffer);
            call->Reply(absl::OkStatus(), std::move(payload));
          }}});
  EXPECT_EQ(Call("/a.B/Get", std::string(size, 'r'))->size(), size + 4);
}

TEST_F(GrpcServiceTest, ErrorsKeepCodeAndPayloadAndAreCut) {
  Start({{"/a.B/Fail",
          [](std::unique_ptr<ServerCall> call) {
            Status status = Aborted(std::string(100'000, 'x'));
            status.SetPayload("type.googleapis.com/tensorflow.distributed_runtime.X",
                              absl::Cord("p"));
            call->Reply(status, Payload());
          }},
         {"/a.B/Drop", [](std::unique_ptr<ServerCall>) {}}});
  const Status status = Call("/a.B/Fail", "").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("... [truncated]"));
  EXPECT_LT(status.message().size(), 3200u);
  EXPECT_TRUE(
      status.GetPayload("type.googleapis.com/tensorflow.distributed_runtime.X").has_value());
  EXPECT_EQ(Call("/a.B/Drop", "").status().code(), absl::StatusCode::kInternal);
}

// A client holds its stream open for as long as it may want to say something.
TEST_F(GrpcServiceTest, AnIdleStreamDoesNotHoldUpTheServersEnd) {
  Method echo([](std::unique_ptr<ServerCall> call) {
    call->Reply(absl::OkStatus(), Payload(Join(call->request())));
  });
  echo.streams = true;
  Start({{"/a.B/Stream", echo}});
  grpc::GenericStub stub(grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                             grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto next = [&] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto stream = stub.PrepareCall(&context, "/a.B/Stream", &queue);
  stream->StartCall(nullptr);
  ASSERT_TRUE(next());
  grpc::ByteBuffer answer;
  for (int i = 0; i < 2; ++i) {
    const grpc::Slice hello("hello");
    stream->Write(grpc::ByteBuffer(&hello, 1), nullptr);
    ASSERT_TRUE(next());
    stream->Read(&answer, nullptr);
    ASSERT_TRUE(next());
    EXPECT_EQ(answer.Length(), 5u);
  }
  const absl::Time start = absl::Now();
  server_->Shutdown(absl::Minutes(10));
  EXPECT_LT(absl::Now() - start, absl::Minutes(1));
  grpc::Status status;
  stream->Finish(&status, nullptr);
  ASSERT_TRUE(next());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
}

TEST_F(GrpcServiceTest, WaitingCallsHoldNoThread) {
  absl::Mutex mutex;
  std::vector<std::unique_ptr<ServerCall>> parked;
  Start({{"/a.B/Wait",
          [&](std::unique_ptr<ServerCall> call) {
            absl::MutexLock lock(&mutex);
            parked.push_back(std::move(call));
          }},
         {"/a.B/Echo", [](std::unique_ptr<ServerCall> call) {
            call->Reply(absl::OkStatus(), Payload("here"));
          }}});
  constexpr int kWaiting = 300;
  absl::BlockingCounter ended(kWaiting);
  std::atomic<int> answered{0};
  for (int i = 0; i < kWaiting; ++i) {
    channel_->Call({.method = "/a.B/Wait"}, [&](StatusOr<std::unique_ptr<ClientReply>> reply) {
      answered += reply.ok();
      ended.DecrementCount();
    });
  }
  const auto all_parked = [&] { return parked.size() == kWaiting; };
  {
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&all_parked));
  }
  EXPECT_EQ(*Call("/a.B/Echo", ""), "here");
  for (auto& call : parked) call->Reply(absl::OkStatus(), Payload());
  ended.Wait();
  EXPECT_EQ(answered, kWaiting);
}

TEST_F(GrpcServiceTest, ADeadlineEndsTheCallHere) {
  // Shared with a call that may still be on its way when the client has given up.
  auto given_up = std::make_shared<absl::Notification>();
  Start({{"/a.B/Wait", [given_up](std::unique_ptr<ServerCall> call) {
            given_up->WaitForNotification();
            call->Reply(absl::OkStatus(), Payload());  // too late, harmless
          }}});
  EXPECT_EQ(Call("/a.B/Wait", "", absl::Milliseconds(100)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  given_up->Notify();
}

TEST_F(GrpcServiceTest, AClientThatGivesUpCancelsTheCallOnBothSides) {
  absl::Notification arrived, cancelled_there, ended_here;
  std::unique_ptr<ServerCall> kept;
  Start({{"/a.B/Wait", [&](std::unique_ptr<ServerCall> call) {
            kept = std::move(call);
            Cancellation::Token token;
            EXPECT_TRUE(kept->cancellation().Register(
                &token, [&](const Status&) { cancelled_there.Notify(); }));
            arrived.Notify();
          }}});
  Cancellation cancellation;
  Status status;
  channel_->Call({.method = "/a.B/Wait", .cancellation = &cancellation},
                 [&](StatusOr<std::unique_ptr<ClientReply>> reply) {
                   status = reply.status();
                   ended_here.Notify();
                 });
  arrived.WaitForNotification();
  cancellation.Cancel(Aborted("enough"));
  ended_here.WaitForNotification();
  EXPECT_EQ(status, Aborted("enough"));
  cancelled_there.WaitForNotification();
  kept->Reply(absl::OkStatus(), Payload());  // too late, harmless
  kept.reset();
}

TEST_F(GrpcServiceTest, SaysWhenThePortIsTaken) {
  Start({});
  const std::string address = absl::StrCat("127.0.0.1:", server_->port());
  const StatusOr<std::unique_ptr<GrpcServer>> second =
      GrpcServer::Start(address, {}, &pool_, &pool_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(address));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("in use"));
}

TEST_F(GrpcServiceTest, NobodyThereIsUnavailable) {
  int port = 0;
  {
    Start({});
    port = server_->port();
    server_->Shutdown(absl::ZeroDuration());
  }
  channel_ = GrpcChannel::Connect(absl::StrCat("127.0.0.1:", port));
  EXPECT_EQ(Call("/a.B/Echo", "").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(GrpcServiceTest, CallsMayOutliveTheirChannelAndServer) {
  for (int i = 0; i < 100; ++i) {
    Start({{"/a.B/Echo",
            [](std::unique_ptr<ServerCall> call) { call->Reply(absl::OkStatus(), Payload()); }}});
    auto ended = std::make_shared<absl::Notification>();
    channel_->Call({.method = "/a.B/Echo"},
                   [ended](StatusOr<std::unique_ptr<ClientReply>>) { ended->Notify(); });
    channel_.reset();  // the call holds the rest of it
    ended->WaitForNotification();
    server_.reset();
  }
}

}  // namespace
}  // namespace weft::wire
