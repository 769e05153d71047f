// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/table.h"

#include <map>
#include <vector>

#include <snappy.h>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/crc32c.h"
#include "base/memory_files.h"
#include "weft/storage/coding.h"

namespace weft::storage {
namespace {

using Entries = std::map<std::string, std::string>;

void Write(FileSystem& files, const std::string& path, const Entries& entries,
           size_t block_bytes = TableWriter::kBlockBytes) {
  auto file = files.OpenWrite(path, WriteMode::kTruncate).value();
  auto sink = MakeSink(std::move(file), path, Compression::kNone);
  TableWriter writer(sink.get(), block_bytes);
  for (const auto& [key, value] : entries) ASSERT_TRUE(writer.Add(key, value).ok());
  ASSERT_TRUE(writer.Finish().ok());
  ASSERT_TRUE(sink->Close().ok());
}

StatusOr<Entries> ReadAll(FileSystem& files, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const auto table, Table::Open(files, path));
  Entries entries;
  Table::Iterator it(table.get());
  for (; it.Valid(); it.Next()) entries.emplace(it.key(), it.value());
  WEFT_RETURN_IF_ERROR(it.status());
  return entries;
}

Entries Samples(int count) {
  Entries entries;
  entries[""] = "header";
  for (int i = 0; i < count; ++i) {
    entries[absl::StrFormat("layer_%d/kernel/%05d", i % 7, i)] = std::string(i % 50, 'v');
  }
  entries[std::string("\0\xff", 2)] = "odd";
  return entries;
}

TEST(TableTest, RoundTripsWithOneBlockAndWithMany) {
  MemoryFileSystem files;
  for (size_t block_bytes : {size_t{1}, size_t{300}, TableWriter::kBlockBytes}) {
    const Entries samples = Samples(3000);
    Write(files, "t", samples, block_bytes);
    EXPECT_EQ(ReadAll(files, "t").value(), samples);
    const auto table = Table::Open(files, "t").value();
    for (const auto& [key, value] : samples) {
      ASSERT_EQ(table->Find(key).value(), value);
      ASSERT_FALSE(table->Find(key + "!").value().has_value());
    }
    EXPECT_FALSE(table->Find("zzz").value().has_value());
    Table::Iterator it(table.get());
    it.Seek("layer_3");
    ASSERT_TRUE(it.Valid());
    EXPECT_EQ(it.key(), samples.lower_bound("layer_3")->first);
    it.Seek("zzz");
    EXPECT_FALSE(it.Valid());
    EXPECT_TRUE(it.status().ok());
  }
}

TEST(TableTest, AnEmptyTable) {
  MemoryFileSystem files;
  Write(files, "t", {});
  EXPECT_TRUE(ReadAll(files, "t").value().empty());
  EXPECT_FALSE(Table::Open(files, "t").value()->Find("").value().has_value());
}

TEST(TableTest, KeysMustRise) {
  MemoryFileSystem files;
  auto sink = MakeSink(files.OpenWrite("t", WriteMode::kTruncate).value(), "t", Compression::kNone);
  TableWriter writer(sink.get());
  ASSERT_TRUE(writer.Add("", "1").ok());
  ASSERT_TRUE(writer.Add("b", "1").ok());
  EXPECT_FALSE(writer.Add("b", "2").ok());
  EXPECT_FALSE(writer.Add("a", "2").ok());
}

TEST(TableTest, EveryCutIsSeenAndNoFlippedBitChangesAnything) {
  MemoryFileSystem files;
  const Entries samples = Samples(40);
  Write(files, "t", samples, 400);
  const std::string good = ReadFile(files, "t").value();
  for (size_t size = 0; size < good.size(); ++size) {
    ASSERT_TRUE(WriteFile(files, "bad", good.substr(0, size)).ok());
    EXPECT_TRUE(absl::IsDataLoss(ReadAll(files, "bad").status())) << size;
  }
  for (size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_TRUE(WriteFile(files, "bad", bytes).ok());
    const StatusOr<Entries> got = ReadAll(files, "bad");
    if (got.ok()) {
      EXPECT_EQ(*got, samples);  // the footer's padding and the metaindex say nothing
    } else {
      EXPECT_TRUE(absl::IsDataLoss(got.status())) << got.status();
      EXPECT_THAT(std::string(got.status().message()), ::testing::HasSubstr("bad"));
    }
  }
}

// A table made by hand from finished blocks.
std::string Assemble(const std::vector<std::pair<char, std::string>>& blocks) {
  std::string file;
  BlockBuilder index(1);
  int number = 0;
  const auto append = [&file](char type, const std::string& block) {
    std::string handle;
    AppendVarint(file.size(), &handle);
    AppendVarint(block.size(), &handle);
    file += block;
    file += type;
    AppendFixed32(MaskCrc32c(Crc32c(block + type)), &file);
    return handle;
  };
  for (const auto& [type, block] : blocks) {
    index.Add(absl::StrFormat("k%03d~", number++), append(type, block));
  }
  std::string footer = append(0, BlockBuilder(1).Finish());
  footer += append(0, index.Finish());
  footer.resize(40);
  AppendFixed64(0xdb4775248b80fb57u, &footer);
  return file + footer;
}

std::string Compressed(const std::string& plain) {
  std::string out;
  snappy::Compress(plain.data(), plain.size(), &out);
  return out;
}

TEST(TableTest, ReadsSnappyBlocks) {
  MemoryFileSystem files;
  BlockBuilder block(16);
  block.Add("k000", std::string(100000, 'a'));
  const std::string plain = block.Finish();
  ASSERT_TRUE(WriteFile(files, "t", Assemble({{1, Compressed(plain)}})).ok());
  EXPECT_EQ(ReadAll(files, "t").value(), Entries({{"k000", std::string(100000, 'a')}}));

  const std::pair<char, std::string> bad_blocks[] = {
      {1, "not snappy"},
      {2, plain},
      {1, std::string("\xff\xff\xff\xff\x0f", 5) + Compressed(plain)},  // claims 4 GB
  };
  for (const auto& bad : bad_blocks) {
    ASSERT_TRUE(WriteFile(files, "t", Assemble({bad})).ok());
    EXPECT_TRUE(absl::IsDataLoss(ReadAll(files, "t").status()));
  }
}

// Good checksums over bad contents: what a hostile file looks like.
TEST(TableTest, MalformedBlocksAreErrors) {
  MemoryFileSystem files;
  BlockBuilder builder(16);
  builder.Add("k000", "v");
  const std::string good = builder.Finish();
  const std::string restart = good.substr(good.size() - 8);
  const std::string bad_blocks[] = {
      "",
      "abc",
      std::string("\xff\xff\xff\xff", 4),                          // 2^32 restart points
      std::string("\x05\x01\x01xy", 5) + restart,                  // shares with no key
      std::string("\x00\x7f\x01xy", 5) + restart,                  // key beyond the end
      std::string("\x00\x01\xff\xff\xff\xff\x0fxy", 9) + restart,  // value beyond the end
      std::string("\x00", 1) + restart,                            // cut short
      std::string("\x00\x01\x00"
                  "b\x00\x01\x00"
                  "a",
                  8) +
          restart,  // out of order
      good.substr(0, good.size() - 8) + std::string("\x09\0\0\0\x01\0\0\0", 8),
  };
  for (const std::string& bad : bad_blocks) {
    ASSERT_TRUE(WriteFile(files, "t", Assemble({{0, bad}})).ok());
    EXPECT_TRUE(absl::IsDataLoss(ReadAll(files, "t").status())) << bad;
    const auto table = Table::Open(files, "t").value();
    EXPECT_FALSE(table->Find("k000").ok()) << bad;
  }
  // Two blocks whose keys do not follow each other.
  ASSERT_TRUE(WriteFile(files, "t", Assemble({{0, good}, {0, good}})).ok());
  EXPECT_TRUE(absl::IsDataLoss(ReadAll(files, "t").status()));
}

TEST(TableTest, RestartPointsMayPointAnywhere) {
  MemoryFileSystem files;
  BlockBuilder builder(1);
  for (char c = 'a'; c < 'i'; ++c) builder.Add(absl::StrFormat("k00%c", c), "v");
  const std::string good = builder.Finish();
  const size_t restarts = good.size() - 4 - 4 * 8;
  for (size_t i = 1; i < 8; ++i) {
    for (uint32_t offset : {1u, 3u, 5u, 1000u, 0xffffffffu}) {
      std::string bad = good;
      std::memcpy(&bad[restarts + 4 * i], &offset, 4);
      ASSERT_TRUE(WriteFile(files, "t", Assemble({{0, bad}})).ok());
      const auto table = Table::Open(files, "t").value();
      for (char c = 'a'; c < 'i'; ++c) {
        const auto found = table->Find(absl::StrFormat("k00%c", c));
        if (found.ok() && found->has_value()) {
          EXPECT_EQ(**found, "v");
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft::storage
