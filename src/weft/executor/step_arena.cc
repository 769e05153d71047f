// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/step_arena.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "weft/executor/schedule.h"
#include "weft/tensor/pool_allocator.h"

namespace weft::executor {

using compile::Instruction;
using compile::InstructionKind;
using compile::Lifetime;

namespace {
// Laying out more would cost more than it saves.
constexpr size_t kMostSpots = 2048;
}  // namespace

StepObserver::StepObserver(const compile::Plan& plan)
    : plan_(plan), released_at_(plan.num_slots(), 0) {
  for (size_t i = 0; i < plan.instructions().size(); ++i) {
    for (const int slot : plan.instructions()[i].releases) released_at_[slot] = static_cast<int>(i);
  }
}

void StepObserver::Saw(int index, const std::vector<Value>& slots) {
  const Instruction& instruction = plan_.instructions()[index];
  if (instruction.kind != InstructionKind::kKernel) return;
  for (int o = 0; o < instruction.num_outputs; ++o) {
    const int slot = instruction.first_output + o;
    const Value& value = slots[slot];
    const Buffer* buffer = value.tensor.buffer().get();
    if (buffer == nullptr || buffer->size() < kLargeBytes || !IsPlain(value.tensor.dtype()))
      continue;
    if (!value.is_shared) {
      large_.push_back({slot,
                        value.tensor.dtype(),
                        value.tensor.shape(),
                        {index, released_at_[slot], value.tensor.size_bytes()},
                        {slot}});
      escapes_.push_back(false);
      held_by_.push_back(1);
      buffers_.push_back(buffer);
      continue;
    }
    // Another slot's bytes under a new name: they are in use until this one is released too.
    const int k = Find(buffer);
    if (k < 0) continue;
    large_[k].lifetime.last = std::max(large_[k].lifetime.last, released_at_[slot]);
    large_[k].holders.push_back(slot);
    ++held_by_[k];
  }
}

int StepObserver::Find(const Buffer* buffer) const {
  for (size_t k = buffers_.size(); k-- > 0;) {
    if (buffers_[k] == buffer) return held_by_[k] > 0 ? static_cast<int>(k) : -1;
  }
  return -1;
}

void StepObserver::Releasing(const Value& value) {
  const Buffer* buffer = value.tensor.buffer().get();
  if (buffer == nullptr || buffer->size() < kLargeBytes) return;
  const int k = Find(buffer);
  if (k < 0) return;
  if (--held_by_[k] == 0 && !buffer->HasOneRef()) escapes_[k] = true;
}

std::vector<StepObserver::Large> StepObserver::Take() && {
  std::vector<Large> kept;
  for (size_t k = 0; k < large_.size(); ++k) {
    if (!escapes_[k]) kept.push_back(std::move(large_[k]));
  }
  return kept;
}

// The bytes, and which spots have a tensor somewhere.
struct StepArena::Block {
  Ref<Buffer> memory;
  std::vector<std::atomic<bool>> in_use;
  explicit Block(size_t num_spots) : in_use(num_spots) {}
};

namespace {

// True if everybody is done with the bytes of `a` before those of `b` are written.
bool IsDoneBefore(const StepObserver::Large& a, const StepObserver::Large& b,
                  const Schedule& schedule) {
  if (!schedule.Precedes(a.lifetime.first, b.lifetime.first)) return false;
  for (const int slot : a.holders) {
    for (const int reader : schedule.readers(slot)) {
      if (!schedule.Precedes(reader, b.lifetime.first)) return false;
    }
  }
  return true;
}

compile::MemoryPlan LayOut(const std::vector<StepObserver::Large>& large,
                           const Schedule* schedule) {
  std::vector<Lifetime> lifetimes;
  for (const StepObserver::Large& one : large) lifetimes.push_back(one.lifetime);
  if (schedule == nullptr) return compile::PlanMemory(lifetimes);
  return compile::PlanMemory(lifetimes, [&](int a, int b) {
    return !IsDoneBefore(large[a], large[b], *schedule) &&
           !IsDoneBefore(large[b], large[a], *schedule);
  });
}

}  // namespace

std::unique_ptr<StepArena> StepArena::Make(const compile::Plan& plan,
                                           std::vector<StepObserver::Large> large,
                                           const Schedule* schedule) {
  if (large.empty() || large.size() > kMostSpots) return nullptr;
  const compile::MemoryPlan layout = LayOut(large, schedule);
  auto arena = std::make_unique<StepArena>();
  arena->block_ = std::make_shared<Block>(large.size());
  arena->block_->memory = AllocateInstead(plan.device()->allocator(), layout.total);
  if (!arena->block_->memory) return nullptr;
  arena->spots_of_.resize(plan.instructions().size());
  arena->spot_of_.assign(plan.num_slots(), -1);
  for (size_t k = 0; k < large.size(); ++k) {
    Spot spot{.slot = large[k].slot,
              .dtype = large[k].dtype,
              .shape = large[k].shape,
              .offset = layout.offsets[k],
              .bytes = large[k].lifetime.bytes};
    for (size_t j = 0; j < large.size(); ++j) {
      if (j != k && layout.offsets[j] < spot.offset + spot.bytes &&
          spot.offset < layout.offsets[j] + large[j].lifetime.bytes) {
        spot.sharers.push_back(static_cast<int>(j));
      }
    }
    arena->spots_of_[large[k].lifetime.first].push_back(static_cast<int>(k));
    arena->spot_of_[spot.slot] = static_cast<int>(k);
    arena->spots_.push_back(std::move(spot));
  }
  return arena;
}

bool StepArena::IsIdle(int spot, const std::vector<Value>& slots) const {
  if (!block_->in_use[spot].load(std::memory_order_acquire)) return true;
  const Tensor& tensor = slots[spots_[spot].slot].tensor;
  return tensor.buffer().get() == spots_[spot].buffer && tensor.HasOneRef();
}

void StepArena::Place(int index, std::vector<Value>& slots) {
  for (const int k : spots_of_[index]) {
    Spot& spot = spots_[k];
    Value& value = slots[spot.slot];
    const bool free =
        IsIdle(k, slots) && std::all_of(spot.sharers.begin(), spot.sharers.end(),
                                        [&](int other) { return IsIdle(other, slots); });
    const bool holds = value.tensor.IsInitialized() && value.tensor.buffer().get() == spot.buffer;
    if (!free) {
      if (holds) value.tensor = Tensor();
      continue;
    }
    if (holds && !value.is_shared && block_->in_use[k].load(std::memory_order_acquire)) continue;
    value.tensor = Tensor();
    block_->in_use[k].store(true, std::memory_order_release);
    Ref<Buffer> buffer = WrapMemory(
        block_->memory->data() + spot.offset, spot.bytes,
        [block = block_, k] { block->in_use[k].store(false, std::memory_order_release); });
    spot.buffer = buffer.get();
    value.tensor = Tensor(spot.dtype, spot.shape, std::move(buffer));
    value.is_shared = false;
  }
}

bool StepArena::Keeps(int slot, const Value& value) const {
  const int k = spot_of_[slot];
  return k >= 0 && !value.is_shared && value.tensor.buffer().get() == spots_[k].buffer &&
         value.tensor.HasOneRef();
}

}  // namespace weft::executor
