// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/bundle_merge.h"

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/faulty_files.h"
#include "base/memory_files.h"
#include "weft/storage/tensor_bundle.h"

namespace weft::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Part(int i, int n) { return absl::StrFormat("save_temp/part-%05d-of-%05d", i, n); }

// `n` parts, each with a tensor of its own and a row of one that they share.
std::vector<std::string> WriteParts(FileSystem& files, int n) {
  std::vector<std::string> prefixes;
  for (int i = 0; i < n; ++i) {
    prefixes.push_back(Part(i, n));
    auto writer = BundleWriter::Create(files, prefixes.back()).value();
    EXPECT_TRUE(writer->Add(absl::StrCat("w", i), Tensor::Scalar<int32_t>(i)).ok());
    const TensorSlice row = TensorSlice::Parse(absl::StrCat(i, ",1")).value();
    EXPECT_TRUE(writer->AddSlice("shared", {n}, row, Tensor::Vector<int32_t>({10 * i})).ok());
    EXPECT_TRUE(writer->Finish().ok());
  }
  return prefixes;
}

TEST(BundleMergeTest, PartsBecomeShardsOfOneCheckpoint) {
  MemoryFileSystem files;
  const std::vector<std::string> prefixes = WriteParts(files, 3);
  ASSERT_TRUE(MergeBundles(files, prefixes, "out/model").ok());
  EXPECT_THAT(files.List("out").value(),
              ElementsAre("model.data-00000-of-00003", "model.data-00001-of-00003",
                          "model.data-00002-of-00003", "model.index"));
  EXPECT_TRUE(absl::IsNotFound(files.Stat("save_temp").status()));
  const auto reader = BundleReader::Open(files, "out/model").value();
  EXPECT_EQ(reader->num_shards(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(reader->Read(absl::StrCat("w", i)).value().scalar<int32_t>(), i);
  }
  EXPECT_THAT(reader->Read("shared").value().span<int32_t>(), ElementsAre(0, 10, 20));
}

TEST(BundleMergeTest, OldFoldersStayWhenAskedOrNotEmpty) {
  MemoryFileSystem files;
  std::vector<std::string> prefixes = WriteParts(files, 2);
  ASSERT_TRUE(MergeBundles(files, prefixes, "a", {.delete_old_dirs = false}).ok());
  EXPECT_TRUE(files.List("save_temp").value().empty());
  prefixes = WriteParts(files, 2);
  ASSERT_TRUE(WriteFile(files, "save_temp/precious", "x").ok());
  ASSERT_TRUE(MergeBundles(files, prefixes, "b").ok());
  EXPECT_THAT(files.List("save_temp").value(), ElementsAre("precious"));
  ASSERT_TRUE(MergeBundles(files, {"b"}, "c").ok());
  EXPECT_EQ(BundleReader::Open(files, "c").value()->num_shards(), 2);
}

TEST(BundleMergeTest, NothingMovesUnlessAllInputIsGood) {
  MemoryFileSystem files;
  const std::vector<std::string> prefixes = WriteParts(files, 2);
  const auto untouched = [&] {
    return files.Stat(prefixes[0] + ".data-00000-of-00001").ok() && !files.Stat("out.index").ok();
  };
  EXPECT_TRUE(absl::IsNotFound(MergeBundles(files, {prefixes[0], "absent"}, "out")));
  EXPECT_TRUE(untouched());
  EXPECT_FALSE(MergeBundles(files, {prefixes[0], prefixes[0]}, "out").ok());
  EXPECT_FALSE(MergeBundles(files, prefixes, prefixes[0]).ok());
  EXPECT_TRUE(absl::IsNotFound(MergeBundles(files, {}, "out")));
  EXPECT_TRUE(absl::IsNotFound(MergeBundles(files, {"absent"}, "out", {.allow_missing = true})));

  auto writer = BundleWriter::Create(files, "twice").value();
  ASSERT_TRUE(writer->Add("w0", Tensor::Scalar<int32_t>(1)).ok());
  ASSERT_TRUE(writer->Finish().ok());
  const Status twice = MergeBundles(files, {prefixes[0], "twice"}, "out");
  EXPECT_TRUE(absl::IsInvalidArgument(twice));
  EXPECT_THAT(std::string(twice.message()), HasSubstr("'w0'"));
  EXPECT_TRUE(untouched());

  auto other = BundleWriter::Create(files, "other").value();
  const TensorSlice row = TensorSlice::Parse("2,1").value();
  ASSERT_TRUE(other->AddSlice("shared", {5}, row, Tensor::Vector<int32_t>({1})).ok());
  ASSERT_TRUE(other->Finish().ok());
  EXPECT_TRUE(absl::IsInvalidArgument(MergeBundles(files, {prefixes[0], "other"}, "out")));
  ASSERT_TRUE(files.Delete("other.data-00000-of-00001").ok());
  EXPECT_TRUE(absl::IsNotFound(MergeBundles(files, {prefixes[0], "other"}, "out")));
  EXPECT_TRUE(untouched());
  ASSERT_TRUE(WriteFile(files, "other.index", "torn").ok());
  EXPECT_TRUE(absl::IsDataLoss(MergeBundles(files, {prefixes[0], "other"}, "out")));
  EXPECT_TRUE(untouched());

  EXPECT_TRUE(
      MergeBundles(files, {prefixes[0], "absent", prefixes[1]}, "out", {.allow_missing = true})
          .ok());
}

TEST(BundleMergeTest, EveryFailedCallIsToldAndNoBadCheckpointAppears) {
  int64_t calls = 1;
  for (int64_t call = 1; call <= calls; ++call) {
    MemoryFileSystem memory;
    const std::vector<std::string> prefixes = WriteParts(memory, 2);
    FaultyFileSystem files(&memory);
    files.FailCall(call, Unavailable("the disk is away"), /*sticky=*/true);
    const Status status = MergeBundles(files, prefixes, "out");
    const StatusOr<std::unique_ptr<BundleReader>> reader = BundleReader::Open(memory, "out");
    if (!status.ok()) calls = call + 1;
    EXPECT_TRUE(status.ok() || absl::IsUnavailable(status)) << status;
    if (reader.ok()) {
      EXPECT_THAT((*reader)->Read("shared").value().span<int32_t>(), ElementsAre(0, 10));
    } else {
      EXPECT_FALSE(status.ok());
    }
  }
  EXPECT_GT(calls, 10);
}

}  // namespace
}  // namespace weft::storage
