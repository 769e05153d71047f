// SPDX-License-Identifier: Apache-2.0
#include "net/utf8.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(Utf8Test, WritesOutTheBytesThatAreNone) {
  EXPECT_EQ(EscapeBadUtf8(""), "");
  EXPECT_EQ(EscapeBadUtf8("gr\u00fc\u00df \u20ac \U0001F600"), "gr\u00fc\u00df \u20ac \U0001F600");
  EXPECT_EQ(EscapeBadUtf8("\xff"
                          "a\xfe"),
            "\\xffa\\xfe");
  EXPECT_EQ(EscapeBadUtf8("\xe2\x82"), "\\xe2\\x82") << "cut in a character";
  EXPECT_EQ(EscapeBadUtf8("\xc0\x80"), "\\xc0\\x80") << "longer than it has to be";
  EXPECT_EQ(EscapeBadUtf8("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
  EXPECT_EQ(EscapeBadUtf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "past the last";
}

TEST(Utf8Test, CutsBetweenCharacters) {
  EXPECT_EQ(CutUtf8("abc", 5), "abc");
  EXPECT_EQ(CutUtf8("abc", 2), "ab");
  EXPECT_EQ(CutUtf8("a\u20acb", 4), "a\u20ac");
  EXPECT_EQ(CutUtf8("a\u20acb", 3), "a");
  EXPECT_EQ(CutUtf8("\u20ac", 2), "");
  EXPECT_EQ(CutUtf8("", 0), "");
}

}  // namespace
}  // namespace weft
