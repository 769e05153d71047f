// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/tfrecord.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/crc32c.h"
#include "base/faulty_files.h"
#include "base/memory_files.h"
#include "weft/storage/coding.h"

namespace weft::storage {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

Status WriteRecords(FileSystem& files, const std::string& path,
                    const std::vector<std::string>& records, Compression compression) {
  WEFT_ASSIGN_OR_RETURN(auto writer, RecordWriter::Create(files, path, compression));
  for (const std::string& record : records) WEFT_RETURN_IF_ERROR(writer->Write(record));
  return writer->Close();
}

// All records up to the end or the first error, which `status` receives.
std::vector<std::string> ReadRecords(FileSystem& files, const std::string& path,
                                     Compression compression, Status* status,
                                     size_t buffer_bytes = 256 << 10) {
  std::vector<std::string> records;
  StatusOr<std::unique_ptr<RecordReader>> reader =
      RecordReader::Open(files, path, compression, buffer_bytes);
  *status = reader.status();
  std::string record;
  while (status->ok()) {
    StatusOr<bool> more = (*reader)->Next(&record);
    *status = more.status();
    if (!more.ok() || !*more) break;
    records.push_back(record);
  }
  return records;
}

const Compression kAll[] = {Compression::kNone, Compression::kZlib, Compression::kGzip};

std::vector<std::string> Samples() {
  std::string noise;
  for (uint32_t i = 0, x = 1; i < 300000; ++i, x = x * 1664525u + 1013904223u)
    noise += static_cast<char>(x >> 24);
  return {"first", "", std::string("\0\xff\n", 3), noise, std::string(9 << 20, 'z'), "last"};
}

TEST(TfrecordTest, RoundTripsUnderEveryCompressionAndBufferSize) {
  MemoryFileSystem files;
  const std::vector<std::string> samples = Samples();
  for (Compression compression : kAll) {
    ASSERT_TRUE(WriteRecords(files, "r", samples, compression).ok());
    for (size_t buffer : {1, 7, 4096, 1 << 20}) {
      if (buffer < 100 && compression == Compression::kNone) continue;
      Status status;
      EXPECT_THAT(ReadRecords(files, "r", compression, &status, buffer), ElementsAreArray(samples));
      EXPECT_TRUE(status.ok()) << status;
    }
  }
  Status status;
  ASSERT_TRUE(WriteRecords(files, "small", {"a", "", "bcd"}, Compression::kNone).ok());
  EXPECT_THAT(ReadRecords(files, "small", Compression::kNone, &status, 1),
              ElementsAreArray({"a", "", "bcd"}));
}

TEST(TfrecordTest, HasTheBytesOfTheFormat) {
  MemoryFileSystem files;
  ASSERT_TRUE(WriteRecords(files, "r", {"abc"}, Compression::kNone).ok());
  std::string expected;
  AppendFixed64(3, &expected);
  AppendFixed32(MaskCrc32c(Crc32c(expected)), &expected);
  expected += "abc";
  AppendFixed32(MaskCrc32c(Crc32c("abc")), &expected);
  EXPECT_EQ(ReadFile(files, "r").value(), expected);
}

TEST(TfrecordTest, EmptyFilesHaveNoRecords) {
  MemoryFileSystem files;
  for (Compression compression : kAll) {
    ASSERT_TRUE(WriteRecords(files, "r", {}, compression).ok());
    Status status;
    EXPECT_TRUE(ReadRecords(files, "r", compression, &status).empty());
    EXPECT_TRUE(status.ok()) << status;
    ASSERT_TRUE(WriteFile(files, "r", "").ok());
    EXPECT_TRUE(ReadRecords(files, "r", compression, &status).empty());
    EXPECT_TRUE(status.ok()) << status;
  }
  Status status;
  ReadRecords(files, "absent", Compression::kNone, &status);
  EXPECT_TRUE(absl::IsNotFound(status));
}

// A cut at a boundary may hide what follows; nothing else goes unseen or changes what is read, but
// for bits of compressed streams that mean nothing.
TEST(TfrecordTest, EveryCutAndEveryFlippedBitIsSeen) {
  MemoryFileSystem files;
  const std::vector<std::string> samples = {"first", "", "some more bytes", "last"};
  const std::vector<size_t> boundaries = {0, 21, 37, 68, 88};
  for (Compression compression : kAll) {
    ASSERT_TRUE(WriteRecords(files, "r", samples, compression).ok());
    const std::string good = ReadFile(files, "r").value();
    const auto check = [&](const std::string& bytes, bool may_be_shorter) {
      ASSERT_TRUE(WriteFile(files, "bad", bytes).ok());
      Status status;
      const std::vector<std::string> got = ReadRecords(files, "bad", compression, &status);
      ASSERT_LE(got.size(), samples.size());
      for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], samples[i]);
      if (status.ok()) {
        EXPECT_TRUE(may_be_shorter || got.size() == samples.size());
      } else {
        EXPECT_TRUE(absl::IsDataLoss(status)) << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr("bad"));
      }
    };
    for (size_t size = 0; size < good.size(); ++size) {
      const bool boundary = std::count(boundaries.begin(), boundaries.end(), size) > 0;
      check(good.substr(0, size), compression == Compression::kNone ? boundary : size == 0);
    }
    for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
      std::string bytes = good;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
      check(bytes, false);
    }
  }
}

TEST(TfrecordTest, ErrorsTellTheOffset) {
  MemoryFileSystem files;
  ASSERT_TRUE(WriteRecords(files, "r", {"first", "second"}, Compression::kNone).ok());
  std::string bytes = ReadFile(files, "r").value();
  bytes[21 + 12] ^= 1;
  ASSERT_TRUE(WriteFile(files, "r", bytes).ok());
  Status status;
  EXPECT_EQ(ReadRecords(files, "r", Compression::kNone, &status).size(), 1u);
  EXPECT_EQ(status.message(), "Corrupted record (bad checksum of the data) at offset 21 of file r");
}

TEST(TfrecordTest, AHugeLengthWithAGoodChecksumTakesNoMemory) {
  MemoryFileSystem files;
  for (const uint64_t length : {uint64_t{1} << 50, UINT64_MAX, uint64_t{INT64_MAX}}) {
    std::string bytes;
    AppendFixed64(length, &bytes);
    AppendFixed32(MaskCrc32c(Crc32c(bytes)), &bytes);
    bytes += "few bytes";
    ASSERT_TRUE(WriteFile(files, "r", bytes).ok());
    Status status;
    EXPECT_TRUE(ReadRecords(files, "r", Compression::kNone, &status).empty());
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  }
}

TEST(TfrecordTest, AGrowingFileCanBeFollowed) {
  MemoryFileSystem files;
  ASSERT_TRUE(WriteRecords(files, "r", {"first", "second"}, Compression::kNone).ok());
  const std::string bytes = ReadFile(files, "r").value();
  ASSERT_TRUE(WriteFile(files, "r", bytes.substr(0, 30)).ok());
  auto reader = RecordReader::Open(files, "r").value();
  std::string record;
  EXPECT_TRUE(reader->Next(&record).value());
  const uint64_t offset = reader->offset();
  EXPECT_TRUE(absl::IsDataLoss(reader->Next(&record).status()));
  EXPECT_TRUE(reader->cut_short());
  ASSERT_TRUE(WriteFile(files, "r", bytes).ok());
  ASSERT_TRUE(reader->Seek(offset).ok());
  EXPECT_TRUE(reader->Next(&record).value());
  EXPECT_EQ(record, "second");
  EXPECT_FALSE(reader->Next(&record).value());
  ASSERT_TRUE(reader->Seek(0).ok());
  EXPECT_TRUE(reader->Next(&record).value());
  EXPECT_EQ(record, "first");
}

TEST(TfrecordTest, SeveralGzipMembersAreOneStream) {
  MemoryFileSystem files;
  ASSERT_TRUE(WriteRecords(files, "a", {"first"}, Compression::kGzip).ok());
  ASSERT_TRUE(WriteRecords(files, "b", {"second"}, Compression::kGzip).ok());
  ASSERT_TRUE(
      WriteFile(files, "r", ReadFile(files, "a").value() + ReadFile(files, "b").value()).ok());
  Status status;
  EXPECT_THAT(ReadRecords(files, "r", Compression::kGzip, &status),
              ElementsAreArray({"first", "second"}));
  EXPECT_TRUE(status.ok()) << status;
  auto reader = RecordReader::Open(files, "r", Compression::kGzip).value();
  EXPECT_TRUE(absl::IsUnimplemented(reader->Seek(21)));
}

TEST(TfrecordTest, FlushShowsWhatIsThere) {
  MemoryFileSystem files;
  for (Compression compression : kAll) {
    auto writer = RecordWriter::Create(files, "r", compression).value();
    ASSERT_TRUE(writer->Write("first").ok());
    EXPECT_EQ(files.Stat("r").value().size_bytes, 0u);
    ASSERT_TRUE(writer->Flush().ok());
    auto reader = RecordReader::Open(files, "r", compression).value();
    std::string record;
    EXPECT_TRUE(reader->Next(&record).value());
    EXPECT_EQ(record, "first");
    ASSERT_TRUE(writer->Close().ok());
  }
}

TEST(TfrecordTest, AFullDiskIsTold) {
  const std::vector<std::string> samples = {"first", std::string(1000, 'x'), "last"};
  for (Compression compression : kAll) {
    MemoryFileSystem memory;
    ASSERT_TRUE(WriteRecords(memory, "r", samples, compression).ok());
    const auto size = static_cast<int64_t>(memory.Stat("r").value().size_bytes);
    for (int64_t room = 0; room < size; ++room) {
      FaultyFileSystem files(&memory);
      files.LimitBytes(room);
      EXPECT_TRUE(absl::IsResourceExhausted(WriteRecords(files, "full", samples, compression)));
    }
  }
}

TEST(TfrecordTest, CompressionNames) {
  EXPECT_EQ(CompressionFromName("").value(), Compression::kNone);
  EXPECT_EQ(CompressionFromName("ZLIB").value(), Compression::kZlib);
  EXPECT_EQ(CompressionFromName("GZIP").value(), Compression::kGzip);
  EXPECT_FALSE(CompressionFromName("LZ4").ok());
}

}  // namespace
}  // namespace weft::storage
