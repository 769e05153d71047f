// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/batch.h"

#include <random>

#include "gtest/gtest.h"

#include "weft/transport/recorder.h"

namespace weft::transport {
namespace {

std::string Joined(std::span<Region> body) {
  std::string whole;
  for (const Region& region : body) {
    whole.append(reinterpret_cast<const char*>(region.data), region.size);
  }
  return whole;
}

TEST(Batch, EveryTensorIsFoundAlignedAfterTheWire) {
  BatchBuilder batch;
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(batch.Add(i, std::string(i % 5, 'm'), RegionOf(std::string(i * 3, 'a' + i % 26))));
  }
  EXPECT_EQ(batch.count(), 100u);
  const std::string whole = Joined(batch.body());
  EXPECT_EQ(whole.size(), batch.bytes());
  const auto entries = ParseBatch(batch.meta(), whole.size());
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 100u);
  for (uint32_t i = 0; i < 100; ++i) {
    const BatchEntry& entry = (*entries)[i];
    EXPECT_EQ(entry.key, i);
    EXPECT_EQ(entry.meta, std::string(i % 5, 'm'));
    EXPECT_EQ(entry.offset % kBatchAlignment, 0u);
    EXPECT_EQ(whole.substr(entry.offset, entry.bytes), std::string(i * 3, 'a' + i % 26));
  }
  batch.Clear();
  EXPECT_TRUE(batch.empty());
  EXPECT_TRUE(ParseBatch(batch.meta(), 0)->empty());
}

TEST(Batch, IsFullWhenTheDirectoryIs) {
  BatchBuilder batch;
  EXPECT_FALSE(batch.Add(0, std::string(kMaxMetaBytes, 'x'), Region()));
  int added = 0;
  while (batch.Add(1, std::string(1000, 'x'), Region())) ++added;
  EXPECT_GT(added, 60);
  EXPECT_LE(batch.meta().size(), kMaxMetaBytes);
  EXPECT_EQ(ParseBatch(batch.meta(), 0)->size(), static_cast<size_t>(added));
}

TEST(Batch, RefusesADirectoryThatDoesNotFitItsBody) {
  BatchBuilder batch;
  ASSERT_TRUE(batch.Add(1, "meta", RegionOf("0123456789")));
  ASSERT_TRUE(batch.Add(2, "", RegionOf("abc")));
  const std::string meta(batch.meta());
  EXPECT_TRUE(ParseBatch(meta, 128).ok());
  for (const uint64_t wrong :
       {uint64_t{0}, uint64_t{64}, uint64_t{127}, uint64_t{129}, UINT64_MAX}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseBatch(meta, wrong).status())) << wrong;
  }
  for (size_t size = 1; size < meta.size(); ++size) {
    EXPECT_FALSE(ParseBatch(absl::string_view(meta).substr(0, size), 128).ok()) << size;
  }
  std::string overflow = meta;
  for (int i = 8; i < 16; ++i) overflow[i] = '\xff';
  EXPECT_FALSE(ParseBatch(overflow, 128).ok());
}

TEST(Batch, RandomDirectoriesNeverPointOutside) {
  std::mt19937 random(11);
  for (int i = 0; i < 20000; ++i) {
    std::string meta(random() % 80, '\0');
    for (char& c : meta) c = static_cast<char>(random() % 3 == 0 ? random() % 70 : 0);
    const uint64_t body = random() % 8 * 64;
    const auto entries = ParseBatch(meta, body);
    if (!entries.ok()) continue;
    for (const BatchEntry& entry : *entries) EXPECT_LE(entry.offset + entry.bytes, body);
  }
}

}  // namespace
}  // namespace weft::transport
