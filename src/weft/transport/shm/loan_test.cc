// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/shm/loan.h"

#include <cstring>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

#include "weft/transport/recorder.h"

namespace weft::transport::shm {
namespace {

class Loan : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(memory_.Enable().ok());
    HeapBytes::shared = &memory_;
    auto lender = Lender::Make(memory_);
    ASSERT_TRUE(lender.ok()) << lender.status();
    lender_ = *std::move(lender);
  }
  void TearDown() override {
    borrower_.reset();
    lender_.reset();
    EXPECT_EQ(SweepLingering(), 0u);
    EXPECT_EQ(HeapBytes::live, 0);
    HeapBytes::shared = nullptr;
  }
  void Join() {
    auto borrower = Borrower::Open(lender_->Offer());
    ASSERT_TRUE(borrower.ok()) << borrower.status();
    borrower_ = *std::move(borrower);
    lender_->Accept(getpid());
  }
  static OutFrame FrameOf(Region body) {
    OutFrame frame;
    frame.header.kind = FrameKind::kTensor;
    frame.header.key = 5;
    frame.header.body_bytes = body.size;
    frame.meta = "the meta";
    frame.body.push_back(std::move(body));
    return frame;
  }
  static OutFrame Large(char fill = 'x', size_t size = 100'000) {
    return FrameOf(RegionOf(std::string(size, fill)));
  }
  StatusOr<std::optional<Borrower::Frame>> Take(const OutFrame& frame) {
    return borrower_->Take(frame.header, frame.meta, uint64_t{1} << 30);
  }

  SharedMemory memory_;
  std::unique_ptr<Lender> lender_;
  std::unique_ptr<Borrower> borrower_;
};

TEST_F(Loan, TheBodyIsReadWhereItLiesAndComesBack) {
  Join();
  OutFrame frame = Large('q');
  ASSERT_TRUE(lender_->Lend(frame));
  EXPECT_TRUE(frame.body.empty());
  EXPECT_EQ(frame.header.body_bytes, 0u);
  EXPECT_EQ(HeapBytes::live, 1) << "the lender keeps it";
  auto taken = Take(frame);
  ASSERT_TRUE(taken.ok() && taken->has_value()) << taken.status();
  Borrower::Frame& inner = **taken;
  EXPECT_EQ(inner.header.kind, FrameKind::kTensor);
  EXPECT_EQ(inner.header.key, 5u);
  EXPECT_EQ(inner.meta, "the meta");
  EXPECT_TRUE(inner.body.read_only);
  ASSERT_EQ(inner.body.size, 100'000u);
  EXPECT_EQ(static_cast<char>(inner.body.data[99'999]), 'q');
  lender_->Sweep();
  EXPECT_EQ(HeapBytes::live, 1) << "still read";
  inner.body = Region();
  lender_->Sweep();
  EXPECT_EQ(HeapBytes::live, 0);
  EXPECT_EQ(lender_->frames_lent(), 1u);
}

TEST_F(Loan, WhatIsSmallElsewhereInPiecesOrNotBulkIsCopied) {
  OutFrame early = Large();
  EXPECT_FALSE(lender_->Lend(early)) << "nobody has mapped it yet";
  Join();
  OutFrame small = Large('x', kLeastLoan - 1);
  EXPECT_FALSE(lender_->Lend(small));
  OutFrame pieces = Large();
  pieces.body.push_back(RegionOf("more"));
  EXPECT_FALSE(lender_->Lend(pieces));
  OutFrame control = Large();
  control.header.kind = FrameKind::kStepStart;
  EXPECT_FALSE(lender_->Lend(control));
  const std::string heap(100'000, 'h');
  OutFrame elsewhere = FrameOf(Region::Of(std::as_bytes(std::span(heap)), NewRegion(1).keep));
  EXPECT_FALSE(lender_->Lend(elsewhere));
  EXPECT_EQ(elsewhere.body.size(), 1u) << "left as it was";
  OutFrame long_meta = Large();
  long_meta.meta = std::string(kMaxMetaBytes, 'm');
  EXPECT_FALSE(lender_->Lend(long_meta));
}

TEST_F(Loan, WhenAllWordsAreOutTheNextIsCopiedUntilOneComesBack) {
  Join();
  OutFrame first = Large();
  ASSERT_TRUE(lender_->Lend(first));
  for (uint32_t k = 1; k < kLoanWords; ++k) {
    OutFrame frame = Large('x', kLeastLoan);
    ASSERT_TRUE(lender_->Lend(frame)) << k;
  }
  OutFrame one_more = Large();
  EXPECT_FALSE(lender_->Lend(one_more));
  ASSERT_TRUE(Take(first)->has_value());  // and dropped at once
  EXPECT_TRUE(lender_->Lend(one_more));
}

TEST_F(Loan, AnEndedLenderTakesBackWhatWasNotTaken) {
  Join();
  OutFrame frame = Large();
  ASSERT_TRUE(lender_->Lend(frame));
  lender_->End();
  EXPECT_EQ(HeapBytes::live, 0);
  const auto taken = Take(frame);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_FALSE(taken->has_value()) << "too late";
  OutFrame next = Large();
  EXPECT_FALSE(lender_->Lend(next));
}

TEST_F(Loan, WhatIsReadOutlivesTheConnection) {
  Join();
  OutFrame frame = Large('z');
  ASSERT_TRUE(lender_->Lend(frame));
  auto taken = Take(frame);
  ASSERT_TRUE(taken.ok() && taken->has_value());
  Region body = std::move((*taken)->body);
  lender_.reset();
  borrower_.reset();
  EXPECT_EQ(SweepLingering(), 1u);
  EXPECT_EQ(static_cast<char>(body.data[0]), 'z');
  EXPECT_EQ(HeapBytes::live, 1);
  body = Region();
  EXPECT_EQ(SweepLingering(), 0u);
  EXPECT_EQ(HeapBytes::live, 0);
}

TEST_F(Loan, ADeadBorrowersLoansComeBack) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  OutFrame frame = Large();
  const pid_t lender_pid = getpid();
  const std::string offer = lender_->Offer();
  const pid_t child = fork();
  if (child == 0) {
    // Takes the loan as soon as it is there, says so, and never gives it back.
    auto borrower = Borrower::Open(offer);
    char byte = borrower.ok() ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    while (getppid() == lender_pid) pause();
    _exit(0);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  lender_->Accept(child);
  ASSERT_TRUE(lender_->Lend(frame));
  // What the child would do: take it.
  auto borrower = Borrower::Open(offer);
  ASSERT_TRUE(borrower.ok());
  auto taken = (*borrower)->Take(frame.header, frame.meta, uint64_t{1} << 30);
  ASSERT_TRUE(taken.ok() && taken->has_value());
  lender_->End();
  EXPECT_EQ(SweepLingering(), 1u) << "the borrower lives and may read";
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(SweepLingering(), 0u);
  EXPECT_EQ(HeapBytes::live, 0);
  close(ready[0]);
  close(ready[1]);
}

// As between containers of one network whose processes are all number 1: the descriptor is there
// and is another file. Such an offer is no mistake, the connection just copies.
TEST_F(Loan, AnOfferOfAProcessThatIsAnotherHereIsUnavailable) {
  const std::string offer = lender_->Offer();
  for (const size_t at : {sizeof(int32_t), size_t{8}}) {  // the descriptor; the file's number
    std::string other = offer;
    other[at] = static_cast<char>(other[at] ^ 1);
    const Status status = Borrower::Open(other).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << "byte " << at << ": " << status;
  }
}

TEST_F(Loan, MalformedOffersAndLoansAreRefused) {
  const std::string offer = lender_->Offer();
  EXPECT_TRUE(absl::IsInvalidArgument(Borrower::Open("").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Borrower::Open(offer + "x").status()));
  for (size_t at = 0; at < offer.size(); ++at) {
    std::string bad = offer;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    EXPECT_FALSE(Borrower::Open(bad).ok()) << "byte " << at;
  }
  Join();
  OutFrame frame = Large();
  ASSERT_TRUE(lender_->Lend(frame));
  const std::string meta = frame.meta;
  const auto with = [&](size_t at, uint64_t value, size_t bytes) {
    std::string bad = meta;
    std::memcpy(bad.data() + at, &value, bytes);
    return borrower_->Take(frame.header, bad, uint64_t{1} << 30).status();
  };
  EXPECT_FALSE(borrower_->Take(frame.header, "short", 1 << 30).ok());
  EXPECT_FALSE(with(0, 2, 1).ok()) << "not a bulk frame";
  EXPECT_FALSE(with(4, kLoanWords, 4).ok()) << "no such word";
  EXPECT_FALSE(with(8, 0, 4).ok()) << "another descriptor";
  EXPECT_FALSE(with(16, 1, 8).ok()) << "another file";
  EXPECT_FALSE(with(4, 7, 4).ok()) << "a word that is not out";
  EXPECT_FALSE(with(24, 1 << 20, 8).ok()) << "another size";
  EXPECT_FALSE(with(32, uint64_t{1} << 40, 8).ok()) << "beyond the end";
  EXPECT_FALSE(with(40, uint64_t{1} << 29, 8).ok()) << "longer than the rest";
  EXPECT_FALSE(borrower_->Take(frame.header, meta, 1000).ok()) << "over the limit";
  EXPECT_TRUE(Take(frame)->has_value()) << "the loan itself is whole";
  EXPECT_FALSE(Take(frame).ok()) << "once";
}

}  // namespace
}  // namespace weft::transport::shm
