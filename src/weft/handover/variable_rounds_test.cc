// SPDX-License-Identifier: Apache-2.0
#include "weft/handover/variable_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/device/cpu/cpu_device.h"
#include "weft/handover/row_notes.h"

namespace weft::handover {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kPiece = 4096;  // that is told as one

class Queue final : public Resource {
 public:
  std::string DebugString() const override { return "a queue of words"; }
};

class VariableRoundsTest : public ::testing::Test {
 protected:
  VariableRoundsTest() : threads_("test", 1) {
    auto made = CpuDevices(2).Make({.job = "ps", .replica = 0, .task = 0}, &threads_);
    EXPECT_TRUE(made.ok()) << made.status();
    devices_ = *std::move(made);
    rounds_.emplace(std::vector<Device*>{devices_[0].get(), devices_[1].get()});
  }

  Ref<Variable> Make(int device, const std::string& name, DType dtype = DType::kFloat) {
    return *devices_[static_cast<size_t>(device)]->resources().LookupOrCreate<Variable>(
        kDefaultContainer, name,
        [&]() -> StatusOr<Ref<Variable>> { return MakeRef<Variable>(name, dtype); });
  }
  static Tensor Zeros(int64_t elements) { return *Tensor::Zeros(DType::kFloat, Shape{elements}); }
  static void Set(Variable& variable, std::vector<int64_t> places, float value) {
    EXPECT_TRUE(variable
                    .Update([&](Tensor& tensor) {
                      for (int64_t place : places) tensor.data<float>()[place] = value;
                      return absl::OkStatus();
                    })
                    .ok());
  }
  Round Next() {
    StatusOr<Round> round = rounds_->Next();
    EXPECT_TRUE(round.ok()) << round.status();
    return round.ok() ? *std::move(round) : Round();
  }

  ThreadPool threads_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::optional<VariableRounds> rounds_;
};

TEST_F(VariableRoundsTest, TheFirstRoundTellsAllAndTheNextWhatChanged) {
  const Ref<Variable> large = Make(0, "large"), other = Make(1, "other"), empty = Make(0, "empty");
  const int64_t elements = 5 << 20;  // 20 MB
  large->Assign(Zeros(elements));
  other->Assign(Zeros(3));
  const Round first = Next();
  ASSERT_EQ(first.variables.size(), 2U);  // none that holds nothing
  EXPECT_EQ(first.bytes, static_cast<uint64_t>(elements) * 4 + 12);
  EXPECT_EQ(first.ranges.size(), 6U);
  EXPECT_EQ(Next().bytes, 0U);

  Set(*large, {7, 9, 2000000, 2000000 + 1024}, 1);
  const Round second = Next();
  EXPECT_TRUE(second.variables.empty());
  ASSERT_EQ(second.ranges.size(), 2U);  // pages that follow each other are one
  EXPECT_EQ(second.ranges[0].offset, 0U);
  EXPECT_EQ(second.bytes, 3 * kPiece);
  const ChangedRange& last = second.ranges[1];
  EXPECT_LE(last.offset, 8000000U);
  EXPECT_GT(last.offset + last.bytes, 8000000U + kPiece);
  EXPECT_EQ(reinterpret_cast<const float*>(rounds_->BytesOf(last.variable))[2000000], 1);
}

TEST_F(VariableRoundsTest, ApplyingAllRoundsGivesWhatVariablesHold) {
  const Ref<Variable> variable = Make(0, "v");
  variable->Assign(Zeros(100000));
  Tensor copy = Zeros(100000);
  uint64_t seed = 1;
  for (int i = 0; i < 50; ++i) {
    std::vector<int64_t> places;
    for (int k = 0; k < 1 + i % 7; ++k) {
      seed = seed * 6364136223846793005U + 1442695040888963407U;
      places.push_back(static_cast<int64_t>((seed >> 33) % 100000));
    }
    Set(*variable, places, static_cast<float>(i));
    const Round round = Next();
    for (const ChangedRange& range : round.ranges) {
      std::memcpy(copy.bytes() + range.offset, rounds_->BytesOf(range.variable) + range.offset,
                  range.bytes);
    }
    const Tensor now = *variable->Read();
    ASSERT_EQ(std::memcmp(copy.bytes(), now.bytes(), now.size_bytes()), 0) << i;
  }
}

// Rows that updates write in place are told by the next round.
TEST_F(VariableRoundsTest, RowsAreWrittenInPlaceAndTold) {
  RowNotes notes;
  OfferKeeper(devices_[0].get(), &notes);
  const Ref<Variable> table = Make(0, "table");
  constexpr int64_t kRows = 1 << 20, kWidth = 4;  // 16 MB
  table->Assign(*Tensor::Zeros(DType::kFloat, Shape{kRows, kWidth}));
  const std::byte* const place = table->Read()->bytes();
  const auto write = [&](int64_t row, float value) {
    const Tensor rows = Tensor::Vector<int64_t>({row, -5});
    const auto update = [&](Tensor& tensor) {
      for (int64_t i = 0; i < kWidth; ++i) tensor.data<float>()[row * kWidth + i] = value;
      return absl::OkStatus();
    };
    EXPECT_TRUE(UpdateRows(devices_[0].get(), *table, rows, update).ok());
  };
  write(1, 1);  // nobody copies
  notes.NoteFor(&*rounds_);
  EXPECT_EQ(Next().bytes, static_cast<uint64_t>(kRows) * kWidth * 4);
  write(kRows - 1, 2);
  write(kRows / 2, 3);
  EXPECT_EQ(table->Read()->bytes(), place);  // no copy was made
  const Round second = Next();
  EXPECT_EQ(second.ranges.size(), 2U);
  EXPECT_EQ(second.bytes, 2 * kPiece);
  EXPECT_EQ(Next().bytes, 0U);
  // Who still reads the old value keeps it: the update copies, and the copy is told, with what was
  // written in place before.
  write(kRows - 1, 3);
  {
    const Tensor reader = *table->Read();
    write(7, 4);
    EXPECT_NE(table->Read()->bytes(), place);
    EXPECT_EQ(reader.data<float>()[7 * kWidth], 0);
  }
  EXPECT_EQ(Next().bytes, 2 * kPiece);
  const std::byte* const second_place = table->Read()->bytes();
  write(9, 5);
  EXPECT_EQ(table->Read()->bytes(), second_place);
  EXPECT_EQ(Next().bytes, kPiece);
  notes.NoteFor(nullptr);
  write(11, 6);
  EXPECT_NE(table->Read()->bytes(), second_place);  // our snapshot is one as any other
}

TEST_F(VariableRoundsTest, NewShapesAndEndsAreTold) {
  const Ref<Variable> variable = Make(0, "v");
  variable->Assign(Zeros(4));
  EXPECT_EQ(Next().variables.size(), 1U);
  variable->Assign(Zeros(6));
  const Round grown = Next();
  ASSERT_EQ(grown.variables.size(), 1U);
  EXPECT_EQ(grown.variables[0].dim(0), 6);
  EXPECT_EQ(grown.bytes, 24U);
  variable->Clear();
  const Round gone = Next();
  ASSERT_EQ(gone.variables.size(), 1U);
  EXPECT_EQ(gone.variables[0].number(), grown.variables[0].number());
  EXPECT_EQ(gone.variables[0].dtype(), 0);
  EXPECT_TRUE(Next().variables.empty());
}

TEST_F(VariableRoundsTest, WhatCannotGoIsNamed) {
  const Ref<Variable> words = Make(0, "words", DType::kString);
  words->Assign(Tensor::Scalar("a"));
  EXPECT_THAT(rounds_->Next().status().message(), HasSubstr("'words'"));
  words->Clear();
  EXPECT_TRUE(rounds_->Next().ok());
  ASSERT_TRUE(devices_[1]
                  ->resources()
                  .LookupOrCreate<Queue>("somewhere", "q",
                                         []() -> StatusOr<Ref<Queue>> { return MakeRef<Queue>(); })
                  .ok());
  EXPECT_THAT(rounds_->Next().status().message(), HasSubstr("'q' (a queue of words)"));
}

}  // namespace
}  // namespace weft::handover
