// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/files.h"
#include "base/memory_files.h"
#include "weft/ops/testing/kernel_runner.h"
#include "weft/storage/summary.h"

namespace weft::ops::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::KernelRunner;
using testing::RunOp;
using testing::TestInput;

Tensor Strings(std::initializer_list<std::string> values) {
  return Tensor::Vector<std::string>(values);
}

// Ops on files in memory.
class FileOpTest : public ::testing::Test {
 protected:
  StatusOr<std::vector<Tensor>> On(const char* op, std::vector<TestInput> inputs,
                                   AttrMap attrs = {}) {
    WEFT_ASSIGN_OR_RETURN(auto runner, KernelRunner::Make(op, std::move(inputs), std::move(attrs)));
    runner->environment().files = &files_;
    return runner->Run();
  }
  MemoryFileSystem files_;
};

TEST_F(FileOpTest, WhatIsSavedIsRestoredWholeAndInParts) {
  const Tensor matrix = Tensor::FromSpan<float>(Shape{2, 3}, {1, 2, 3, 4, 5, 6});
  const std::vector<Tensor> tensors = {matrix, Strings({"a", ""}), Tensor::Scalar<int64_t>(7)};
  ASSERT_TRUE(On("SaveV2", {Tensor::Scalar("/dir/model"), Strings({"m", "s", "n"}),
                            Strings({"", "", ""}), tensors})
                  .ok());
  const AttrValue::TypeList types = {DType::kFloat, DType::kString, DType::kInt64, DType::kFloat};
  auto restored = On("RestoreV2",
                     {Tensor::Scalar("/dir/model"), Strings({"m", "s", "n", "m"}),
                      Strings({"", "", "", "2 3 0,2:1,2"})},
                     {{"dtypes", types}});
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_THAT((*restored)[0].span<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT((*restored)[1].span<std::string>(), ElementsAre("a", ""));
  EXPECT_EQ((*restored)[2].scalar<int64_t>(), 7);
  EXPECT_THAT((*restored)[3].span<float>(), ElementsAre(2, 3, 5, 6));
}

TEST_F(FileOpTest, PartsOfAVariableJoinAfterAMerge) {
  const auto save = [&](const char* prefix, const char* slice, float first) {
    return On("SaveV2",
              {Tensor::Scalar(prefix), Strings({"w"}), Strings({slice}),
               std::vector<Tensor>{Tensor::FromSpan<float>(Shape{1, 2}, {first, first + 1})}})
        .status();
  };
  ASSERT_TRUE(save("/tmp/part-0", "2 2 0,1:-", 1).ok());
  ASSERT_TRUE(save("/tmp/part-1", "2 2 1,1:-", 3).ok());
  ASSERT_TRUE(On("MergeV2Checkpoints",
                 {Strings({"/tmp/part-0", "/tmp/part-1"}), Tensor::Scalar("/out/model")})
                  .ok());
  auto restored = On("RestoreV2", {Tensor::Scalar("/out/model"), Strings({"w"}), Strings({""})},
                     {{"dtypes", AttrValue::TypeList{DType::kFloat}}});
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_THAT((*restored)[0].span<float>(), ElementsAre(1, 2, 3, 4));
}

TEST_F(FileOpTest, RestoringSaysWhatIsMissingOrOfAnotherType) {
  const AttrValue::TypeList one = {DType::kFloat};
  const auto restore = [&](const char* prefix, const char* name, AttrValue::TypeList types) {
    return On("RestoreV2", {Tensor::Scalar(prefix), Strings({name}), Strings({""})},
              {{"dtypes", std::move(types)}})
        .status();
  };
  ASSERT_TRUE(On("SaveV2", {Tensor::Scalar("/m"), Strings({"w"}), Strings({""}),
                            std::vector<Tensor>{Tensor::Scalar(1.0f)}})
                  .ok());
  EXPECT_EQ(restore("/nowhere", "w", one).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(restore("/m", "v", one).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(restore("/m", "w", {DType::kInt32}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(On("SaveV2", {Tensor::Scalar("/m"), Strings({"w", "v"}), Strings({""}),
                          std::vector<Tensor>{Tensor::Scalar(1.0f)}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(FileOpTest, FilesAreWrittenReadAndFound) {
  ASSERT_TRUE(On("WriteFile", {Tensor::Scalar("/d/a.txt"), Tensor::Scalar("alpha")}).ok());
  ASSERT_TRUE(On("WriteFile", {Tensor::Scalar("/d/b.txt"), Tensor::Scalar("")}).ok());
  ASSERT_TRUE(On("WriteFile", {Tensor::Scalar("/d/e/c.txt"), Tensor::Scalar("x")}).ok());
  EXPECT_EQ((*On("ReadFile", {Tensor::Scalar("/d/a.txt")}))[0].scalar<std::string>(), "alpha");
  EXPECT_EQ(On("ReadFile", {Tensor::Scalar("/d/z.txt")}).status().code(),
            absl::StatusCode::kNotFound);
  auto found = On("MatchingFiles", {Strings({"/d/?.txt", "/d/*/[c-d].txt", "/x/*"})});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT((*found)[0].span<std::string>(), ElementsAre("/d/a.txt", "/d/b.txt", "/d/e/c.txt"));
}

// A link out of the folder that file ops may use hides itself, not its neighbours.
TEST(FileOps, AGlobPassesOverWhatItMayNotSee) {
  const std::string root = ::testing::TempDir() + "glob_root";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root + "/d/sub");
  std::ofstream(root + "/d/a.txt") << "a";
  std::ofstream(root + "/d/sub/c.txt") << "c";
  std::filesystem::create_symlink("/etc/hostname", root + "/d/b.txt");
  std::filesystem::create_directory_symlink("/etc", root + "/d/etc");
  auto files = RootedFileSystem::Create(root);
  ASSERT_TRUE(files.ok()) << files.status();
  const auto matching = [&](const std::string& pattern) -> StatusOr<std::vector<Tensor>> {
    WEFT_ASSIGN_OR_RETURN(auto runner,
                          KernelRunner::Make("MatchingFiles", {Tensor::Scalar(pattern)}, {}));
    runner->environment().files = files->get();
    return runner->Run();
  };
  const auto found = matching(root + "/d/*.txt");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT((*found)[0].span<std::string>(), ElementsAre(root + "/d/a.txt"));
  const auto deeper = matching(root + "/d/*/*.txt");
  ASSERT_TRUE(deeper.ok()) << deeper.status();
  EXPECT_THAT((*deeper)[0].span<std::string>(), ElementsAre(root + "/d/sub/c.txt"));
  EXPECT_TRUE(absl::IsPermissionDenied(matching(root + "/d/b.txt").status()))
      << "asked for by name";
}

TEST(FileOps, NeedAFileSystem) {
  EXPECT_EQ(RunOp("ReadFile", {Tensor::Scalar("/etc/hostname")}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(SerializeTensorTest, GivesBackWhatItTook) {
  const Tensor tensor = Tensor::FromSpan<double>(Shape{1, 2}, {1.5, -2});
  auto bytes = RunOp("SerializeTensor", {tensor});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  auto back = RunOp("ParseTensor", {(*bytes)[0]}, {{"out_type", DType::kDouble}});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ((*back)[0].shape(), (Shape{1, 2}));
  EXPECT_THAT((*back)[0].span<double>(), ElementsAre(1.5, -2));
  EXPECT_THAT(RunOp("ParseTensor", {(*bytes)[0]}, {{"out_type", DType::kFloat}}).status().message(),
              HasSubstr("Type mismatch"));
  EXPECT_FALSE(
      RunOp("ParseTensor", {Tensor::Scalar("\xff\xff")}, {{"out_type", DType::kFloat}}).ok());
}

std::vector<std::string> StringsOf(const StatusOr<std::vector<Tensor>>& outputs, size_t i = 0) {
  if (!outputs.ok()) return {std::string(outputs.status().message())};
  const auto span = (*outputs)[i].span<std::string>();
  return {span.begin(), span.end()};
}

TEST(StringOps, SplitAtSeparatorsAndSpace) {
  const Tensor text = Strings({" a  b c ", "", "x,y,,z"});
  auto space = RunOp("StringSplitV2", {text, Tensor::Scalar("")});
  EXPECT_THAT(StringsOf(space, 1), ElementsAre("a", "b", "c", "x,y,,z"));
  EXPECT_THAT((*space)[2].span<int64_t>(), ElementsAre(3, 3));
  EXPECT_THAT((*space)[0].span<int64_t>(), ElementsAre(0, 0, 0, 1, 0, 2, 2, 0));
  EXPECT_THAT(StringsOf(RunOp("StringSplitV2", {Strings({"x,y,,z"}), Tensor::Scalar(",")}), 1),
              ElementsAre("x", "y", "", "z"));
  EXPECT_THAT(
      StringsOf(
          RunOp("StringSplitV2", {Strings({"x,y,,z"}), Tensor::Scalar(",")}, {{"maxsplit", 1}}), 1),
      ElementsAre("x", "y,,z"));
  EXPECT_THAT(StringsOf(RunOp("StringSplit", {Strings({"a b;c", "de"}), Tensor::Scalar(" ;")}), 1),
              ElementsAre("a", "b", "c", "de"));
  EXPECT_THAT(StringsOf(RunOp("StringSplit", {Strings({"ab"}), Tensor::Scalar("")}), 1),
              ElementsAre("a", "b"));
  EXPECT_FALSE(RunOp("StringSplit", {Tensor::Scalar("a"), Tensor::Scalar("")}).ok());
}

TEST(StringOps, CutAndMeasure) {
  const Tensor text = Strings({"hello", "d\xc3\xbcnn"});
  EXPECT_THAT((*RunOp("StringLength", {text}))[0].span<int32_t>(), ElementsAre(5, 5));
  EXPECT_THAT((*RunOp("StringLength", {text}, {{"unit", "UTF8_CHAR"}}))[0].span<int32_t>(),
              ElementsAre(5, 4));
  const Tensor one = Tensor::Scalar<int32_t>(1), two = Tensor::Scalar<int32_t>(2);
  EXPECT_THAT(StringsOf(RunOp("Substr", {text, one, two})), ElementsAre("el", "\xc3\xbc"));
  EXPECT_THAT(StringsOf(RunOp("Substr", {text, one, two}, {{"unit", "UTF8_CHAR"}})),
              ElementsAre("el", "\xc3\xbcn"));
  EXPECT_THAT(StringsOf(RunOp("Substr", {text, Tensor::Scalar<int32_t>(-2), two})),
              ElementsAre("lo", "nn"));
  EXPECT_FALSE(RunOp("Substr", {text, Tensor::Scalar<int32_t>(6), two}).ok());
  EXPECT_THAT(StringsOf(RunOp("StringStrip", {Strings({" a b\n"})})), ElementsAre("a b"));
  EXPECT_THAT(StringsOf(RunOp("StringUpper", {Strings({"aB1"})})), ElementsAre("AB1"));
}

TEST(StringOps, Regex) {
  const Tensor text = Strings({"s3://x", "file", "s3://y\nz"});
  EXPECT_THAT((*RunOp("StaticRegexFullMatch", {text}, {{"pattern", "^s3://.*"}}))[0].span<bool>(),
              ElementsAre(true, false, false));
  EXPECT_EQ(RunOp("StaticRegexFullMatch", {text}, {{"pattern", "("}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      StringsOf(RunOp("RegexReplace", {text, Tensor::Scalar("(\\w)\\w"), Tensor::Scalar("\\1")})),
      ElementsAre("s://x", "fl", "s://y\nz"));
  EXPECT_THAT(StringsOf(RunOp("RegexReplace",
                              {Strings({"a"}), Tensor::Scalar("a"), Tensor::Scalar("\\3")})),
              ElementsAre("a"));
}

TEST(StringOps, NumbersToTextAndBack) {
  EXPECT_THAT(StringsOf(RunOp("AsString", {Tensor::Vector<float>({1, -2.5})})),
              ElementsAre("1.000000", "-2.500000"));
  EXPECT_THAT(
      StringsOf(RunOp("AsString", {Tensor::Vector<int64_t>({7})}, {{"width", 4}, {"fill", "0"}})),
      ElementsAre("0007"));
  EXPECT_THAT(StringsOf(RunOp("AsString", {Tensor::Vector<double>({0.25})},
                              {{"scientific", true}, {"precision", 2}})),
              ElementsAre("2.50e-01"));
  EXPECT_THAT(StringsOf(RunOp("AsString", {Tensor::Vector<bool>({true})})), ElementsAre("true"));
  EXPECT_FALSE(RunOp("AsString", {Tensor::Vector<int32_t>({1})}, {{"precision", 2}}).ok());
  EXPECT_FALSE(RunOp("AsString", {Tensor::Vector<float>({1})}, {{"width", 1000000000}}).ok());
  EXPECT_THAT((*RunOp("StringToNumber", {Strings({"1.5", " -2 "})}))[0].span<float>(),
              ElementsAre(1.5, -2));
  EXPECT_THAT(RunOp("StringToNumber", {Strings({"x"})}).status().message(),
              HasSubstr("convert string: x"));
}

TEST(SummaryOps, RefuseWhatTheyCannotShow) {
  const Tensor tag = Tensor::Scalar("tag");
  EXPECT_TRUE(RunOp("HistogramSummary", {tag, Tensor::Vector<float>({1, 2})}).ok());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(RunOp("HistogramSummary", {tag, Tensor::Vector<float>({1, nan})}).status().message(),
              HasSubstr("Nan in summary histogram for: tag"));
  EXPECT_THAT(RunOp("ImageSummary", {tag, Tensor::Vector<float>({1})}).status().message(),
              HasSubstr("Tensor must be 4-D with last dim 1, 3, or 4"));
  EXPECT_TRUE(
      RunOp("ImageSummary", {tag, Tensor::FromSpan<float>(Shape{1, 1, 2, 1}, {nan, -3})}).ok());
  EXPECT_FALSE(RunOp("ImageSummary", {tag, *Tensor::Zeros(DType::kUint8, Shape{1, 0, 2, 1})}).ok());
  EXPECT_THAT(RunOp("AudioSummaryV2", {tag, Tensor::Vector<float>({1}), Tensor::Scalar(1.0f)})
                  .status()
                  .message(),
              HasSubstr("Tensor must be 3-D or 2-D"));
  EXPECT_FALSE(RunOp("AudioSummaryV2",
                     {tag, *Tensor::Zeros(DType::kFloat, Shape{1, 2}), Tensor::Scalar(-1.0f)})
                   .ok());
  EXPECT_FALSE(RunOp("TensorSummaryV2", {tag, Tensor::Scalar(1.0f), Tensor::Scalar("\xff")}).ok());
  EXPECT_FALSE(RunOp("ScalarSummary", {tag, Tensor::Vector<float>({1})}).ok());
}

}  // namespace
}  // namespace weft::ops::io
