// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

// Keeps what was sent; a receive of what has not come yet waits.
class OneTable final : public Rendezvous {
 public:
  Status Send(const RendezvousKey& key, const Tensor& tensor, bool is_dead) override {
    sent[key.ToString()] = {tensor, is_dead};
    if (const auto found = waiting.find(key.ToString()); found != waiting.end())
      found->second(tensor, is_dead);
    return absl::OkStatus();
  }
  void Receive(const RendezvousKey& key, ReceiveCallback done) override {
    if (const auto found = sent.find(key.ToString()); found != sent.end()) {
      done(found->second.first, found->second.second);
    } else {
      waiting.emplace(key.ToString(), std::move(done));
    }
  }
  void Abort(const Status& reason) override {
    for (auto& [key, done] : waiting) done(reason, false);
  }
  std::map<std::string, std::pair<Tensor, bool>> sent;
  std::map<std::string, ReceiveCallback> waiting;
};

AttrMap KeyAttrs() {
  return {{"tensor_name", "edge_1_x"},
          {"send_device", "/job:a/replica:0/task:0/device:CPU:0"},
          {"recv_device", "/job:b/replica:0/task:0/device:CPU:0"},
          {"send_device_incarnation", int64_t{-1}}};
}

class SendRecvTest : public ::testing::Test {
 protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<KernelRunner>> send =
        KernelRunner::Make("_Send", {Tensor::Scalar("news")}, KeyAttrs());
    ASSERT_TRUE(send.ok()) << send.status();
    send_ = *std::move(send);
    AttrMap attrs = KeyAttrs();
    attrs.emplace("tensor_type", DType::kString);
    StatusOr<std::unique_ptr<KernelRunner>> receive = KernelRunner::Make("_Recv", {}, attrs);
    ASSERT_TRUE(receive.ok()) << receive.status();
    receive_ = *std::move(receive);
    table_ = MakeRef<OneTable>();
    send_->environment().rendezvous = table_.get();
    receive_->environment().rendezvous = table_.get();
  }
  std::unique_ptr<KernelRunner> send_;
  std::unique_ptr<KernelRunner> receive_;
  Ref<OneTable> table_;
};

TEST_F(SendRecvTest, CarriesATensorUnderItsKey) {
  ASSERT_TRUE(send_->Run().ok());
  EXPECT_EQ(table_->sent.begin()->first,
            "/job:a/replica:0/task:0/device:CPU:0;ffffffffffffffff;/job:b/replica:0/task:0/"
            "device:CPU:0;edge_1_x;0:0");
  StatusOr<std::vector<Tensor>> got = receive_->Run();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].scalar<std::string>(), "news");
}

TEST_F(SendRecvTest, WaitsWithoutBlocking) {
  Status result = absl::UnknownError("not called");
  receive_->kernel().ComputeAsync(receive_->context(), [&](Status s) { result = std::move(s); });
  EXPECT_EQ(result.code(), absl::StatusCode::kUnknown);
  ASSERT_TRUE(send_->Run().ok());
  EXPECT_TRUE(result.ok()) << result;
}

TEST_F(SendRecvTest, AnAbortEndsTheWait) {
  Status result;
  receive_->kernel().ComputeAsync(receive_->context(), [&](Status s) { result = std::move(s); });
  table_->Abort(Cancelled("step over"));
  EXPECT_EQ(result.code(), absl::StatusCode::kCancelled);
}

TEST_F(SendRecvTest, EachIterationHasAKeyOfItsOwn) {
  send_->context().set_frame(7, 3);
  ASSERT_TRUE(send_->Run().ok());
  EXPECT_THAT(table_->sent.begin()->first, ::testing::EndsWith(";7:3"));
}

TEST_F(SendRecvTest, DeadTensorsArriveDead) {
  send_->context().binding().input_values[0]->is_dead = true;
  ASSERT_TRUE(send_->Run().ok());
  ASSERT_TRUE(receive_->Run().ok());
  EXPECT_TRUE(receive_->outputs()[0].is_dead);
}

TEST_F(SendRecvTest, RefusesAnotherTypeAndAMissingMeetingPlace) {
  RendezvousKey key;
  key.send_device = "/job:a/replica:0/task:0/device:CPU:0";
  key.receive_device = "/job:b/replica:0/task:0/device:CPU:0";
  key.edge = "edge_1_x";
  key.send_incarnation = UINT64_MAX;
  ASSERT_TRUE(table_->Send(key, Tensor::Scalar<float>(1), false).ok());
  EXPECT_EQ(receive_->Run().status().code(), absl::StatusCode::kInternal);
  send_->environment().rendezvous = nullptr;
  EXPECT_EQ(send_->Run().status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace weft::ops::testing
