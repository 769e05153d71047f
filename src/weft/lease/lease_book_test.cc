// SPDX-License-Identifier: Apache-2.0
#include "weft/lease/lease_book.h"

#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/memory_files.h"
#include "weft/lease/lease_call.h"

namespace weft::lease {
namespace {

using testing::HasSubstr;

QueueSpec Spec(int64_t records, int64_t per_lease, int64_t epochs, uint64_t seed = 0) {
  QueueSpec spec;
  spec.records = records;
  spec.per_lease = per_lease;
  spec.epochs = epochs;
  spec.seed = seed;
  spec.lease_seconds = 60;
  return spec;
}

QueueSpec Named(QueueSpec spec) {
  spec.name = "train";
  return spec;
}

TEST(LeaseBookTest, EveryRecordIsLeasedOnceInEachEpoch) {
  FakeClock clock;
  LeaseBook book(&clock);
  ASSERT_TRUE(book.Define(Named(Spec(10, 3, 2, 7))).ok());
  std::map<int64_t, std::set<int64_t>> records;
  for (int i = 0; i < 8; ++i) {
    const StatusOr<LeaseBook::Taken> taken = book.Take("train", "a@1");
    ASSERT_TRUE(taken.ok() && taken->what == LeaseQueue::Taken::kLease);
    for (int64_t at = taken->lease.begin; at < taken->lease.end; ++at)
      EXPECT_TRUE(records[taken->lease.epoch].insert(at).second);
    EXPECT_EQ(book.Finish("train", "a@1", taken->lease).value_or(false), true);
    EXPECT_EQ(book.Finish("train", "a@1", taken->lease).value_or(true), false);
  }
  EXPECT_EQ(records[0].size(), 10);
  EXPECT_EQ(records[1].size(), 10);
  EXPECT_EQ(book.Take("train", "a@1")->what, LeaseQueue::Taken::kOver);
  EXPECT_EQ(book.Counts("train")->records_done, 20);
}

TEST(LeaseBookTest, ARangeOfALostOrLateOrRestartedWorkerIsLeasedAgain) {
  FakeClock clock;
  LeaseBook book(&clock);
  ASSERT_TRUE(book.Define(Named(Spec(3, 3, 1))).ok());
  const Lease first = book.Take("train", "a@1")->lease;
  EXPECT_EQ(book.Take("train", "b@1")->what, LeaseQueue::Taken::kWait);
  EXPECT_EQ(book.TaskLost("a"), 1);
  const Lease second = book.Take("train", "b@1")->lease;
  EXPECT_EQ(second.index, first.index);
  EXPECT_THAT(book.Finish("train", "a@1", first).status().message(), HasSubstr("is b@1's now"));
  clock.Advance(absl::Seconds(61));
  const Lease third = book.Take("train", "a@1")->lease;
  EXPECT_EQ(third.index, first.index);
  const StatusOr<LeaseBook::Taken> fourth = book.Take("train", "a@2");  // its process is a new one
  ASSERT_EQ(fourth->what, LeaseQueue::Taken::kLease);
  EXPECT_EQ(book.Counts("train")->leased_again, 3);
  EXPECT_TRUE(book.Finish("train", "a@2", fourth->lease).value_or(false));
  EXPECT_TRUE(book.Counts("train")->is_over);
}

TEST(LeaseBookTest, RefusesWhatMakesNoSense) {
  FakeClock clock;
  LeaseBook book(&clock);
  EXPECT_THAT(book.Define(Named(Spec(0, 1, 1))).message(), HasSubstr("records is 0"));
  EXPECT_THAT(book.Define(Named(Spec(5, 6, 1))).message(), HasSubstr("per_lease is 6"));
  ASSERT_TRUE(book.Define(Named(Spec(5, 5, 1))).ok());
  EXPECT_TRUE(book.Define(Named(Spec(5, 5, 1))).ok());
  EXPECT_THAT(book.Define(Named(Spec(6, 5, 1))).message(), HasSubstr("is there already"));
  EXPECT_TRUE(absl::IsNotFound(book.Take("other", "a@1").status()));
  const StatusOr<Json> call = Json::Parse(R"({"do": "steal", "queue": "train", "worker": "a@1"})");
  EXPECT_THAT(AnswerLeaseCall(&book, *call).status().message(), HasSubstr("got 'steal'"));
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeDirectories("/job").ok());
  ASSERT_TRUE(WriteFile(files, "/job/leases.log", "{\"done\":[\"train\",0,0]}\n").ok());
  EXPECT_THAT(LeaseBook::Open(&files, "/job", &clock).status().message(),
              HasSubstr("/job/leases.log: line 1: There is no queue"));
}

// Workers that die and come back, answers that are lost, calls that come twice, a process with the
// book that dies between any two of them.
class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    const int64_t records = Pick(1, 60);
    spec_ = Named(Spec(records, Pick(1, static_cast<int>(records)), Pick(1, 3),
                       static_cast<uint64_t>(Pick(0, 1))));
    workers_.resize(static_cast<size_t>(Pick(1, 4)));
    Restart();
  }

  void Run() {
    for (int event = 0; event < 200000; ++event) {
      if (book_->Counts("train")->is_over) break;
      Step(static_cast<size_t>(Pick(0, static_cast<int>(workers_.size()) - 1)));
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_TRUE(book_->Counts("train")->is_over);
    EXPECT_EQ(book_->Counts("train")->records_done, spec_.records * spec_.epochs);
    // Counted once, whatever happened; an answer that was lost may have counted as well.
    for (const auto& [place, times] : counted_) EXPECT_EQ(times, 1);
    EXPECT_EQ(static_cast<int64_t>(counted_.size() + unheard_.size()),
              spec_.num_ranges() * spec_.epochs);
  }

 private:
  struct Worker {
    int process = 1;
    std::optional<Lease> lease;
  };
  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  void Restart() {
    if (book_ != nullptr && Pick(0, 2) == 0) {
      // It died while it wrote, and nobody heard of that.
      StatusOr<std::unique_ptr<WritableFile>> file =
          files_.OpenWrite("/job/leases.log", WriteMode::kAppend);
      ASSERT_TRUE(file.ok() && (*file)->Append("{\"done\":[\"tra").ok());
    }
    book_.reset();
    StatusOr<std::unique_ptr<LeaseBook>> book = LeaseBook::Open(&files_, "/job", &clock_);
    ASSERT_TRUE(book.ok()) << book.status();
    book_ = *std::move(book);
    ASSERT_TRUE(book_->Define(spec_).ok());
  }

  void Step(size_t number) {
    Worker& worker = workers_[number];
    const std::string task = absl::StrCat("w", number);
    const std::string name = absl::StrCat(task, "@", worker.process);
    switch (Pick(0, 11)) {
      case 0:
        return Restart();
      case 1:
        worker = {.process = worker.process + 1, .lease = std::nullopt};
        if (Pick(0, 1) == 0) book_->TaskLost(task);
        return;
      case 2:
        return clock_.Advance(absl::Seconds(Pick(1, 70)));
      default:
        break;
    }
    if (!worker.lease) {
      const StatusOr<LeaseBook::Taken> taken = book_->Take("train", name);
      ASSERT_TRUE(taken.ok());
      const bool is_heard = Pick(0, 9) > 0;
      if (taken->what == LeaseQueue::Taken::kLease && is_heard) worker.lease = taken->lease;
      return;
    }
    const std::pair place(worker.lease->epoch, worker.lease->index);
    const StatusOr<bool> counts = book_->Finish("train", name, *worker.lease);
    const bool is_heard = Pick(0, 9) > 0;
    if (counts.ok() && *counts) is_heard ? (void)++counted_[place] : (void)unheard_.insert(place);
    if (is_heard) worker.lease.reset();  // else it says so again
  }

  std::mt19937_64 random_;
  QueueSpec spec_;
  FakeClock clock_;
  MemoryFileSystem files_;
  std::unique_ptr<LeaseBook> book_;
  std::vector<Worker> workers_;
  std::map<std::pair<int64_t, int64_t>, int> counted_;
  std::set<std::pair<int64_t, int64_t>> unheard_;
};

TEST(LeaseBookTest, WhatTasksHoldThatNobodyKnowsIsToDoAgain) {
  FakeClock clock;
  LeaseBook book(&clock);
  ASSERT_TRUE(book.Define({.name = "q", .records = 3, .per_lease = 1}).ok());
  for (const char* worker : {"gone@1", "lives@1", "gone@1"})
    ASSERT_EQ(book.Take("q", worker)->what, LeaseQueue::Taken::kLease);
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(book.KeepLiving({"lives"}, absl::Seconds(5)), 0);  // it may not be known yet
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(book.KeepLiving({"lives"}, absl::Seconds(5)), 2);
  EXPECT_EQ(book.Counts("q")->held, 1);
  EXPECT_EQ(book.KeepLiving({"lives"}, absl::Seconds(5)), 0);
}

TEST(LeaseBookTest, EveryRecordCountsOnceWhoeverDies) {
  const char* const first = std::getenv("WEFT_FIRST_SEED");
  const uint64_t begin = first == nullptr ? 1 : std::strtoull(first, nullptr, 10);
  const char* const count = std::getenv("WEFT_SEEDS");
  const uint64_t seeds = count == nullptr ? 10000 : std::strtoull(count, nullptr, 10);
  for (uint64_t seed = begin; seed < begin + seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("WEFT_FIRST_SEED=", seed));
    World(seed).Run();
    if (testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace weft::lease
