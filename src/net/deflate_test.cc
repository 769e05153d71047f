// SPDX-License-Identifier: Apache-2.0
#include "net/deflate.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(DeflateTest, AnyTextComesBack) {
  std::string varied;
  for (int i = 0; i < 20000; ++i) varied.push_back(static_cast<char>(i * i * 7 % 251));
  for (const std::string& text :
       {std::string(), std::string("a"), std::string(100000, 'b'), varied}) {
    EXPECT_EQ(Inflate(Deflate(text), 200000).value(), text);
  }
  EXPECT_LT(Deflate(std::string(100000, 'b')).size(), 1000u);
}

TEST(DeflateTest, WhatIsDamagedOrTooLongIsRefused) {
  const std::string bytes = Deflate(std::string(100000, 'b'));
  EXPECT_EQ(Inflate(bytes, 99999).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Inflate(bytes, 100000).value().size(), 100000u);
  EXPECT_EQ(Inflate("nonsense", 1000).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Inflate(absl::string_view(bytes).substr(0, bytes.size() / 2), 200000).status().code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(Inflate("", 1000).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace weft
