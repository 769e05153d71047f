// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/zip_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::storage {
namespace {

using ::testing::HasSubstr;

// A file "a.txt" of forty times "ab", deflated, as Python's zipfile writes it.
constexpr unsigned char kDeflated[] = {
    0x50, 0x4b, 0x03, 0x04, 0x14, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0x60,
    0x0c, 0x01, 0x50, 0x07, 0x00, 0x00, 0x00, 0x50, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00,
    0x61, 0x2e, 0x74, 0x78, 0x74, 0x4b, 0x4c, 0x4a, 0xa4, 0x2a, 0x04, 0x00, 0x50, 0x4b, 0x01,
    0x02, 0x14, 0x03, 0x14, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0x60, 0x0c,
    0x01, 0x50, 0x07, 0x00, 0x00, 0x00, 0x50, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x61, 0x2e,
    0x74, 0x78, 0x74, 0x50, 0x4b, 0x05, 0x06, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x00,
    0x33, 0x00, 0x00, 0x00, 0x2a, 0x00, 0x00, 0x00, 0x00, 0x00,
};

TEST(ZipArchiveTest, FilesComeBack) {
  const ArchiveFiles files = {
      {"config.json", "{}"}, {"empty", ""}, {"b/w.h5", std::string(5000, 'x')}};
  const StatusOr<std::string> bytes = WriteZip(files);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const StatusOr<ArchiveFiles> read = ReadZip(*bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, files);
}

TEST(ZipArchiveTest, DeflatedFilesAreRead) {
  const StatusOr<ArchiveFiles> read =
      ReadZip({reinterpret_cast<const char*>(kDeflated), sizeof(kDeflated)});
  ASSERT_TRUE(read.ok()) << read.status();
  std::string wanted;
  for (int i = 0; i < 40; ++i) wanted += "ab";
  EXPECT_EQ(read->at("a.txt"), wanted);
}

TEST(ZipArchiveTest, DamageIsNamed) {
  std::string bytes = *WriteZip({{"config.json", "{\"a\": 1}"}});
  bytes[30 + 11 + 2] ^= 1;
  EXPECT_THAT(std::string(ReadZip(bytes).status().message()),
              HasSubstr("file 'config.json': its bytes are damaged"));
  EXPECT_THAT(std::string(ReadZip("nothing").status().message()), HasSubstr("no bytes of a zip"));
  EXPECT_THAT(
      std::string(ReadZip(*WriteZip({{"large", std::string(100, 'x')}}), 99).status().message()),
      HasSubstr("larger than what is expected"));
}

TEST(ZipArchiveTest, EveryCutIsAnErrorOrReads) {
  const std::string bytes = *WriteZip({{"one", "first"}, {"two", "second"}});
  for (size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_FALSE(ReadZip(bytes.substr(0, cut)).ok());
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = '\xff';
    ReadZip(damaged).status().IgnoreError();
  }
}

}  // namespace
}  // namespace weft::storage
