// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/shm/loan.h"

#include <array>
#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::transport::shm {
namespace {

// The meta of a Share frame.
struct OfferBytes {
  int32_t pid;
  int32_t fd;
  uint64_t inode;
  uint64_t bytes;
  uint64_t nonce;  // also the first word of the page
};
static_assert(sizeof(OfferBytes) == 32);

// What stands before the inner meta of a Lent frame.
struct LoanBytes {
  uint8_t kind;  // of the frame inside
  uint8_t zero[3];
  uint32_t word;
  int32_t fd;
  uint32_t zero_too;
  uint64_t inode;
  uint64_t segment_bytes;
  uint64_t offset;
  uint64_t bytes;
};
static_assert(sizeof(LoanBytes) == 48);

using Word = std::atomic<LoanState>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 4);

// The page: a nonce, then the words.
constexpr uint64_t kPageBytes = 8 + kLoanWords * sizeof(Word);

uint64_t& NonceOf(const SharedMapping& page) { return *reinterpret_cast<uint64_t*>(page.data()); }
Word& WordOf(const SharedMapping& page, uint32_t index) {
  return reinterpret_cast<Word*>(page.data() + 8)[index];
}

template <typename T>
std::string BytesOf(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// True if the process behind `pidfd` has ended. A descriptor that could not be had never tells.
bool HasEnded(int pidfd) {
  if (pidfd < 0) return false;
  pollfd poll_fd = {pidfd, POLLIN, 0};
  return poll(&poll_fd, 1, 0) == 1;
}

// Keeps a borrowed body; gives it back when the last reader lets go.
class Borrowed final : public RefCounted {
 public:
  Borrowed(std::shared_ptr<SharedMapping> words, uint32_t word,
           std::shared_ptr<SharedMapping> segment)
      : words_(std::move(words)), segment_(std::move(segment)), word_(word) {}
  ~Borrowed() override {
    WordOf(*words_, word_).store(LoanState::kReturned, std::memory_order_release);
  }

 private:
  const std::shared_ptr<SharedMapping> words_, segment_;  // shared with others of the connection
  const uint32_t word_;
};

}  // namespace

class Ledger {
 public:
  explicit Ledger(std::unique_ptr<SharedMapping> page) : page_(std::move(page)) {
    free_.reserve(kLoanWords);
    for (uint32_t k = kLoanWords; k-- > 0;) free_.push_back(k);
  }

  const SharedMapping& page() const { return *page_; }
  void set_borrower(pid_t pid) {
    pidfd_ = OwnedFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  }
  bool borrower_ended() const { return HasEnded(pidfd_.get()); }
  size_t out() const { return out_.size(); }

  std::optional<uint32_t> Put(Region body) {
    if (free_.empty()) return std::nullopt;
    const uint32_t word = free_.back();
    free_.pop_back();
    WordOf(*page_, word).store(LoanState::kLent, std::memory_order_release);
    out_.push_back({word, std::move(body)});
    return word;
  }

  // Moves the bodies that came back to `back`; with `revoke` also those that were not taken.
  void Collect(bool revoke, std::vector<Region>* back) {
    size_t kept = 0;
    for (Loan& loan : out_) {
      Word& word = WordOf(*page_, loan.word);
      LoanState state = word.load(std::memory_order_acquire);
      if (revoke && state == LoanState::kLent &&
          word.compare_exchange_strong(state, LoanState::kRevoked)) {
        back->push_back(std::move(loan.body));  // its word is not used again
      } else if (state == LoanState::kReturned) {
        back->push_back(std::move(loan.body));
        word.store(LoanState::kFree, std::memory_order_relaxed);
        free_.push_back(loan.word);
      } else {
        out_[kept++] = std::move(loan);
      }
    }
    out_.resize(kept);
  }

 private:
  struct Loan {
    uint32_t word;
    Region body;
  };
  const std::unique_ptr<SharedMapping> page_;
  OwnedFd pidfd_;
  std::vector<uint32_t> free_;
  std::vector<Loan> out_;
};

namespace {

// Ledgers of ended lenders with loans that are still read.
struct Lingering {
  absl::Mutex mutex;
  std::vector<std::unique_ptr<Ledger>> ledgers ABSL_GUARDED_BY(mutex);
};
Lingering& LingeringLedgers() {
  static Lingering* const lingering = new Lingering();  // loans may outlive main()
  return *lingering;
}

}  // namespace

size_t SweepLingering() {
  Lingering& lingering = LingeringLedgers();
  std::vector<Region> back;
  std::vector<std::unique_ptr<Ledger>> ended;  // both let go without the lock
  absl::MutexLock lock(&lingering.mutex);
  size_t left = 0, kept = 0;
  for (std::unique_ptr<Ledger>& ledger : lingering.ledgers) {
    ledger->Collect(true, &back);
    if (ledger->out() == 0 || ledger->borrower_ended()) {
      ended.push_back(std::move(ledger));
    } else {
      left += ledger->out();
      lingering.ledgers[kept++] = std::move(ledger);
    }
  }
  lingering.ledgers.resize(kept);
  return left;
}

// ---- The lender.

StatusOr<std::unique_ptr<Lender>> Lender::Make(const SharedMemory& memory) {
  if (!memory.enabled()) return Unavailable("Shared memory is off");
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<SharedMapping> page,
                        SharedMapping::Create("weft-loans", kPageBytes));
  uint64_t nonce = 0;
  if (getentropy(&nonce, sizeof(nonce)) != 0) return Unavailable("No random number is to be had");
  NonceOf(*page) = nonce;
  return std::unique_ptr<Lender>(new Lender(memory, std::make_unique<Ledger>(std::move(page))));
}

Lender::Lender(const SharedMemory& memory, std::unique_ptr<Ledger> ledger)
    : memory_(memory), ledger_(std::move(ledger)) {}

Lender::~Lender() { End(); }

std::string Lender::Offer() const {
  absl::MutexLock lock(&mutex_);
  const SharedMapping& page = ledger_->page();
  return BytesOf(
      OfferBytes{getpid(), page.file().fd, page.file().inode, page.file().bytes, NonceOf(page)});
}

void Lender::Accept(pid_t pid) {
  absl::MutexLock lock(&mutex_);
  if (ledger_ == nullptr) return;
  ledger_->set_borrower(pid);
  accepted_.store(true, std::memory_order_release);
}

bool Lender::Lend(OutFrame& frame) {
  if (!accepted_.load(std::memory_order_acquire) || !IsBulk(frame.header.kind) ||
      frame.body.size() != 1 || frame.body[0].size < kLeastLoan || !frame.body[0].keep ||
      frame.meta.size() > kMaxMetaBytes - sizeof(LoanBytes)) {
    return false;
  }
  const Region& body = frame.body[0];
  const std::optional<SharedMemory::Place> place = memory_.Find(body.data, body.size);
  if (!place.has_value()) return false;
  Sweep();
  LoanBytes loan{};
  loan.kind = static_cast<uint8_t>(frame.header.kind);
  loan.fd = place->file.fd;
  loan.inode = place->file.inode;
  loan.segment_bytes = place->file.bytes;
  loan.offset = place->offset;
  loan.bytes = body.size;
  {
    absl::MutexLock lock(&mutex_);
    if (ledger_ == nullptr) return false;
    const std::optional<uint32_t> word = ledger_->Put(body);
    if (!word.has_value()) return false;
    loan.word = *word;
    any_out_.store(true, std::memory_order_relaxed);
  }
  frame.meta = BytesOf(loan) + frame.meta;
  frame.body.clear();
  frame.header.kind = FrameKind::kLent;
  frame.header.meta_bytes = static_cast<uint32_t>(frame.meta.size());
  frame.header.body_bytes = 0;
  frames_lent_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void Lender::Sweep() {
  if (!any_out_.load(std::memory_order_relaxed)) return;
  std::vector<Region> back;  // let go without the lock
  absl::MutexLock lock(&mutex_);
  if (ledger_ == nullptr) return;
  ledger_->Collect(false, &back);
  if (ledger_->out() == 0) any_out_.store(false, std::memory_order_relaxed);
}

void Lender::End() {
  std::unique_ptr<Ledger> ledger;
  {
    absl::MutexLock lock(&mutex_);
    ledger = std::move(ledger_);
  }
  if (ledger == nullptr) return;
  std::vector<Region> back;
  ledger->Collect(true, &back);
  if (ledger->out() == 0) return;
  Lingering& lingering = LingeringLedgers();
  absl::MutexLock lock(&lingering.mutex);
  lingering.ledgers.push_back(std::move(ledger));
}

// ---- The borrower.

StatusOr<std::unique_ptr<Borrower>> Borrower::Open(absl::string_view offer) {
  OfferBytes bytes;
  if (offer.size() != sizeof(bytes)) return InvalidArgument("Share frame is malformed");
  std::memcpy(&bytes, offer.data(), sizeof(bytes));
  if (bytes.pid <= 0 || bytes.fd < 0 || bytes.bytes != kPageBytes) {
    return InvalidArgument("Share frame is malformed");
  }
  // In containers that share a network, but not their processes' numbers, the number is another's.
  StatusOr<std::shared_ptr<SharedMapping>> opened =
      SharedMapping::Open(bytes.pid, {bytes.fd, bytes.inode, bytes.bytes}, /*writable=*/true);
  if (!opened.ok()) return Unavailable(opened.status().message());
  const std::shared_ptr<SharedMapping> words = *std::move(opened);
  if (NonceOf(*words) != bytes.nonce) {
    return Unavailable("Process ", bytes.pid, " here is not the one that offers its memory");
  }
  return std::unique_ptr<Borrower>(new Borrower(bytes.pid, std::move(words)));
}

StatusOr<std::shared_ptr<SharedMapping>> Borrower::Segment(const SharedFile& file) {
  std::shared_ptr<SharedMapping>& segment = segments_[file.inode];
  if (segment == nullptr) {
    StatusOr<std::unique_ptr<SharedMapping>> opened = SharedMapping::Open(pid_, file, false);
    if (!opened.ok()) {
      segments_.erase(file.inode);
      return opened.status();
    }
    segment = *std::move(opened);
  }
  if (segment->size() != file.bytes) return InvalidArgument("Lent memory has another size");
  return segment;
}

StatusOr<std::optional<Borrower::Frame>> Borrower::Take(const FrameHeader& header,
                                                        absl::string_view meta,
                                                        uint64_t max_body_bytes) {
  LoanBytes loan;
  if (meta.size() < sizeof(loan)) return InvalidArgument("Lent frame is malformed");
  std::memcpy(&loan, meta.data(), sizeof(loan));
  Frame frame;
  frame.header = header;
  frame.header.kind = static_cast<FrameKind>(loan.kind);
  if (!IsBulk(frame.header.kind) || loan.word >= kLoanWords || loan.bytes > max_body_bytes ||
      loan.offset > loan.segment_bytes || loan.bytes > loan.segment_bytes - loan.offset) {
    return InvalidArgument("Lent frame is malformed");
  }
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<SharedMapping> segment,
                        Segment({loan.fd, loan.inode, loan.segment_bytes}));
  LoanState expected = LoanState::kLent;
  if (!WordOf(*words_, loan.word).compare_exchange_strong(expected, LoanState::kTaken)) {
    if (expected == LoanState::kRevoked) return std::optional<Frame>();
    return InvalidArgument("Lent frame names a loan that is not out: ", loan.word);
  }
  frame.meta = meta.substr(sizeof(loan));
  frame.header.meta_bytes = static_cast<uint32_t>(frame.meta.size());
  frame.header.body_bytes = loan.bytes;
  std::byte* const data = segment->data() + loan.offset;
  frame.body = Region(data, loan.bytes, MakeRef<Borrowed>(words_, loan.word, std::move(segment)));
  frame.body.read_only = true;
  return frame;
}

}  // namespace weft::transport::shm
