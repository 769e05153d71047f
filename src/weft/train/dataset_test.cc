// SPDX-License-Identifier: Apache-2.0
#include "weft/train/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/memory_files.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/graph/import.h"
#include "weft/ops/catalogue.h"
#include "weft/session/direct_session.h"
#include "weft/train/saver.h"

namespace weft::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Bodies = std::vector<Endpoint>;
using Arguments = absl::Span<const Endpoint>;

// A program whose pipelines run on a disk in memory.
class DatasetTest : public ::testing::Test {
 protected:
  std::unique_ptr<session::Session> Start() {
    session::DirectOptions options{
        .catalogue = &StandardCatalogue(), .devices = &StandardDevices(), .num_threads = 2};
    options.files = &disk_;
    auto session = session::NewDirectSession(options);
    EXPECT_TRUE(session.ok()) << session.status();
    const Status extended = (*session)->Extend(ExportGraph(program_.graph()));
    EXPECT_TRUE(extended.ok()) << extended;
    return *std::move(session);
  }
  // The next element's first component as text, or the code of the error.
  std::string Next(session::Session& session, const DatasetIterator& iterator) {
    std::vector<Tensor> values;
    const Status status = session.Run({}, {NameOf(iterator.next[0])}, {}, &values);
    return status.ok() ? values[0].ToString() : absl::StatusCodeToString(status.code());
  }
  // All elements' first components as text; the message of the error where one ends them.
  std::vector<std::string> All(const Dataset& dataset) {
    const DatasetIterator iterator = AddIterator(program_, dataset, "all");
    if (!program_.status().ok()) return {std::string(program_.status().message())};
    const std::unique_ptr<session::Session> session = Start();
    const Status begun = session->Run({}, {}, {iterator.initializer->name()}, nullptr);
    if (!begun.ok()) return {std::string(begun.message())};
    std::vector<std::string> elements;
    while (elements.size() < 100) {
      elements.push_back(Next(*session, iterator));
      if (elements.back() == "OUT_OF_RANGE") {
        elements.pop_back();
        break;
      }
    }
    return elements;
  }
  static Bodies Double(GraphBuilder& b, Arguments x) { return {b.Op("AddV2", {x[0], x[0]})}; }
  Dataset Range(int64_t stop) { return Dataset::Range(b_, 0, stop); }

  MemoryFileSystem disk_;
  Program program_;
  GraphBuilder& b_ = program_.builder();
};

TEST_F(DatasetTest, MapsFiltersAndBatches) {
  const Dataset odd = Range(10).Filter([](GraphBuilder& b, Arguments x) {
    return Bodies{
        b.Op("Equal", {b.Op("FloorMod", {x[0], b.Scalar<int64_t>(2)}), b.Scalar<int64_t>(1)})};
  });
  const Dataset batches = odd.Map(Double).Batch(2);
  EXPECT_EQ(batches.types()[0].shape.ToString(), "[?]");
  EXPECT_THAT(All(batches), ElementsAre("int64 [2] [2 6]", "int64 [2] [10 14]", "int64 [1] [18]"));
}

TEST_F(DatasetTest, ComputesSeveralAtOnceInOrder) {
  MapOptions options{.parallel_calls = 4};
  options.captured = {b_.Scalar<int64_t>(100)};
  const Dataset sums = Range(4).Map(
      [](GraphBuilder& b, Arguments x) {
        return Bodies{b.Op("AddV2", {x[0], x[1]}), b.Op("AsString", {x[0]})};
      },
      options);
  EXPECT_EQ(sums.types()[1].dtype, DType::kString);
  EXPECT_THAT(All(sums.Prefetch(2).Batch(4, /*drop_remainder=*/true)),
              ElementsAre("int64 [4] [100 101 102 103]"));
}

// Short calls run in groups that grow; what they give is what one at a time gives, with the errors
// of single elements in their places.
TEST_F(DatasetTest, GroupsOfCallsGiveWhatSingleOnesGive) {
  const FunctionBody with_holes = [](GraphBuilder& b, Arguments x) {
    const Endpoint hole = b.Op("FloorMod", {x[0], b.Scalar<int64_t>(250)});
    return Bodies{b.Op("AddV2", {b.Op("FloorDiv", {b.Scalar<int64_t>(7), hole}), x[0]})};
  };
  // An op that ends on a thread of its own.
  const FunctionBody apart = [](GraphBuilder& b, Arguments x) {
    Node* one = b.AddNode("DatasetToSingleElement", {Dataset::Tensors(b, {x[0]}).variant()},
                          {{"output_types", AttrValue::TypeList{DType::kInt64}},
                           {"output_shapes", AttrValue::ShapeList{PartialShape(Shape())}}});
    return one == nullptr ? Bodies{} : Bodies{{one, 0}};
  };
  const auto mapped = [&](const FunctionBody& body, int calls) {
    const Dataset dataset = Range(900).Map(body, {.parallel_calls = calls});
    return AddIterator(program_, dataset, absl::StrCat("of", calls));
  };
  for (const FunctionBody& body : {with_holes, apart}) {
    const DatasetIterator one = mapped(body, 1), three = mapped(body, 3);
    ASSERT_TRUE(program_.status().ok()) << program_.status();
    const std::unique_ptr<session::Session> session = Start();
    const Status begun =
        session->Run({}, {}, {one.initializer->name(), three.initializer->name()}, nullptr);
    ASSERT_TRUE(begun.ok()) << begun;
    std::string expected, got;
    int count = 0;
    do {
      expected = Next(*session, one);
      got = Next(*session, three);
      ASSERT_EQ(got, expected) << "element " << count;
      ++count;
    } while (expected != "OUT_OF_RANGE");
    EXPECT_EQ(count, 901);
  }
}

TEST_F(DatasetTest, RepeatsTakesSkipsShardsAndConcatenates) {
  const Dataset cached = Range(5).Cache().Repeat(2).Skip(1).Take(7).Shard(3, 1);
  EXPECT_THAT(All(cached.Concatenate(Range(1)).Batch(9)), ElementsAre("int64 [3] [2 0 0]"));
}

TEST_F(DatasetTest, ShufflesByItsSeeds) {
  const Dataset shuffled = Range(8).Shuffle(8, {.seed = 5, .seed2 = 7});
  const std::vector<std::string> order = All(shuffled.Batch(8));
  EXPECT_THAT(All(shuffled.Batch(8)), ElementsAre(order[0]));
  EXPECT_NE(order[0], "int64 [8] [0 1 2 3 4 5 6 7]");
}

TEST_F(DatasetTest, PadsToTheLongest) {
  const Dataset rows = Range(3).Map([](GraphBuilder& b, Arguments x) {
    const Endpoint length = b.Op("Reshape", {x[0], b.Constant(Tensor::Vector<int32_t>({1}))});
    return Bodies{b.Op("Fill", {length, x[0]}, {{"index_type", DType::kInt64}})};
  });
  EXPECT_THAT(All(rows.PaddedBatch(3)), ElementsAre("int64 [3,2] [0 0 1 0 2 2]"));
  PadOptions wider{.shapes = {PartialShape{3}}, .values = {b_.Scalar<int64_t>(-1)}};
  EXPECT_THAT(All(rows.PaddedBatch(2, wider)),
              ElementsAre("int64 [2,3] [-1 -1 -1 1 -1 -1]", "int64 [1,3] [2 2 -1]"));
}

TEST_F(DatasetTest, SlicesZipsAndUnbatches) {
  const Endpoint table =
      b_.Constant(Tensor::FromSpan<float>(Shape{2, 2}, std::vector<float>{1, 2, 3, 4}));
  const Dataset rows = Dataset::Slices(b_, {table});
  EXPECT_EQ(rows.types()[0].shape.ToString(), "[2]");
  const Dataset both = Dataset::Zip({rows.Unbatch(), Range(3)});
  EXPECT_EQ(both.types().size(), 2u);
  EXPECT_THAT(All(both.Batch(5)), ElementsAre("float [3] [1 2 3]"));
  EXPECT_THAT(All(Dataset::Tensors(b_, {table})), ElementsAre("float [2,2] [1 2 3 4]"));
}

TEST_F(DatasetTest, ReadsFilesInTurn) {
  ASSERT_TRUE(disk_.MakeDirectories("/data").ok());
  ASSERT_TRUE(WriteFile(disk_, "/data/a.txt", "a1\na2\n").ok());
  ASSERT_TRUE(WriteFile(disk_, "/data/b.txt", "b1\nb2\n").ok());
  const Dataset::Body lines = [](GraphBuilder& b, Arguments path) {
    return Dataset::Lines(b, path[0]);
  };
  const Dataset files = Dataset::Files(b_, {"/data/*.txt"});
  EXPECT_THAT(All(files.Interleave(lines, {.cycle_length = 2}).Batch(9)),
              ElementsAre(R"(string [4] ["a1" "b1" "a2" "b2"])"));
  EXPECT_THAT(All(files.Interleave(lines, {.cycle_length = 2, .parallel_calls = 2}).Batch(9)),
              ElementsAre(R"(string [4] ["a1" "b1" "a2" "b2"])"));
  EXPECT_THAT(All(files.FlatMap(lines).Batch(9)),
              ElementsAre(R"(string [4] ["a1" "a2" "b1" "b2"])"));
  const Endpoint path = b_.Scalar<std::string>("/data/a.txt");
  EXPECT_THAT(All(Dataset::FixedRecords(b_, path, 3, {.footer_bytes = 3}).Batch(9)),
              ElementsAre(R"(string [1] ["a1\n"])"));
}

TEST_F(DatasetTest, MistakesAreErrorsOfTheProgram) {
  const auto error = [this](const Dataset& dataset) {
    AddIterator(program_, dataset);
    return std::string(program_.status().message());
  };
  EXPECT_THAT(error(Range(3).Filter(Double)), HasSubstr("one boolean"));
}

TEST_F(DatasetTest, DatasetsOfOtherTypesDoNotGoTogether) {
  const Dataset text =
      Range(3).Map([](GraphBuilder& b, Arguments x) { return Bodies{b.Op("AsString", {x[0]})}; });
  EXPECT_FALSE(Range(3).Concatenate(text).variant());
  EXPECT_THAT(std::string(program_.status().message()), HasSubstr("other types"));
  EXPECT_THAT(All(Dataset()), ElementsAre(HasSubstr("other types")));
}

TEST_F(DatasetTest, AnIteratorGoesOnFromACheckpoint) {
  const Dataset shuffled = Range(6).Shuffle(6).Map(Double, {.parallel_calls = 2}).Prefetch(2);
  const DatasetIterator iterator = AddIterator(program_, shuffled.Repeat());
  const Variable w = program_.AddVariable("w", DType::kFloat, Shape(), Ones());
  auto saver = Saver::Create(program_, {.files = &disk_});
  ASSERT_TRUE(saver.ok()) << saver.status();
  Node* init = program_.InitializeVariables();
  const std::unique_ptr<session::Session> first = Start();
  ASSERT_TRUE(first->Run({}, {}, {init->name()}, nullptr).ok());
  for (int i = 0; i < 8; ++i) Next(*first, iterator);
  const auto path = (*saver)->Save(*first, "/model", 1);
  ASSERT_TRUE(path.ok()) << path.status();
  std::vector<std::string> expected;
  for (int i = 0; i < 4; ++i) expected.push_back(Next(*first, iterator));

  const std::unique_ptr<session::Session> second = Start();
  const Status restored = (*saver)->Restore(*second, *path);
  ASSERT_TRUE(restored.ok()) << restored;
  for (const std::string& element : expected) EXPECT_EQ(Next(*second, iterator), element);
}

TEST_F(DatasetTest, ACheckpointWithoutIteratorsLetsThemBegin) {
  const Variable w = program_.AddVariable("w", DType::kFloat, Shape(), Ones());
  auto before = Saver::Create(program_, {.files = &disk_});
  const DatasetIterator iterator = AddIterator(program_, Range(3));
  auto after = Saver::Create(program_, {.files = &disk_});
  ASSERT_TRUE(before.ok() && after.ok());
  Node* init = program_.InitializeVariables();
  const std::unique_ptr<session::Session> session = Start();
  ASSERT_TRUE(session->Run({}, {}, {init->name()}, nullptr).ok());
  const auto path = (*before)->Save(*session, "/model", 1);
  ASSERT_TRUE(path.ok()) << path.status();
  Next(*session, iterator);
  ASSERT_TRUE((*after)->Restore(*session, *path).ok());
  EXPECT_EQ(Next(*session, iterator), "int64 [] [0]");
}

TEST_F(DatasetTest, EachStepTakesOneElement) {
  const DatasetIterator iterator =
      AddIterator(program_, Dataset::Zip({Range(9), Range(9).Map(Double)}), "pairs");
  Node* init = program_.InitializeVariables();
  const std::unique_ptr<session::Session> session = Start();
  EXPECT_EQ(Next(*session, iterator), "FAILED_PRECONDITION");
  ASSERT_TRUE(session->Run({}, {}, {init->name()}, nullptr).ok());
  for (int64_t i = 0; i < 3; ++i) {
    std::vector<Tensor> values;
    ASSERT_TRUE(
        session->Run({}, {NameOf(iterator.next[0]), NameOf(iterator.next[1])}, {}, &values).ok());
    EXPECT_EQ(values[0].scalar<int64_t>(), i);
    EXPECT_EQ(values[1].scalar<int64_t>(), 2 * i);
  }
}

}  // namespace
}  // namespace weft::train
