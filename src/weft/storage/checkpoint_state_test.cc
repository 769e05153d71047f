// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/checkpoint_state.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/memory_files.h"

namespace weft::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CheckpointStateTest, RoundTripsWithRelativePaths) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeDirectories("/train").ok());
  CheckpointState state;
  state.model_checkpoint_path = "/train/model.ckpt-20";
  state.all_model_checkpoint_paths = {"/elsewhere/model-10", "/train/model.ckpt-20"};
  state.all_model_checkpoint_timestamps = {1.25, 2.5};
  state.last_preserved_timestamp = 1;
  ASSERT_TRUE(WriteCheckpointState(files, "/train", state).ok());
  EXPECT_EQ(ReadFile(files, "/train/checkpoint").value(),
            "model_checkpoint_path: \"model.ckpt-20\"\n"
            "all_model_checkpoint_paths: \"/elsewhere/model-10\"\n"
            "all_model_checkpoint_paths: \"model.ckpt-20\"\n"
            "all_model_checkpoint_timestamps: 1.25\n"
            "all_model_checkpoint_timestamps: 2.5\n"
            "last_preserved_timestamp: 1\n");
  const CheckpointState back = ReadCheckpointState(files, "/train").value();
  EXPECT_EQ(back.model_checkpoint_path, state.model_checkpoint_path);
  EXPECT_EQ(back.all_model_checkpoint_paths, state.all_model_checkpoint_paths);
  EXPECT_THAT(back.all_model_checkpoint_timestamps, ElementsAre(1.25, 2.5));
  EXPECT_EQ(back.last_preserved_timestamp, 1);
  state.all_model_checkpoint_timestamps = {1};
  EXPECT_TRUE(absl::IsInvalidArgument(WriteCheckpointState(files, "/train", state)));
}

TEST(CheckpointStateTest, OnlyPathsUnderTheFolderBecomeRelative) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeDirectories("/train").ok());
  CheckpointState state;
  state.model_checkpoint_path = "/training/model";
  ASSERT_TRUE(WriteCheckpointState(files, "/train", state).ok());
  EXPECT_EQ(ReadCheckpointState(files, "/train").value().model_checkpoint_path, "/training/model");
}

TEST(CheckpointStateTest, MalformedAndMissingFiles) {
  MemoryFileSystem files;
  EXPECT_TRUE(absl::IsNotFound(ReadCheckpointState(files, "d").status()));
  ASSERT_TRUE(files.MakeDirectories("d").ok());
  ASSERT_TRUE(
      WriteFile(files, "d/checkpoint", "model_checkpoint_path: \"m\"\nnew_field: 3\n").ok());
  EXPECT_EQ(ReadCheckpointState(files, "d").value().model_checkpoint_path, "d/m");
  for (const char* text : {"model_checkpoint_path", "{", "model_checkpoint_path: 3", "\xff\xfe"}) {
    ASSERT_TRUE(WriteFile(files, "d/checkpoint", text).ok());
    const Status status = ReadCheckpointState(files, "d").status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("d/checkpoint"));
  }
}

TEST(CheckpointStateTest, LatestCheckpointMustBeThere) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeDirectories("d").ok());
  CheckpointState state;
  ASSERT_TRUE(WriteCheckpointState(files, "d", state).ok());
  EXPECT_TRUE(absl::IsNotFound(LatestCheckpoint(files, "d").status()));
  state.model_checkpoint_path = "d/model-3";
  ASSERT_TRUE(WriteCheckpointState(files, "d", state).ok());
  EXPECT_TRUE(absl::IsNotFound(LatestCheckpoint(files, "d").status()));
  ASSERT_TRUE(WriteFile(files, "d/model-3.index", "").ok());
  EXPECT_EQ(LatestCheckpoint(files, "d").value(), "d/model-3");
}

}  // namespace
}  // namespace weft::storage
