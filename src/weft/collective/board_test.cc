// SPDX-License-Identifier: Apache-2.0
#include "weft/collective/board.h"

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/threads.h"

namespace weft::collective {
namespace {

constexpr uint64_t kOthers = 0b110;  // of three tasks, as the first sees them

class BoardTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int task = 0; task < 3; ++task) {
      StatusOr<std::shared_ptr<Board>> board = Board::Make();
      ASSERT_TRUE(board.ok()) << board.status();
      boards_.push_back(*std::move(board));
      offers_.push_back(boards_.back()->Offer());
    }
  }
  std::shared_ptr<Boards> Of(int task) {
    return Boards::Open(boards_[static_cast<size_t>(task)], task, offers_);
  }
  static std::vector<Boards::Piece> Bytes(const std::vector<uint8_t>& bytes, int64_t offset = 0) {
    return {{.offset = offset,
             .bytes = Tensor::FromSpan<uint8_t>(Shape{static_cast<int64_t>(bytes.size())},
                                                absl::MakeConstSpan(bytes))}};
  }
  static std::vector<uint8_t> BytesOf(const std::optional<Boards::Note>& note) {
    if (!note.has_value()) return {};
    const auto bytes = note->whole.span<uint8_t>();
    return {bytes.begin(), bytes.end()};
  }

  std::vector<std::shared_ptr<Board>> boards_;
  std::vector<std::string> offers_;
};

TEST_F(BoardTest, ANoteIsFoundByThoseWhomItIsFor) {
  const auto first = Of(0), second = Of(1), third = Of(2);
  const NoteKey key{.epoch = 7, .instance = 1, .ordinal = 2, .round = 1};
  EXPECT_EQ(first->Post(key, "sum", 4, Bytes({5, 6}, 2), 0b010), 0b010U);
  const std::optional<Boards::Note> note = second->Find(0, key);
  ASSERT_TRUE(note.has_value());
  EXPECT_EQ(note->signature, "sum");
  EXPECT_EQ(BytesOf(note), (std::vector<uint8_t>{0, 0, 5, 6}));
  EXPECT_FALSE(third->Has(0, key));
  EXPECT_FALSE(second->Has(2, key));
  NoteKey other = key;
  other.round = 0;
  EXPECT_FALSE(second->Has(0, other));
  second->Return(0, *note);
  EXPECT_FALSE(second->Has(0, key));
}

TEST_F(BoardTest, WhatSomebodyStillReadsStays) {
  const auto first = Of(0), second = Of(1), third = Of(2);
  const auto key = [](uint8_t n) { return NoteKey{.epoch = 7, .ordinal = n}; };
  for (uint8_t n = 0; n < kNotesOfBoard; ++n)
    EXPECT_EQ(first->Post(key(n), "sum", 1, Bytes({n}), kOthers), kOthers);
  // All places are taken: the rest goes by messages.
  EXPECT_EQ(first->Post(key(100), "sum", 1, Bytes({100}), kOthers), 0U);
  second->Return(0, *second->Find(0, key(3)));
  EXPECT_EQ(first->Post(key(100), "sum", 1, Bytes({100}), kOthers), 0U);
  third->Return(0, *third->Find(0, key(3)));
  EXPECT_EQ(first->Post(key(100), "sum", 1, Bytes({100}), kOthers), kOthers);
  EXPECT_EQ(BytesOf(second->Find(0, key(100))), std::vector<uint8_t>{100});
  EXPECT_EQ(BytesOf(third->Find(0, key(2))), std::vector<uint8_t>{2});
}

TEST_F(BoardTest, WhoDoesNotLookGetsMessages) {
  const auto first = Of(0), second = Of(1);
  EXPECT_EQ(first->Post({.epoch = 1}, "sum", 1, Bytes({1}), kOthers), 0b010U);
  EXPECT_EQ(first->Post({.epoch = 2}, "sum", kMostBytesOfNote + 1, {}, kOthers), 0U);
  EXPECT_EQ(first->Post({.epoch = 2}, std::string(kMostSignatureOfNote + 1, 's'), 0, {}, kOthers),
            0U);
  EXPECT_FALSE(first->IsAsleep(1));
  second->Sleep();
  second->Sleep();
  second->Wake();
  EXPECT_TRUE(first->IsAsleep(1));
  second->Wake();
  EXPECT_FALSE(first->IsAsleep(1));
}

// Thread sanitizer looks at it, too.
TEST_F(BoardTest, WhoLooksWhileOthersWriteFindsWholeNotesOrNone) {
  constexpr uint64_t kNotes = 3000;
  const auto first = Of(0), second = Of(1), third = Of(2);
  const auto key_of = [](uint64_t n) {
    return NoteKey{.epoch = n, .ordinal = n, .frame = n, .iteration = static_cast<int64_t>(n)};
  };
  // The third gets every other note only, and looks while the places of the rest are written again.
  const auto read = [&](Boards* boards, uint64_t step) {
    for (uint64_t n = 0; n < kNotes; n += step) {
      std::optional<Boards::Note> note;
      while (!(note = boards->Find(0, key_of(n))).has_value()) std::this_thread::yield();
      EXPECT_EQ(note->signature, absl::StrCat("sum ", n));
      EXPECT_EQ(BytesOf(note), std::vector<uint8_t>(700, static_cast<uint8_t>(n)));
      boards->Return(0, *note);
    }
  };
  Thread every("every", [&] { read(second.get(), 1); });
  Thread other("other", [&] { read(third.get(), 2); });
  for (uint64_t n = 0; n < kNotes; ++n) {
    const std::vector<uint8_t> bytes(700, static_cast<uint8_t>(n));
    const uint64_t tasks = n % 2 == 0 ? kOthers : 0b010;
    while (first->Post(key_of(n), absl::StrCat("sum ", n), 700, Bytes(bytes), tasks) == 0)
      std::this_thread::yield();
  }
  every.Join();
  other.Join();
}

TEST_F(BoardTest, OffersThatAreNoneAreRefused) {
  EXPECT_EQ(Board::Open("board").status().code(), absl::StatusCode::kInvalidArgument);
  std::string offer = offers_[1];
  offer.back() = static_cast<char>(offer.back() ^ 1);  // another nonce
  EXPECT_EQ(Board::Open(offer).status().code(), absl::StatusCode::kUnavailable);
  offers_[1] = offer;
  EXPECT_EQ(Of(0)->opened(), 0b100U);
  // The group was told of another board of this task.
  offers_[0] = offers_[2];
  EXPECT_EQ(Of(0), nullptr);
}

TEST_F(BoardTest, WhatStandsOnABoardNeverLeadsBeyondIt) {
  const auto first = Of(0), second = Of(1);
  const NoteKey key{.epoch = 7};
  ASSERT_EQ(first->Post(key, "sum", 2, Bytes({1, 2}), 0b010), 0b010U);
  std::mt19937_64 random(7);
  auto* const bytes = reinterpret_cast<uint8_t*>(&boards_[0]->layout());
  const auto* const room = reinterpret_cast<const uint8_t*>(boards_[0]->RoomOf(0));
  const auto size = static_cast<size_t>(room - bytes);
  const std::vector<uint8_t> good(bytes, bytes + size);
  int found = 0;
  for (int i = 0; i < 20000; ++i) {
    for (int n = 0; n < 1 + i % 8; ++n) bytes[random() % size] = static_cast<uint8_t>(random());
    const std::optional<Boards::Note> note = second->Find(0, key);
    if (note.has_value()) {
      ++found;
      ASSERT_LE(note->signature.size(), kMostSignatureOfNote);
      if (note->whole.IsInitialized()) {
        ASSERT_LE(note->whole.size_bytes(), static_cast<size_t>(kMostBytesOfNote));
        ASSERT_EQ(note->whole.bytes(), second->Find(0, key)->whole.bytes());
        EXPECT_GE(note->whole.span<uint8_t>().back(), 0);
      }
    }
    std::memcpy(bytes, good.data(), size);
  }
  EXPECT_GT(found, 1000);
}

}  // namespace
}  // namespace weft::collective
