// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/event_file.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/faulty_files.h"
#include "base/memory_files.h"
#include "proto/tensorflow/event.pb.h"
#include "weft/storage/summary.h"

namespace weft::storage {
namespace {

using ::testing::HasSubstr;

TEST(EventFileTest, WritesHeaderSummariesAndGraph) {
  MemoryFileSystem files;
  FakeClock clock(absl::FromUnixSeconds(1700000000));
  auto writer = EventFileWriter::Create(files, clock, "logs/run", {.suffix = ".v2"}).value();
  EXPECT_THAT(writer->path(), HasSubstr("logs/run/events.out.tfevents.1700000000."));
  EXPECT_THAT(writer->path(), HasSubstr(".v2"));
  clock.Advance(absl::Milliseconds(2500));
  ASSERT_TRUE(writer->WriteSummary(7, ScalarSummary("loss", 0.5f)).ok());
  ASSERT_TRUE(writer->WriteGraph("graph bytes").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(writer->WriteSummary(8, "\xff not a summary")));
  ASSERT_TRUE(writer->Close().ok());
  ASSERT_TRUE(writer->Close().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(writer->WriteGraph("late")));

  auto reader = EventFileReader::Open(files, writer->path()).value();
  tensorflow::Event event;
  ASSERT_TRUE(reader->Next(&event).value());
  EXPECT_EQ(event.file_version(), "brain.Event:2");
  EXPECT_EQ(event.wall_time(), 1700000000);
  ASSERT_TRUE(reader->Next(&event).value());
  EXPECT_EQ(event.step(), 7);
  EXPECT_EQ(event.wall_time(), 1700000002.5);
  EXPECT_EQ(event.summary().value(0).tag(), "loss");
  EXPECT_EQ(event.summary().value(0).simple_value(), 0.5f);
  ASSERT_TRUE(reader->Next(&event).value());
  EXPECT_EQ(event.graph_def(), "graph bytes");
  EXPECT_FALSE(reader->Next(&event).value());
}

TEST(EventFileTest, TwoWritersOfOneSecondGetTwoFiles) {
  MemoryFileSystem files;
  FakeClock clock;
  auto first = EventFileWriter::Create(files, clock, "logs", {}).value();
  auto second = EventFileWriter::Create(files, clock, "logs", {}).value();
  EXPECT_NE(first->path(), second->path());
}

TEST(EventFileTest, FlushesWhenDueAndReadersFollow) {
  MemoryFileSystem files;
  FakeClock clock;
  auto writer =
      EventFileWriter::Create(files, clock, "logs", {.flush_every = absl::Seconds(10)}).value();
  auto reader = EventFileReader::Open(files, writer->path()).value();
  tensorflow::Event event;
  EXPECT_TRUE(reader->Next(&event).value());
  ASSERT_TRUE(writer->WriteSummary(1, "").ok());
  EXPECT_FALSE(reader->Next(&event).value());
  clock.Advance(absl::Seconds(10));
  ASSERT_TRUE(writer->WriteSummary(2, "").ok());
  EXPECT_TRUE(reader->Next(&event).value());
  EXPECT_TRUE(reader->Next(&event).value());
  EXPECT_EQ(event.step(), 2);
}

TEST(EventFileTest, HalfARecordIsNotYetARecord) {
  MemoryFileSystem files;
  FakeClock clock;
  std::string path;
  {
    auto writer = EventFileWriter::Create(files, clock, "logs", {}).value();
    path = writer->path();
    ASSERT_TRUE(writer->WriteSummary(1, ScalarSummary("x", 1)).ok());
  }
  const std::string bytes = ReadFile(files, path).value();
  ASSERT_TRUE(WriteFile(files, path, bytes.substr(0, bytes.size() - 3)).ok());
  auto reader = EventFileReader::Open(files, path).value();
  tensorflow::Event event;
  EXPECT_TRUE(reader->Next(&event).value());
  EXPECT_FALSE(reader->Next(&event).value());
  ASSERT_TRUE(WriteFile(files, path, bytes).ok());
  EXPECT_TRUE(reader->Next(&event).value());
  EXPECT_EQ(event.step(), 1);
  std::string bad = bytes;
  bad[bad.size() - 8] ^= 1;
  ASSERT_TRUE(WriteFile(files, path, bad).ok());
  reader = EventFileReader::Open(files, path).value();
  EXPECT_TRUE(reader->Next(&event).value());
  EXPECT_TRUE(absl::IsDataLoss(reader->Next(&event).status()));
}

TEST(EventFileTest, AFullDiskIsTold) {
  MemoryFileSystem memory;
  FaultyFileSystem files(&memory);
  FakeClock clock;
  auto writer = EventFileWriter::Create(files, clock, "logs", {}).value();
  files.LimitBytes(10);
  ASSERT_TRUE(writer->WriteSummary(1, ScalarSummary("x", 1)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(writer->Flush()));
  EXPECT_TRUE(absl::IsResourceExhausted(writer->WriteGraph("more")));
  EXPECT_TRUE(absl::IsResourceExhausted(writer->Close()));
}

}  // namespace
}  // namespace weft::storage
