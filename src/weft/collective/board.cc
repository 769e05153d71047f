// SPDX-License-Identifier: Apache-2.0
#include "weft/collective/board.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include <unistd.h>

namespace weft::collective {
namespace {

using Number = std::atomic<uint64_t>;
static_assert(Number::is_always_lock_free);

// A note but for its bytes.
struct NoteHead {
  NoteKey key;
  uint64_t tasks = 0;  // that it is for
  uint64_t size = 0;   // of the whole
  uint64_t signature_size = 0;
  char signature[kMostSignatureOfNote] = {};
};
constexpr size_t kHeadWords = sizeof(NoteHead) / sizeof(uint64_t);
static_assert(sizeof(NoteHead) % sizeof(uint64_t) == 0);
constexpr size_t kWordsBeforeSignature = offsetof(NoteHead, signature) / sizeof(uint64_t);
static_assert(offsetof(NoteHead, signature) % sizeof(uint64_t) == 0);

// Those of the head that say anything.
size_t WordsWith(uint64_t signature_size) {
  return kWordsBeforeSignature + (signature_size + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

struct OfferBytes {
  int32_t pid;
  int32_t fd;
  uint64_t inode;
  uint64_t bytes;
  uint64_t nonce;
};
static_assert(sizeof(OfferBytes) == 32);

constexpr uint64_t BitOf(int task) { return uint64_t{1} << task; }

// Keeps the mapping that a tensor's bytes lie in.
class KeptBoard final : public RefCounted {
 public:
  explicit KeptBoard(std::shared_ptr<Board> board) : board_(std::move(board)) {}

 private:
  const std::shared_ptr<Board> board_;
};

}  // namespace

// As it lies in memory, zeros at first. Its owner alone writes, of any thread; others look whenever
// they like, so each field says what orders it. No fences: thread sanitizer does not know them.
struct BoardLayout {
  // Set before the board is offered; who has the offer has it by a message, which orders both.
  Number nonce;
  // Calls of the owner that wait for messages. Who sleeps adds to it and then looks at `numbers`;
  // who posts stores a number and then looks at it. All four are sequentially consistent: one of
  // the two sees what the other did, so that nobody sleeps beside a note that nobody tells of.
  alignas(64) std::atomic<uint32_t> asleep;
  // Zero while the note is written; else larger than every number before. It is stored last, which
  // releases the head and the bytes; a look begins with it, which acquires them. A note's bytes
  // stay until all that it is for have returned it, so for these one look at the number is enough.
  alignas(64) Number numbers[kNotesOfBoard];
  // Nonces of the boards that the owner looks at. Only what is in it gets notes; the owner had
  // opened the board before, and nothing else of it is asked for.
  alignas(64) Number reads[kMostTasksOfBoards];
  // Of each task's notes, the number that the owner has done with last. The release orders its last
  // look at the bytes before, and the acquire of who wrote them the next bytes behind it.
  alignas(64) Number returned[kMostTasksOfBoards][kNotesOfBoard];
  // May be written while somebody looks whom the last note here was not for. Each word is released
  // after the zero in `numbers`, and acquired before the second look there: who has read a word of
  // the next note finds another number, and takes nothing from it.
  alignas(64) Number heads[kNotesOfBoard][kHeadWords];
};

namespace {

// The number of the note at this place, as far as it is not in `returned` and of `key`, where one
// is given, and its head; 0: there is none, or it is being written.
uint64_t ReadHead(const BoardLayout& board, int place, const Number* returned, const NoteKey* key,
                  bool with_signature, NoteHead* head) {
  const uint64_t number = board.numbers[place].load(std::memory_order_seq_cst);
  if (number == 0 || number == returned[place].load(std::memory_order_relaxed)) return 0;
  uint64_t words[kHeadWords];
  const auto read = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      words[i] = board.heads[place][i].load(std::memory_order_acquire);
    std::memcpy(head, words, end * sizeof(uint64_t));
  };
  read(0, kWordsBeforeSignature);
  if (key != nullptr && !(head->key == *key)) return 0;
  if (head->size > kMostBytesOfNote || head->signature_size > kMostSignatureOfNote) return 0;
  if (with_signature) read(kWordsBeforeSignature, WordsWith(head->signature_size));
  return board.numbers[place].load(std::memory_order_relaxed) == number ? number : 0;
}

constexpr uint64_t kPage = 4096;
constexpr uint64_t kRoomsBegin = (sizeof(BoardLayout) + kPage - 1) / kPage * kPage;
constexpr uint64_t kBoardBytes = kRoomsBegin + uint64_t{kNotesOfBoard} * kMostBytesOfNote;

}  // namespace

StatusOr<std::shared_ptr<Board>> Board::Make() {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<SharedMapping> memory,
                        SharedMapping::Create("weft-board", kBoardBytes));
  uint64_t nonce = 0;
  if (getentropy(&nonce, sizeof(nonce)) != 0) return Unavailable("No random number is to be had");
  std::shared_ptr<Board> board(new Board(std::move(memory)));
  board->layout().nonce.store(nonce | 1);
  return board;
}

StatusOr<std::shared_ptr<Board>> Board::Open(absl::string_view offer) {
  OfferBytes bytes;
  if (offer.size() != sizeof(bytes)) return InvalidArgument("The offer of a board is malformed");
  std::memcpy(&bytes, offer.data(), sizeof(bytes));
  if (bytes.pid <= 0 || bytes.fd < 0 || bytes.bytes != kBoardBytes)
    return InvalidArgument("The offer of a board is malformed");
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<SharedMapping> memory,
                        SharedMapping::Open(bytes.pid, {bytes.fd, bytes.inode, bytes.bytes},
                                            /*writable=*/false));
  std::shared_ptr<Board> board(new Board(std::move(memory)));
  // In containers that share a network, but not their processes' numbers, the number is another's.
  if (board->layout().nonce.load() != bytes.nonce)
    return Unavailable("Process ", bytes.pid, " here is not the one that offers its board");
  return board;
}

std::string Board::Offer() const {
  const SharedFile& file = memory_->file();
  const OfferBytes bytes{getpid(), file.fd, file.inode, file.bytes, layout().nonce.load()};
  return std::string(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
}

BoardLayout& Board::layout() const { return *reinterpret_cast<BoardLayout*>(memory_->data()); }

std::byte* Board::RoomOf(int note) const {
  return memory_->data() + kRoomsBegin + static_cast<uint64_t>(note) * kMostBytesOfNote;
}

std::shared_ptr<Boards> Boards::Open(std::shared_ptr<Board> own, int me,
                                     const std::vector<std::string>& offers) {
  if (own == nullptr || me < 0 || offers.size() > kMostTasksOfBoards ||
      offers[static_cast<size_t>(me)] != own->Offer()) {
    return nullptr;
  }
  std::vector<std::shared_ptr<Board>> boards(offers.size());
  for (size_t task = 0; task < offers.size(); ++task) {
    if (static_cast<int>(task) == me || offers[task].empty()) continue;
    StatusOr<std::shared_ptr<Board>> board = Board::Open(offers[task]);
    if (board.ok()) boards[task] = *std::move(board);
  }
  return std::shared_ptr<Boards>(new Boards(std::move(own), me, std::move(boards)));
}

Boards::Boards(std::shared_ptr<Board> own, int me, std::vector<std::shared_ptr<Board>> boards)
    : own_(std::move(own)), me_(me), boards_(std::move(boards)) {
  for (size_t task = 0; task < boards_.size(); ++task) {
    if (boards_[task] == nullptr) continue;
    opened_ |= BitOf(static_cast<int>(task));
    own_->layout().reads[task].store(boards_[task]->layout().nonce.load());
  }
}

uint64_t Boards::Readers() const {
  const uint64_t nonce = own_->layout().nonce.load(std::memory_order_relaxed);
  uint64_t readers = 0;
  for (size_t task = 0; task < boards_.size(); ++task) {
    if (boards_[task] != nullptr &&
        boards_[task]->layout().reads[me_].load(std::memory_order_acquire) == nonce) {
      readers |= BitOf(static_cast<int>(task));
    }
  }
  return readers;
}

int Boards::FreePlace() const {
  for (int place = 0; place < kNotesOfBoard; ++place) {
    const Pinned& pinned = pinned_[place];
    bool is_free = true;
    for (uint64_t left = pinned.tasks; left != 0 && is_free; left &= left - 1) {
      const Board& reader = *boards_[static_cast<size_t>(std::countr_zero(left))];
      is_free =
          reader.layout().returned[me_][place].load(std::memory_order_acquire) == pinned.number;
    }
    if (is_free) return place;
  }
  return -1;
}

uint64_t Boards::Post(const NoteKey& key, absl::string_view signature, int64_t size,
                      const std::vector<Piece>& pieces, uint64_t tasks) {
  if (size > kMostBytesOfNote || signature.size() > kMostSignatureOfNote) return 0;
  tasks &= Readers();
  if (tasks == 0) return 0;
  absl::MutexLock lock(&mutex_);
  const int place = FreePlace();
  if (place < 0) return 0;
  NoteHead head{.key = key,
                .tasks = tasks,
                .size = static_cast<uint64_t>(size),
                .signature_size = signature.size()};
  std::memcpy(head.signature, signature.data(), signature.size());
  uint64_t words[kHeadWords];
  std::memcpy(words, &head, sizeof(head));
  BoardLayout& layout = own_->layout();
  layout.numbers[place].store(0, std::memory_order_relaxed);
  for (size_t i = 0; i < WordsWith(signature.size()); ++i)
    layout.heads[place][i].store(words[i], std::memory_order_release);
  for (const Piece& piece : pieces) {
    if (piece.bytes.size_bytes() > 0)
      std::memcpy(own_->RoomOf(place) + piece.offset, piece.bytes.bytes(),
                  piece.bytes.size_bytes());
  }
  pinned_[place] = {.number = next_number_++, .tasks = tasks};
  layout.numbers[place].store(pinned_[place].number, std::memory_order_seq_cst);
  return tasks;
}

std::optional<uint64_t> Boards::Look(int task, const NoteKey& key, Note* note) const {
  const std::shared_ptr<Board>& board = boards_[static_cast<size_t>(task)];
  if (board == nullptr) return std::nullopt;
  for (int place = 0; place < kNotesOfBoard; ++place) {
    NoteHead head;
    const uint64_t number = ReadHead(board->layout(), place, own_->layout().returned[task], &key,
                                     note != nullptr, &head);
    if (number == 0 || (head.tasks & BitOf(me_)) == 0) continue;
    if (note != nullptr) {
      note->signature.assign(head.signature, head.signature_size);
      note->place = place;
      note->number = number;
    }
    return head.size;
  }
  return std::nullopt;
}

std::optional<Boards::Note> Boards::Find(int task, const NoteKey& key) const {
  Note note;
  const std::optional<uint64_t> size = Look(task, key, &note);
  if (!size.has_value()) return std::nullopt;
  const std::shared_ptr<Board>& board = boards_[static_cast<size_t>(task)];
  if (*size > 0) {
    note.whole = Tensor(DType::kUint8, Shape{static_cast<int64_t>(*size)},
                        WrapReadOnly(board->RoomOf(note.place), *size, MakeRef<KeptBoard>(board)));
  }
  return note;
}

std::vector<int32_t> Boards::Instances(int task) const {
  std::vector<int32_t> instances;
  const std::shared_ptr<Board>& board = boards_[static_cast<size_t>(task)];
  for (int place = 0; board != nullptr && place < kNotesOfBoard; ++place) {
    NoteHead head;
    const uint64_t number = ReadHead(board->layout(), place, own_->layout().returned[task], nullptr,
                                     /*with_signature=*/false, &head);
    if (number != 0 && (head.tasks & BitOf(me_)) != 0) instances.push_back(head.key.instance);
  }
  return instances;
}

void Boards::Return(int task, const Note& note) {
  own_->layout().returned[task][note.place].store(note.number, std::memory_order_release);
}

void Boards::Sleep() { own_->layout().asleep.fetch_add(1, std::memory_order_seq_cst); }

void Boards::Wake() { own_->layout().asleep.fetch_sub(1, std::memory_order_seq_cst); }

bool Boards::IsAsleep(int task) const {
  const std::shared_ptr<Board>& board = boards_[static_cast<size_t>(task)];
  return board != nullptr && board->layout().asleep.load(std::memory_order_seq_cst) != 0;
}

}  // namespace weft::collective
