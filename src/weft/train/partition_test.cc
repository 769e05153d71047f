// SPDX-License-Identifier: Apache-2.0
#include "weft/train/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/graph/import.h"
#include "weft/train/program.h"
#include "weft/train/saver.h"
#include "weft/train/testing/local_cluster_test.h"

namespace weft::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

int64_t Parts(const Partitioner& partitioner, const Shape& shape, DType dtype = DType::kFloat) {
  const StatusOr<Partition> partition = partitioner(dtype, shape);
  EXPECT_TRUE(partition.ok()) << partition.status();
  return partition.ok() ? partition->parts : -1;
}

// The numbers are those of tf.compat.v1.fixed_size_partitioner and its kin.
TEST(PartitionerTest, ChoosesAsTensorFlowDoes) {
  EXPECT_EQ(Parts(FixedSizePartitioner(3), {10, 4}), 3);
  EXPECT_EQ(Parts(FixedSizePartitioner(3), {2, 4}), 2);
  EXPECT_EQ(Parts(FixedSizePartitioner(3, 1), {2, 4}), 3);
  // 16 bytes a row: 4 rows in 64 bytes, so 10 rows make 3 parts.
  EXPECT_EQ(Parts(VariableAxisSizePartitioner(64), {10, 4}), 3);
  EXPECT_EQ(Parts(VariableAxisSizePartitioner(15), {10, 4}), 10);
  EXPECT_EQ(Parts(VariableAxisSizePartitioner(64, 0, kBytesPerString, 2), {10, 4}), 2);
  EXPECT_EQ(Parts(VariableAxisSizePartitioner(64), {10, 4}, DType::kString), 10);
  EXPECT_EQ(Parts(VariableAxisSizePartitioner(64, 0, 4), {10, 4}, DType::kString), 3);
  // 160 bytes in parts of at least 50.
  EXPECT_EQ(Parts(MinMaxPartitioner(8, 0, 50), {10, 4}), 4);
  EXPECT_EQ(Parts(MinMaxPartitioner(2, 0, 50), {10, 4}), 2);
  EXPECT_EQ(Parts(MinMaxPartitioner(8, 1, 1), {10, 4}), 4);
  EXPECT_EQ(Parts(MinMaxPartitioner(8), {10, 4}), 1);
}

TEST(PartitionerTest, RefusesWhatCannotBe) {
  for (const Partitioner& partitioner :
       {FixedSizePartitioner(2, 2), VariableAxisSizePartitioner(64, 2), MinMaxPartitioner(2, 2),
        VariableAxisSizePartitioner(0), MinMaxPartitioner(0), MinMaxPartitioner(2, 0, 0)}) {
    EXPECT_EQ(partitioner(DType::kFloat, Shape{4, 4}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_FALSE(FixedSizePartitioner(2)(DType::kFloat, Shape()).ok());
  EXPECT_FALSE(PartSizes({0, 5}, Shape{4}).ok());
  EXPECT_FALSE(PartSizes({0, 0}, Shape{4}).ok());
  EXPECT_THAT(*PartSizes({0, 3}, Shape{8}), ElementsAre(3, 3, 2));
  EXPECT_THAT(*PartSizes({0, 1}, Shape{0, 2}), ElementsAre(0));
}

TEST(PartitionTest, PartsAreNamedAndSlicedAsTensorFlowDoes) {
  Program program;
  const auto parts = program.AddPartitionedVariable("w", DType::kFloat, {4, 5}, Zeros(),
                                                    FixedSizePartitioner(2, 1));
  ASSERT_TRUE(program.status().ok()) << program.status();
  ASSERT_EQ(parts.size(), 2);
  EXPECT_EQ(parts[1].name, "w/part_1");
  EXPECT_EQ(parts[1].whole_name, "w");
  EXPECT_EQ(parts[1].shape, (Shape{4, 2}));
  EXPECT_EQ(parts[0].SliceText(), "4 5 0,4:0,3");
  EXPECT_EQ(parts[1].SliceText(), "4 5 0,4:3,2");
  const Variable slot = program.AddSlot(parts[1], "Adagrad", Zeros());
  EXPECT_EQ(slot.whole_name, "w/Adagrad");
  EXPECT_EQ(slot.SliceText(), "4 5 0,4:3,2");
}

TEST(PartitionTest, ErrorsNameTheVariable) {
  Program program;
  EXPECT_TRUE(
      program.AddPartitionedVariable("w", DType::kFloat, Shape(), Zeros(), FixedSizePartitioner(2))
          .empty());
  EXPECT_THAT(program.status().message(), HasSubstr("'w'"));
}

// A program with the variable w [5, 2] in parts, on two parameter servers.
struct Partitioned {
  Partitioned(const Partitioner& partitioner, const Initializer& initial) {
    program.set_placement(GreedyPlacement(2));
    parts = program.AddPartitionedVariable("w", DType::kFloat, {5, 2}, initial, partitioner);
    program.builder().set_device("/job:worker/task:0");
    whole = JoinParts(program.builder(), parts);
  }
  // A session that knows the program and its saver.
  std::unique_ptr<session::Session> Open(testing::LocalCluster& cluster) {
    StatusOr<std::unique_ptr<Saver>> made = Saver::Create(program);
    init = program.InitializeVariables();
    EXPECT_TRUE(made.ok() && program.status().ok()) << made.status() << program.status();
    if (!made.ok()) return nullptr;
    saver = *std::move(made);
    auto session = cluster.NewSession(0, {});
    EXPECT_TRUE(session.ok()) << session.status();
    const Status status = (*session)->Extend(ExportGraph(program.graph()));
    EXPECT_TRUE(status.ok()) << status;
    return *std::move(session);
  }
  std::vector<float> Values(session::Session& session) const {
    std::vector<Tensor> values;
    const Status status =
        session.Run({}, {absl::StrCat(whole.node->name(), ":", whole.port)}, {}, &values);
    EXPECT_TRUE(status.ok()) << status;
    if (!status.ok()) return {};
    return {values[0].span<float>().begin(), values[0].span<float>().end()};
  }
  Program program;
  std::vector<Variable> parts;
  Endpoint whole;
  Node* init = nullptr;
  std::unique_ptr<Saver> saver;
};

TEST(PartitionTest, ACheckpointIsReadInOtherParts) {
  const std::string folder = ::testing::TempDir() + "/weft-partition";
  std::vector<float> saved;
  std::string path;
  {
    testing::LocalCluster cluster(1, 2);
    Partitioned three(FixedSizePartitioner(3), RandomUniform(0, 1, 7));
    auto session = three.Open(cluster);
    ASSERT_TRUE(session != nullptr);
    EXPECT_NE(three.parts[0].device, three.parts[1].device);
    ASSERT_TRUE(session->Run({}, {}, {three.init->name()}, nullptr).ok());
    saved = three.Values(*session);
    ASSERT_EQ(saved.size(), 10);
    // Parts of one size and seed still differ.
    EXPECT_NE(saved[0], saved[4]);
    const auto made = three.saver->Save(*session, folder, 3);
    ASSERT_TRUE(made.ok()) << made.status();
    path = *made;
  }
  for (const Partitioner& partitioner :
       {FixedSizePartitioner(2), FixedSizePartitioner(1), FixedSizePartitioner(2, 1)}) {
    testing::LocalCluster cluster(1, 2);
    Partitioned other(partitioner, Zeros());
    auto session = other.Open(cluster);
    ASSERT_TRUE(session != nullptr);
    const Status status = other.saver->Restore(*session, path);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(other.Values(*session), saved);
  }
}

TEST(PartitionTest, OnlyRowsCanBeLookedUp) {
  Program program;
  GraphBuilder& b = program.builder();
  const auto parts = program.AddPartitionedVariable("w", DType::kFloat, {4, 4}, Zeros(),
                                                    FixedSizePartitioner(2, 1));
  EmbeddingLookup(b, parts, b.Constant(Tensor::Vector<int32_t>({0})));
  EXPECT_THAT(b.status().message(), HasSubstr("'w' cannot be looked up"));
}

TEST(PlacementTest, RoundRobinTakesTurnsAndGreedyTheLightest) {
  const auto turns = RoundRobinPlacement(2);
  EXPECT_EQ(turns->Place(100), "/job:ps/task:0");
  EXPECT_EQ(turns->Place(1), "/job:ps/task:1");
  EXPECT_EQ(turns->Place(1), "/job:ps/task:0");
  const auto greedy = GreedyPlacement(3, "store");
  EXPECT_EQ(greedy->Place(100), "/job:store/task:0");
  EXPECT_EQ(greedy->Place(40), "/job:store/task:1");
  EXPECT_EQ(greedy->Place(30), "/job:store/task:2");
  EXPECT_EQ(greedy->Place(30), "/job:store/task:2");
  EXPECT_EQ(greedy->Place(30), "/job:store/task:1");
  // Variables of no size do not pile up on one task.
  const auto empty = GreedyPlacement(2);
  EXPECT_EQ(empty->Place(0), "/job:ps/task:0");
  EXPECT_EQ(empty->Place(0), "/job:ps/task:1");
}

}  // namespace
}  // namespace weft::train
