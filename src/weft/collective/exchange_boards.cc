// SPDX-License-Identifier: Apache-2.0
// What an exchange has on boards.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "weft/collective/exchange.h"

namespace weft::collective {

NoteKey Exchange::NoteKeyOf(size_t round) const {
  return {.epoch = group_->epoch,
          .instance = std::get<0>(key_),
          .ordinal = std::get<1>(key_),
          .frame = std::get<2>(key_),
          .iteration = std::get<3>(key_),
          .round = RoundLabel(round)};
}

// Puts this round's chunks on the board. Returns the tasks, as bits, that find them there.
uint64_t Exchange::Pin() {
  uint64_t tasks = 0;
  std::vector<bool> is_sent(chunks_.size());
  for (const Transfer& send : schedule_.rounds[round_].sends) {
    tasks |= uint64_t{1} << send.peer;
    for (int i = send.first; i < send.first + send.count; ++i)
      is_sent[static_cast<size_t>(i)] = true;
  }
  const auto size = static_cast<int64_t>(DTypeSize(dtype_));
  std::vector<Boards::Piece> pieces;
  for (int i = 0; i < schedule_.num_chunks; ++i) {
    if (!is_sent[static_cast<size_t>(i)]) continue;
    pieces.push_back({.offset = elements_ * i / schedule_.num_chunks * size,
                      .bytes = chunks_[static_cast<size_t>(i)]});
  }
  return group_->boards->Post(NoteKeyOf(round_), signature_, elements_ * size, pieces, tasks);
}

bool Exchange::LooksAtBoards() const {
  return !busy && !over && on_boards_ && stage_ == Stage::kExchanging &&
         round_ < schedule_.rounds.size();
}

Exchange::Lookout Exchange::Missing() const {
  Lookout lookout{.boards = group_->boards, .key = NoteKeyOf(round_), .tasks = {}, .turn = turn};
  for (const Transfer& receive : schedule_.rounds[round_].receives) {
    if (!inbox_.contains({RoundLabel(round_), receive.peer})) lookout.tasks.push_back(receive.peer);
  }
  return lookout;
}

bool Exchange::Lookout::IsAllThere() const {
  return std::all_of(tasks.begin(), tasks.end(),
                     [this](int task) { return boards->Has(task, key); });
}

Status Exchange::Collect() {
  if (!LooksAtBoards()) return absl::OkStatus();
  const Lookout lookout = Missing();
  for (const int task : lookout.tasks) {
    std::optional<Boards::Note> note = lookout.boards->Find(task, lookout.key);
    if (!note.has_value()) continue;
    WEFT_RETURN_IF_ERROR(Check(note->signature, group_->tasks[static_cast<size_t>(task)]));
    inbox_.try_emplace({lookout.key.round, task},
                       Packet{.message = {}, .body = {}, .note = std::move(note)});
  }
  return absl::OkStatus();
}

void Exchange::Sleep() {
  if (!std::exchange(asleep_, true)) group_->boards->Sleep();
}

uint64_t Exchange::Sleepers() const {
  uint64_t sleepers = 0;
  if (!on_boards_ || round_ >= schedule_.rounds.size()) return sleepers;
  for (const Transfer& send : schedule_.rounds[round_].sends) {
    if (group_->boards->IsAsleep(send.peer)) sleepers |= uint64_t{1} << send.peer;
  }
  return sleepers;
}

}  // namespace weft::collective
