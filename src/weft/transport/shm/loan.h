// SPDX-License-Identifier: Apache-2.0
// Bytes lent between two processes of one host. The lender says where a frame's body lies; the
// borrower maps it and reads it in place; a word of a page that both map tells when it is done.
//
// The states of a loan's word: the lender writes kLent before the frame leaves; the borrower makes
// it kTaken when the frame arrives and kReturned when the last reader lets go; a lender whose
// connection ended makes a kLent word kRevoked, so that either the frame is taken or the bytes are
// free again, never both.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

#include "base/shared_memory.h"
#include "base/status.h"
#include "weft/transport/frame.h"
#include "weft/transport/region.h"
#include "weft/transport/send_queue.h"

namespace weft::transport::shm {

// Below this many bytes a copy through the socket is cheaper.
inline constexpr uint64_t kLeastLoan = 16 * 1024;
inline constexpr uint32_t kLoanWords = 1024;

enum class LoanState : uint32_t { kFree = 0, kLent, kTaken, kReturned, kRevoked };

// The page of words and the bytes that are out: shared by a lender and, once it has ended with
// loans in use, by the list of what lingers.
class Ledger;

// One connection's lending side. Thread-safe.
class Lender {
 public:
  // Unavailable where there is no shared memory.
  static StatusOr<std::unique_ptr<Lender>> Make(const SharedMemory& memory);
  ~Lender();  // as End

  // What the borrower needs: the meta of a Share frame.
  std::string Offer() const;

  // The other side, process `pid`, has mapped the words: Lend may be used.
  void Accept(pid_t pid);

  // Makes a bulk frame whose body lies in shared memory a Lent frame and keeps the body until it is
  // returned. False, and nothing changed, if the body is small, elsewhere or in pieces, or all
  // words are out.
  bool Lend(OutFrame& frame);

  // Lets go of what was returned.
  void Sweep();

  // The connection is over. What was not taken is free; what is still read stays until it is
  // returned or the borrower's process is gone.
  void End();

  uint64_t frames_lent() const { return frames_lent_.load(std::memory_order_relaxed); }

 private:
  Lender(const SharedMemory& memory, std::unique_ptr<Ledger> ledger);

  const SharedMemory& memory_;
  std::atomic<bool> accepted_{false};
  std::atomic<bool> any_out_{false};
  std::atomic<uint64_t> frames_lent_{0};
  mutable absl::Mutex mutex_;
  std::unique_ptr<Ledger> ledger_ ABSL_GUARDED_BY(mutex_);
};

// Frees what ended lenders still had out, where it came back or its borrower died. Returns how many
// loans are left. Any thread, now and then.
size_t SweepLingering();

// One connection's borrowing side. The IO thread's; the regions it hands out may go anywhere.
class Borrower {
 public:
  // Maps the words of an offer. Unavailable if the other process cannot be reached from here,
  // InvalidArgument for an offer that is none.
  static StatusOr<std::unique_ptr<Borrower>> Open(absl::string_view offer);

  struct Frame {
    FrameHeader header;      // as the lender's caller gave it
    absl::string_view meta;  // a part of the Lent frame's
    Region body;             // read-only; its `keep` returns the loan
  };
  // The frame inside a Lent frame; nothing if the lender took it back. InvalidArgument if it lies,
  // Unavailable if the memory cannot be mapped.
  StatusOr<std::optional<Frame>> Take(const FrameHeader& header, absl::string_view meta,
                                      uint64_t max_body_bytes);

 private:
  Borrower(pid_t pid, std::shared_ptr<SharedMapping> words) : pid_(pid), words_(std::move(words)) {}
  StatusOr<std::shared_ptr<SharedMapping>> Segment(const SharedFile& file);

  const pid_t pid_;
  // Shared with the regions that are out, which outlive the connection.
  const std::shared_ptr<SharedMapping> words_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<SharedMapping>> segments_;  // by inode
};

}  // namespace weft::transport::shm
