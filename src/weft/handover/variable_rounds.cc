// SPDX-License-Identifier: Apache-2.0
#include "weft/handover/variable_rounds.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::handover {
namespace {

// What is compared, and told, as one: small, as the rows that steps write lie everywhere.
constexpr uint64_t kPiece = uint64_t{4} << 10;

wire::HandedVariable Describe(uint32_t number, int device, const std::string& container,
                              const std::string& name, const Variable& variable,
                              const Tensor& value) {
  wire::HandedVariable described;
  described.set_number(number);
  described.set_device(device);
  described.set_container(container);
  described.set_name(name);
  described.set_dtype(static_cast<int>(value.dtype()));
  for (int64_t dim : value.shape().dims()) described.add_dim(dim);
  const PartialShape& declared = variable.declared_shape();
  described.set_declares_rank(declared.known_rank());
  for (int64_t dim : declared.dims()) described.add_declared_dim(dim);
  return described;
}

}  // namespace

void VariableRounds::AddWhole(uint32_t number, uint64_t bytes, Round* round) {
  for (uint64_t at = 0; at < bytes; at += kMostInRange) {
    const uint64_t part = std::min(kMostInRange, bytes - at);
    round->ranges.push_back({number, at, part});
    round->bytes += part;
  }
}

void VariableRounds::AddPiece(uint32_t number, uint64_t offset, uint64_t bytes, Round* round) {
  round->bytes += bytes;
  if (!round->ranges.empty()) {
    ChangedRange& last = round->ranges.back();
    if (last.variable == number && last.offset + last.bytes == offset &&
        last.bytes + bytes <= kMostInRange) {
      last.bytes += bytes;
      return;
    }
  }
  round->ranges.push_back({number, offset, bytes});
}

void VariableRounds::AddDifferences(uint32_t number, const Told& before, const Tensor& now,
                                    Round* round) {
  const uint64_t bytes = now.size_bytes();
  for (uint64_t at = 0; at < bytes; at += kPiece) {
    const uint64_t part = std::min(kPiece, bytes - at);
    const size_t piece = at / kPiece;
    // Where it was written in place, it is not what was told.
    if ((piece < before.written.size() && before.written[piece]) ||
        std::memcmp(before.value.bytes() + at, now.bytes() + at, part) != 0) {
      AddPiece(number, at, part, round);
    }
  }
}

void VariableRounds::AddWritten(uint32_t number, uint64_t bytes, Told* told, Round* round) {
  for (size_t piece = 0; piece < told->written.size(); ++piece) {
    if (!told->written[piece]) continue;
    const uint64_t at = piece * kPiece;
    AddPiece(number, at, std::min(kPiece, bytes - at), round);
  }
  // What is being written may not be there yet.
  if (told->writers == 0) told->written.clear();
}

bool VariableRounds::BeginRows(const Tensor& value, const Tensor& rows) {
  if (value.memory() != nullptr || !value.buffer() || value.rank() < 1 || value.dim(0) == 0)
    return false;
  if (rows.dtype() != DType::kInt32 && rows.dtype() != DType::kInt64) return false;
  absl::MutexLock lock(&rows_mutex_);
  const auto found = by_place_.find(value.bytes());
  if (found == by_place_.end()) return false;
  Told& told = told_[found->second];
  if (told.writers == 0) {
    // We are one of the owners: is the variable the only one besides?
    if (!told.value.SharesBufferWith(value) || told.value.shape() != value.shape()) return false;
    Tensor ours = std::exchange(told.value, Tensor());
    const Tensor* const theirs = &value;
    ours = Tensor();
    if (!theirs->HasOneRef()) {
      told.value = value;
      return false;
    }
  }
  ++told.writers;
  const uint64_t row_bytes = value.size_bytes() / static_cast<uint64_t>(value.dim(0));
  told.written.resize((value.size_bytes() + kPiece - 1) / kPiece);
  const auto note = [&](const auto& span) {
    for (const int64_t row : span) {
      // An error of the update, which then writes nothing.
      if (row < 0 || row >= value.dim(0) || row_bytes == 0) continue;
      const uint64_t begin = static_cast<uint64_t>(row) * row_bytes;
      for (uint64_t at = begin / kPiece; at <= (begin + row_bytes - 1) / kPiece; ++at)
        told.written[at] = true;
    }
  };
  if (rows.dtype() == DType::kInt32) {
    note(rows.span<int32_t>());
  } else {
    note(rows.span<int64_t>());
  }
  return true;
}

void VariableRounds::EndRows(const Tensor& value) {
  absl::MutexLock lock(&rows_mutex_);
  const auto found = by_place_.find(value.bytes());
  if (found == by_place_.end()) return;
  Told& told = told_[found->second];
  if (--told.writers == 0) told.value = value;
}

Status VariableRounds::Look(int device, const std::string& container, const std::string& name,
                            const Variable& variable, Round* round) {
  StatusOr<Tensor> read = variable.Read();
  if (!read.ok()) return absl::OkStatus();  // it holds nothing
  Tensor value = *std::move(read);
  if (!IsPlain(value.dtype()) || value.memory() != nullptr) {
    return FailedPrecondition(
        "Variable '", name, "' cannot go to another process: it holds ",
        value.memory() != nullptr ? "the memory of a device" : DTypeName(value.dtype()));
  }
  const std::string key = absl::StrCat(device, "\n", container, "\n", name);
  const auto [found, is_new] = known_.try_emplace(key);
  Known& known = found->second;
  absl::MutexLock lock(&rows_mutex_);
  if (is_new) {
    known.number = static_cast<uint32_t>(told_.size());
    told_.emplace_back();
    places_.push_back(nullptr);
  }
  known.seen = round_;
  Told& told = told_[known.number];
  const uint64_t bytes = value.size_bytes();
  if (places_[known.number] == value.bytes() && told.writers > 0) {
    AddWritten(known.number, bytes, &told, round);  // by an update that is at it
    return absl::OkStatus();
  }
  if (!told.value.IsInitialized() || told.value.dtype() != value.dtype() ||
      told.value.shape() != value.shape()) {
    round->variables.push_back(Describe(known.number, device, container, name, variable, value));
    AddWhole(known.number, bytes, round);
  } else if (told.value.bytes() == value.bytes()) {
    AddWritten(known.number, bytes, &told, round);
    return absl::OkStatus();
  } else if (known.is_dense) {
    AddWhole(known.number, bytes, round);
  } else {
    // We own what we told, so that no other update wrote to it.
    const uint64_t others = round->bytes;
    AddDifferences(known.number, told, value, round);
    known.is_dense = round->bytes - others > bytes / 2;
  }
  by_place_.erase(places_[known.number]);
  places_[known.number] = value.bytes();
  by_place_[value.bytes()] = known.number;
  told.written.clear();
  told.value = std::move(value);
  return absl::OkStatus();
}

StatusOr<Round> VariableRounds::Next() {
  Round round;
  ++round_;
  Status refused;
  for (size_t i = 0; i < devices_.size(); ++i) {
    devices_[i]->resources().Visit(
        [&](const std::string& container, const std::string& name, const Resource& resource) {
          // What the task itself offers to its kernels.
          if (!refused.ok() || container.starts_with(' ')) return;
          if (const auto* const variable = dynamic_cast<const Variable*>(&resource)) {
            refused = Look(static_cast<int>(i), container, name, *variable, &round);
          } else {
            refused = FailedPrecondition("'", name, "' (", resource.DebugString(),
                                         ") cannot go to another process: only variables can");
          }
        });
  }
  WEFT_RETURN_IF_ERROR(refused);
  absl::MutexLock lock(&rows_mutex_);
  for (const auto& [key, known] : known_) {
    Told& told = told_[known.number];
    if (known.seen == round_ || !told.value.IsInitialized()) continue;
    round.variables.emplace_back().set_number(known.number);
    by_place_.erase(places_[known.number]);
    places_[known.number] = nullptr;
    told = Told();
  }
  return round;
}

}  // namespace weft::handover
