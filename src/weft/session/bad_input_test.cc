// SPDX-License-Identifier: Apache-2.0
// Whatever a program hands to a session: an error that says what is wrong where, and a session that
// goes on.
#include <limits>
#include <memory>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "absl/strings/substitute.h"

#include "base/faulty_files.h"
#include "base/memory_files.h"
#include "proto/tensorflow/graph.pb.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/graph_proto.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"

namespace weft::session {
namespace {

using ::testing::HasSubstr;

class BadInputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    StatusOr<std::unique_ptr<Session>> session =
        NewDirectSession({.catalogue = &StandardCatalogue(),
                          .devices = &StandardDevices(),
                          .num_threads = 2,
                          .files = &disk_});
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
    ASSERT_EQ(Extend(R"(
        node { name: "ok" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
               attr { key: "value" value { tensor { dtype: DT_FLOAT float_val: 7 tensor_shape {} } } } }
        node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
               attr { key: "shape" value { shape { dim { size: 2 } } } } }
        node { name: "y" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } })"),
              absl::OkStatus());
  }
  // After whatever happened the session still works.
  void TearDown() override {
    std::vector<Tensor> results;
    ASSERT_EQ(session_->Run({}, {"ok"}, {}, &results), absl::OkStatus());
    EXPECT_EQ(results[0].scalar<float>(), 7);
  }

  Status Extend(const std::string& text) {
    tensorflow::GraphDef proto;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
    WEFT_ASSIGN_OR_RETURN(const GraphDef graph, GraphDefFromProto(proto));
    return session_->Extend(graph);
  }
  void ExpectRefused(const std::string& graph, const std::vector<std::string>& words) {
    const Status status = Extend(graph);
    EXPECT_FALSE(status.ok()) << graph;
    for (const std::string& word : words)
      EXPECT_THAT(std::string(status.message()), HasSubstr(word));
  }
  Status Run(const std::vector<Feed>& feeds, const std::string& fetch) {
    std::vector<Tensor> results;
    return session_->Run(feeds, {fetch}, {}, &results);
  }

  MemoryFileSystem memory_;
  FaultyFileSystem disk_{&memory_};
  std::unique_ptr<Session> session_;
};

constexpr char kFloatT[] = R"(attr { key: "T" value { type: DT_FLOAT } } )";

TEST_F(BadInputTest, GraphsThatCannotBe) {
  ExpectRefused(R"(node { name: "n" op: "Ngg" })", {"'n'", "Ngg", "Neg"});
  ExpectRefused(absl::StrCat(R"(node { name: "n" op: "Neg" )", kFloatT, "}"), {"'n'"});
  ExpectRefused(
      absl::StrCat(R"(node { name: "n" op: "Neg" input: "ok" input: "ok" )", kFloatT, "}"),
      {"'n'"});
  ExpectRefused(
      R"(node { name: "n" op: "Neg" input: "ok" attr { key: "T" value { type: DT_DOUBLE } } })",
      {"'n'", "float", "double"});
  ExpectRefused(
      R"(node { name: "n" op: "Neg" input: "ok" attr { key: "T" value { type: DT_STRING } } })",
      {"'n'"});
  ExpectRefused(R"(node { name: "n" op: "Neg" input: "ok" })", {"'n'"});
  ExpectRefused(absl::StrCat(R"(node { name: "n" op: "Neg" input: "nowhere" )", kFloatT, "}"),
                {"'n'", "nowhere"});
  ExpectRefused(absl::StrCat(R"(node { name: "n" op: "Neg" input: "ok:3" )", kFloatT, "}"),
                {"'n'"});
  ExpectRefused(absl::StrCat(R"(node { name: "a" op: "Neg" input: "b" )", kFloatT,
                             R"(} node { name: "b" op: "Neg" input: "a" )", kFloatT, "}"),
                {"cycle", "a", "b"});
  ExpectRefused(R"(node { name: "ok" op: "NoOp" })", {"'ok'"});
  ExpectRefused(R"(node { name: "bad name" op: "NoOp" })", {"bad name"});
  ExpectRefused(R"(node { name: "n" op: "NoOp" device: "/job:a/quark:7" })",
                {"'n'", "/job:a/quark:7"});
}

TEST_F(BadInputTest, FunctionsThatCallThemselves) {
  ExpectRefused(R"(library {
      function { signature { name: "f" } node_def { name: "g" op: "g" } }
      function { signature { name: "g" } node_def { name: "f" op: "f" } } }
      node { name: "call" op: "f" })",
                {"f", "g"});
}

TEST_F(BadInputTest, FunctionsThatAreNotThere) {
  constexpr char kLoop[] = R"(op: "While" input: "ok"
      attr { key: "T" value { list { type: DT_FLOAT } } }
      attr { key: "cond" value { func { name: "lost" } } }
      attr { key: "body" value { func { name: "lost" } } })";
  constexpr char kCall[] = R"(op: "PartitionedCall"
      attr { key: "Tin" value { list { } } } attr { key: "Tout" value { list { } } })";
  ASSERT_EQ(
      Extend(absl::StrCat("node { name: 'loop' ", kLoop, R"(}
      node { name: "call" )",
                          kCall, R"( attr { key: "f" value { func { name: "lost" } } } }
      node { name: "deep" )",
                          kCall, R"( attr { key: "f" value { func { name: "outer" } } } }
      library { function { signature { name: "outer" } node_def { name: "inner" )",
                          kCall, R"( attr { key: "f" value { func { name: "lost" } } } } } })")),
      absl::OkStatus());
  // A graph may hold what no step runs.
  EXPECT_EQ(Run({}, "loop"),
            NotFound("Function lost is not defined: node 'loop' (While) names it in its attribute "
                     "'cond'"));
  const auto run = [&](const char* target) { return session_->Run({}, {}, {target}, nullptr); };
  EXPECT_EQ(run("call"), InvalidArgument("Failed to find function \"lost\" in function library: "
                                         "node 'call' (PartitionedCall) names it in its attribute "
                                         "'f'"));
  EXPECT_THAT(std::string(run("deep").message()),
              HasSubstr("node 'inner' (PartitionedCall) of function 'outer'"));
}

TEST_F(BadInputTest, ShapesThatOverflow) {
  constexpr char kDims[] = "dim { size: 4611686018427387904 } dim { size: 4 }";
  ExpectRefused(
      absl::StrCat(
          R"(node { name: "n" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "shape" value { shape { )",
          kDims, R"( } } } })"),
      {"n"});
  ExpectRefused(
      absl::StrCat(R"(node { name: "n" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
      attr { key: "value" value { tensor { dtype: DT_FLOAT float_val: 1 tensor_shape { )",
                   kDims, R"( } } } } })"),
      {"n"});
  ASSERT_EQ(Extend(R"(
      node { name: "dims" op: "Placeholder" attr { key: "dtype" value { type: DT_INT64 } } }
      node { name: "full" op: "Fill" input: "dims" input: "ok" attr { key: "T" value { type: DT_FLOAT } }
             attr { key: "index_type" value { type: DT_INT64 } } })"),
            absl::OkStatus());
  for (const Tensor& dims :
       {Tensor::Vector<int64_t>({int64_t{1} << 62, 4}), Tensor::Vector<int64_t>({int64_t{1} << 50}),
        Tensor::Vector<int64_t>({-1})}) {
    const Status status = Run({{"dims", dims}}, "full");
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr("full"));
  }
}

// With constant operands, which compilation reads too.
TEST_F(BadInputTest, ConstantsOfAnotherTypeThanTheySay) {
  ASSERT_EQ(Extend(R"(
      node { name: "lie" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
             attr { key: "value" value { tensor { dtype: DT_FLOAT float_val: 2 tensor_shape { dim { size: 1 } } } } } }
      node { name: "full" op: "Fill" input: "lie" input: "ok" attr { key: "T" value { type: DT_FLOAT } } }
      node { name: "flat" op: "Reshape" input: "x" input: "lie" attr { key: "T" value { type: DT_FLOAT } } })"),
            absl::OkStatus());
  for (const char* fetch : {"lie", "full", "flat"}) {
    const Status status = Run({{"x", Tensor::Vector<float>({1, 2})}}, fetch);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("lie"));
  }
}

// More shapes than keys, fewer types than keys.
TEST_F(BadInputTest, AttributesThatDisagree) {
  constexpr char kNode[] = R"(
      node { name: "text$0" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
             attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { dim { size: 1 } } string_val: "" } } } }
      node { name: "key$0" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
             attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape {} string_val: "a" } } } }
      node { name: "parse$0" op: "ParseExample" input: "text$0" input: "text$0" input: "key$0" input: "key$0" input: "ok"
             attr { key: "Nsparse" value { i: 1 } } attr { key: "Ndense" value { i: 1 } }
             attr { key: "sparse_types" value { list { $1 } } }
             attr { key: "Tdense" value { list { type: DT_FLOAT } } }
             attr { key: "dense_shapes" value { list { $2 } } } })";
  ASSERT_EQ(Extend(absl::StrCat(
                absl::Substitute(kNode, 1, "type: DT_INT64", "shape {} shape {} shape {} shape {}"),
                absl::Substitute(kNode, 2, "", "shape {}"))),
            absl::OkStatus());
  for (const char* name : {"parse1", "parse2"}) {
    const Status status = session_->Run({}, {}, {name}, nullptr);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

// No number of such a distribution fits the type: TensorFlow tries for ever.
TEST_F(BadInputTest, RatesBeyondTheType) {
  ASSERT_EQ(Extend(R"(
      node { name: "rate" op: "Placeholder" attr { key: "dtype" value { type: DT_DOUBLE } } }
      node { name: "shape" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
             attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { dim {} } } } } }
      node { name: "drawn" op: "RandomPoissonV2" input: "shape" input: "rate" attr { key: "S" value { type: DT_INT32 } }
             attr { key: "R" value { type: DT_DOUBLE } } attr { key: "dtype" value { type: DT_INT64 } } })"),
            absl::OkStatus());
  for (const double rate : {1e19, 1e30, 1e308, std::numeric_limits<double>::infinity()}) {
    std::vector<Tensor> results;
    ASSERT_EQ(session_->Run({{"rate", Tensor::Scalar(rate)}}, {"drawn"}, {}, &results),
              absl::OkStatus());
    EXPECT_EQ(results[0].scalar<int64_t>(), INT64_MAX) << rate;
  }
}

TEST_F(BadInputTest, FeedsAndFetchesThatDoNotFit) {
  EXPECT_THAT(std::string(Run({{"x", Tensor::Vector<float>({1, 2, 3})}}, "y").message()),
              HasSubstr("x"));
  EXPECT_THAT(std::string(Run({{"x", Tensor::Vector<int32_t>({1, 2})}}, "y").message()),
              HasSubstr("x"));
  EXPECT_FALSE(Run({{"x", Tensor()}}, "y").ok());
  const Tensor too_few = Tensor::FromSpan<float>({2, 3}, {1, 2});
  EXPECT_FALSE(too_few.IsInitialized());
  EXPECT_FALSE(Tensor::FromSpan<float>({1}, {1, 2}).IsInitialized()) << "nothing is overrun";
  EXPECT_THAT(std::string(Run({{"x", too_few}}, "y").message()),
              HasSubstr("as many values as its shape has elements"));
  EXPECT_THAT(std::string(Run({}, "y").message()), HasSubstr("x"));
  EXPECT_THAT(std::string(Run({}, "nothing:0").message()), HasSubstr("nothing"));
  EXPECT_THAT(std::string(Run({}, "OK:0").message()), HasSubstr("is 'ok' meant?"));
  EXPECT_THAT(std::string(Run({}, "ok:5").message()), HasSubstr("ok:5"));
  EXPECT_THAT(std::string(Run({{"gone:0", Tensor::Scalar<float>(1)}}, "ok").message()),
              HasSubstr("gone"));
  EXPECT_FALSE(
      Run({{"x", Tensor::Vector<float>({1, 2})}, {"x:0", Tensor::Vector<float>({1, 2})}}, "y")
          .ok());
  EXPECT_FALSE(session_->Run({}, {}, {"nobody"}, nullptr).ok());
}

TEST_F(BadInputTest, VariablesWithoutAValue) {
  ASSERT_EQ(Extend(R"(
      node { name: "w" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } }
             attr { key: "shape" value { shape {} } } attr { key: "shared_name" value { s: "weights" } } }
      node { name: "read" op: "ReadVariableOp" input: "w" attr { key: "dtype" value { type: DT_FLOAT } } })"),
            absl::OkStatus());
  const Status status = Run({}, "read");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("weights"));
}

class CheckpointTest : public BadInputTest {
 protected:
  void SetUp() override {
    BadInputTest::SetUp();
    const auto text = [](const char* name, const char* value) {
      return absl::StrCat(R"(node { name: ")", name,
                          R"(" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
          attr { key: "value" value { tensor { dtype: DT_STRING string_val: ")",
                          value, "\" ",
                          absl::string_view(name) == "prefix" ? "tensor_shape {}"
                                                              : "tensor_shape { dim { size: 1 } }",
                          " } } } }\n");
    };
    ASSERT_EQ(Extend(absl::StrCat(text("prefix", "/ckpt/model"), text("names", "ok"),
                                  text("slices", ""), R"(
        node { name: "save" op: "SaveV2" input: "prefix" input: "names" input: "slices" input: "ok"
               attr { key: "dtypes" value { list { type: DT_FLOAT } } } }
        node { name: "restore" op: "RestoreV2" input: "prefix" input: "names" input: "slices"
               attr { key: "dtypes" value { list { type: DT_FLOAT } } } })")),
              absl::OkStatus());
  }
  Status Save() { return session_->Run({}, {}, {"save"}, nullptr); }
};

TEST_F(CheckpointTest, AFullDiskIsSaidAndTheOldCheckpointStays) {
  ASSERT_EQ(Save(), absl::OkStatus());
  disk_.LimitBytes(3);
  const Status full = Save();
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("/ckpt/model"));
  EXPECT_THAT(std::string(full.message()), HasSubstr("save"));
  disk_.LimitBytes(INT64_MAX);
  EXPECT_EQ(Run({}, "restore"), absl::OkStatus());
}

TEST_F(CheckpointTest, ATornOrMissingCheckpointNamesItsFile) {
  const Status missing = Run({}, "restore");
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound) << missing;
  EXPECT_THAT(std::string(missing.message()), HasSubstr("/ckpt/model"));
  ASSERT_EQ(Save(), absl::OkStatus());
  for (const char* name : {"/ckpt/model.data-00000-of-00001", "/ckpt/model.index"}) {
    const StatusOr<std::string> whole = ReadFile(memory_, name);
    ASSERT_TRUE(whole.ok());
    ASSERT_EQ(WriteFile(memory_, name, whole->substr(0, whole->size() / 2)), absl::OkStatus());
    const Status torn = Run({}, "restore");
    EXPECT_FALSE(torn.ok()) << name;
    EXPECT_THAT(std::string(torn.message()), HasSubstr(name));
    ASSERT_EQ(WriteFile(memory_, name, *whole), absl::OkStatus());
    EXPECT_EQ(Run({}, "restore"), absl::OkStatus());
  }
}

TEST_F(BadInputTest, AStepThatIsEndedSaysWhy) {
  ASSERT_EQ(Extend(R"(
      node { name: "q" op: "FIFOQueueV2" attr { key: "component_types" value { list { type: DT_FLOAT } } } }
      node { name: "take" op: "QueueDequeueV2" input: "q"
             attr { key: "component_types" value { list { type: DT_FLOAT } } } })"),
            absl::OkStatus());
  std::vector<Tensor> results;
  const Status late =
      session_->Run({.timeout = absl::Milliseconds(1)}, {}, {"take"}, {}, &results, nullptr);
  EXPECT_EQ(late, DeadlineExceeded("Timed out waiting for a step of 1ms"));
}

// Between its rounds, on the thread that waits for it.
TEST_F(BadInputTest, ALoopWithoutAnEndEndsAtTheTimeout) {
  constexpr char kFunction[] = R"(function { signature { name: "$0"
        input_arg { name: "i" type: DT_FLOAT } output_arg { name: "o" type: $1 } }
      node_def { name: "c" op: "$2" input: "i" input: "i" attr { key: "T" value { type: DT_FLOAT } } }
      ret { key: "o" value: "c:z:0" } })";
  ASSERT_EQ(Extend(absl::StrCat("library {",
                                absl::Substitute(kFunction, "always", "DT_BOOL", "LessEqual"),
                                absl::Substitute(kFunction, "next", "DT_FLOAT", "Mul"), R"(}
      node { name: "loop" op: "StatelessWhile" input: "ok" attr { key: "T" value { list { type: DT_FLOAT } } }
             attr { key: "cond" value { func { name: "always" } } }
             attr { key: "body" value { func { name: "next" } } } })")),
            absl::OkStatus());
  std::vector<Tensor> results;
  const Status late =
      session_->Run({.timeout = absl::Milliseconds(50)}, {}, {"loop"}, {}, &results, nullptr);
  EXPECT_EQ(late, DeadlineExceeded("Timed out waiting for a step of 50ms"));
}

}  // namespace
}  // namespace weft::session
