// SPDX-License-Identifier: Apache-2.0
#include "platform/store/packed_texts.h"

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace weft::platform {
namespace {

using ::testing::IsEmpty;

std::string PodText(int index) {
  return absl::StrCat(R"({"metadata":{"name":"job-)", index, R"(-worker-0","namespace":"default",)",
                      R"("uid":"0c7e9a3c-1111-4222-8333-00000000)", 1000 + index,
                      R"(","labels":{"training.kubeflow.org/replica-type":"worker"}},)",
                      R"("status":{"phase":"Running","containerStatuses":[{"name":"main"}]}})");
}

TEST(PackedTextsTest, TextsThatAreAlikeCostLittle) {
  PackedTexts texts;
  std::vector<std::string> packed;
  for (int i = 0; i < 100; ++i) packed.push_back(texts.Pack(PodText(i)));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(texts.Unpack(packed[i]), PodText(i)) << i;
  EXPECT_LT(packed[99].size() * 5, PodText(99).size());
}

TEST(PackedTextsTest, AnyTextComesBack) {
  PackedTexts texts;
  std::minstd_rand random(7);
  std::string noise(100'000, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  // The first is longer than what zlib looks back over, and cannot be packed.
  std::vector<std::string> all{noise, "", "x", std::string(1, '\0'), PodText(1), noise.substr(1)};
  all.push_back(std::string(5'000'000, 'a') + noise);
  all.push_back(noise + noise);
  std::vector<std::string> packed;
  for (const std::string& text : all) packed.push_back(texts.Pack(text));
  EXPECT_THAT(packed[1], IsEmpty());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(texts.Unpack(packed[i]) == all[i]) << i;
}

}  // namespace
}  // namespace weft::platform
