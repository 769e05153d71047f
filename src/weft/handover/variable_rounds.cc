// SPDX-License-Identifier: Apache-2.0
#include "weft/handover/variable_rounds.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace weft::handover {
namespace {

// What is compared, and told, as one.
constexpr uint64_t kPiece = uint64_t{64} << 10;

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

void VariableRounds::AddDifferences(uint32_t number, const Tensor& before, const Tensor& now,
                                    Round* round) {
  const uint64_t bytes = now.size_bytes();
  for (uint64_t at = 0; at < bytes; at += kPiece) {
    const uint64_t part = std::min(kPiece, bytes - at);
    if (std::memcmp(before.bytes() + at, now.bytes() + at, part) == 0) continue;
    round->bytes += part;
    if (!round->ranges.empty()) {
      ChangedRange& last = round->ranges.back();
      if (last.variable == number && last.offset + last.bytes == at &&
          last.bytes + part <= kMostInRange) {
        last.bytes += part;
        continue;
      }
    }
    round->ranges.push_back({number, at, part});
  }
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
  if (is_new) {
    known.number = static_cast<uint32_t>(values_.size());
    values_.emplace_back();
  }
  known.seen = round_;
  Tensor& before = values_[known.number];
  const uint64_t bytes = value.size_bytes();
  if (!before.IsInitialized() || before.dtype() != value.dtype() ||
      before.shape() != value.shape()) {
    round->variables.push_back(Describe(known.number, device, container, name, variable, value));
    AddWhole(known.number, bytes, round);
  } else if (before.bytes() != value.bytes()) {
    // We own what we told, so that no update wrote to it.
    if (known.is_dense) {
      AddWhole(known.number, bytes, round);
    } else {
      const uint64_t others = round->bytes;
      AddDifferences(known.number, before, value, round);
      known.is_dense = round->bytes - others > bytes / 2;
    }
  }
  before = std::move(value);
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
  for (const auto& [key, known] : known_) {
    if (known.seen == round_ || !values_[known.number].IsInitialized()) continue;
    round.variables.emplace_back().set_number(known.number);
    values_[known.number] = Tensor();
  }
  return round;
}

}  // namespace weft::handover
