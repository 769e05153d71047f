// SPDX-License-Identifier: Apache-2.0
#include "weft/server/kept_variables.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "base/log.h"
#include "base/shared_memory.h"
#include "supervisor/supervisor.h"

namespace weft::server {
namespace {

using supervisor::KeptMemory;
using supervisor::KeptPlace;

constexpr size_t kPage = 4096;
// Of a large value fewer rows than this share of it are noted; else it is copied as a whole.
constexpr size_t kLeastRowsToCopy = 4;
// Smaller values are copied at each commit that finds them changed; larger ones shall lie in kept
// memory themselves.
constexpr size_t kLeastToMove = size_t{16} << 10;

// How many updates of rows this thread is in: it need not wait for a commit, which waits for it.
thread_local int row_writes_here = 0;

std::string KeyOf(int device, absl::string_view container, absl::string_view name) {
  return absl::StrCat(device, "\n", container, "\n", name);
}

struct Key {
  int device = 0;
  std::string container;
  std::string name;
};

std::optional<Key> ParseKey(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits('\n', 2));
  Key key;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[0], &key.device)) return std::nullopt;
  key.container = parts[1];
  key.name = parts[2];
  return key;
}

// The dtype, then the dimensions.
StatusOr<std::pair<DType, Shape>> Described(const KeptPlace& place) {
  if (place.description.empty()) return DataLoss("it has no type");
  const int64_t number = place.description[0];
  if (number <= 0 || number >= kNumDTypes || !IsPlain(static_cast<DType>(number)))
    return DataLoss("there is no type ", number);
  const auto dtype = static_cast<DType>(number);
  WEFT_ASSIGN_OR_RETURN(Shape shape,
                        Shape::Make(absl::MakeConstSpan(place.description).subspan(1)));
  if (static_cast<uint64_t>(shape.num_elements()) * DTypeSize(dtype) != place.bytes) {
    return DataLoss("it is kept in ", place.bytes, " bytes, which is not the size of ",
                    DTypeName(dtype), " ", shape.ToString());
  }
  return std::make_pair(dtype, shape);
}

// Pages of the kept memory that go back when nobody has them any more.
Ref<Buffer> OwnPages(std::byte* data, size_t bytes) {
  return WrapMemory(data, bytes, [data, bytes] { ProcessSharedMemory().Free(data, bytes); });
}

Ref<Buffer> TakePages(size_t bytes) {
  const size_t whole = (std::max<size_t>(bytes, 1) + kPage - 1) / kPage * kPage;
  std::byte* const data = ProcessSharedMemory().Allocate(whole);
  return data == nullptr ? nullptr : OwnPages(data, whole);
}

}  // namespace

StatusOr<std::unique_ptr<KeptVariables>> KeptVariables::Inherit() {
  WEFT_ASSIGN_OR_RETURN(std::optional<supervisor::Inheritance> inherited,
                        supervisor::TakeInheritance());
  if (!inherited.has_value()) return std::unique_ptr<KeptVariables>();
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<SharedMapping> data,
                        SharedMapping::Adopt(std::move(inherited->files.data)));
  std::unique_ptr<KeptVariables> kept(new KeptVariables(data->data(), data->size()));
  WEFT_ASSIGN_OR_RETURN(
      kept->memory_, KeptMemory::Open(inherited->files.control.get(), data->data(), data->size()));
  std::vector<std::pair<uint64_t, uint64_t>> taken;
  for (const auto& [name, place] : kept->memory_->found()) {
    if (place.bytes > 0) taken.emplace_back(place.offset, place.bytes);
  }
  WEFT_ASSIGN_OR_RETURN(kept->rooms_,
                        ProcessSharedMemory().EnableIn(std::move(data), std::move(taken)));
  kept->counts_.starts = inherited->starts;
  kept->counts_.put_back = kept->memory_->rows_put_back();
  return kept;
}

KeptVariables::~KeptVariables() = default;

void KeptVariables::Keep(const std::vector<std::unique_ptr<Device>>& devices) {
  for (const auto& device : devices) devices_.push_back(device.get());
  Restore(devices);
  for (Device* device : devices_) OfferKeeper(device, this);
  if (rooms_.empty()) return;
  // Gigabytes of pages take a while, and nobody needs to wait for it.
  sweep_ = std::make_unique<Thread>("weft-kept", [rooms = std::move(rooms_)] {
    for (const auto& [data, bytes] : rooms) ProcessSharedMemory().Free(data, bytes);
  });
}

void KeptVariables::Restore(const std::vector<std::unique_ptr<Device>>& devices) {
  // Values that share bytes share their owner: in order of their places, those that overlap.
  std::vector<std::pair<const std::string*, const KeptPlace*>> order;
  for (const auto& [name, place] : memory_->found()) order.emplace_back(&name, &place);
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.second->offset < b.second->offset; });
  size_t next = 0;
  while (next < order.size()) {
    const uint64_t begin = order[next].second->offset / kPage * kPage;
    uint64_t end = begin;
    size_t last = next;
    for (; last < order.size() && (last == next || order[last].second->offset < end); ++last) {
      const KeptPlace& place = *order[last].second;
      if (place.bytes > 0)
        end = std::max(end, (place.offset + place.bytes + kPage - 1) / kPage * kPage);
    }
    const Ref<Buffer> pages = OwnPages(data_ + begin, end - begin);
    for (; next < last; ++next) {
      const auto& [name, place] = order[next];
      if (!RestoreOne(devices, *name, *place, pages, begin))
        WEFT_LOG(WARNING) << "What was kept under this name makes no sense: " << *name;
    }
  }
}

bool KeptVariables::RestoreOne(const std::vector<std::unique_ptr<Device>>& devices,
                               const std::string& name, const KeptPlace& place,
                               const Ref<Buffer>& pages, uint64_t begin) {
  const std::optional<Key> key = ParseKey(name);
  const StatusOr<std::pair<DType, Shape>> described = Described(place);
  if (!key.has_value() || !described.ok() || key->device < 0 ||
      key->device >= static_cast<int>(devices.size())) {
    return false;
  }
  const DType dtype = described->first;
  const Shape& shape = described->second;
  const Tensor value(dtype, shape, pages, place.bytes > 0 ? place.offset - begin : 0);
  const auto made = devices[static_cast<size_t>(key->device)]->resources().LookupOrCreate<Variable>(
      key->container, key->name, [&]() -> StatusOr<Ref<Variable>> {
        auto variable = MakeRef<Variable>(key->name, dtype, PartialShape(shape));
        variable->Assign(value);
        return variable;
      });
  absl::MutexLock lock(&commit_mutex_);
  Slot* const slot = SlotOf(key->device, key->container, key->name);
  if (!made.ok() || slot == nullptr) return false;
  slot->committed = value;
  if (place.bytes > 0) {
    absl::MutexLock rows(&rows_mutex_);
    by_place_[value.bytes()] = slot;
  }
  ++counts_.restored;
  counts_.restored_bytes += static_cast<int64_t>(place.bytes);
  return true;
}

KeptVariables::Slot* KeptVariables::SlotOf(int device, const std::string& container,
                                           const std::string& name) {
  std::string key = KeyOf(device, container, name);
  const auto known = slots_.find(key);
  if (known != slots_.end()) return known->second.get();
  auto slot = std::make_unique<Slot>();
  const StatusOr<uint32_t> number = memory_->EntryOf(key);
  if (!number.ok()) {
    WEFT_LOG_EVERY(WARNING, absl::Seconds(60))
        << "Variable " << name << " is not kept: " << number.status().message();
    return nullptr;
  }
  slot->number = *number;
  return slots_.emplace(std::move(key), std::move(slot)).first->second.get();
}

bool KeptVariables::Lies(const Tensor& value) const {
  return value.bytes() >= data_ && value.bytes() < data_ + bytes_;
}

bool KeptVariables::MayWriteRows(const Tensor& value, const Tensor& rows) {
  if (value.memory() != nullptr || !value.buffer()) return false;
  Slot* slot = nullptr;
  {
    absl::MutexLock lock(&rows_mutex_);
    const auto known = by_place_.find(value.bytes());
    if (known == by_place_.end()) return false;
    slot = known->second;
    if (slot->writes_rows) return true;  // an update that names the variable twice
    if (row_writes_here == 0) {
      const auto none = [this] { return !commits_; };
      rows_mutex_.Await(absl::Condition(&none));
    }
    if (slot->committed.bytes() != value.bytes()) return false;
    slot->writes_rows = true;
    ++row_writers_;
    ++row_writes_here;
  }
  // We are one of the owners: is the variable the only one besides?
  Tensor ours = std::exchange(slot->committed, Tensor());
  if (ours.SharesBufferWith(value)) {
    ours = Tensor();
    if (value.HasOneRef() && Note(value, rows)) return true;
    ours = value;
  }
  slot->committed = std::move(ours);
  absl::MutexLock lock(&rows_mutex_);
  slot->writes_rows = false;
  --row_writers_;
  --row_writes_here;
  return false;
}

void KeptVariables::RowsWritten(const Tensor& value) {
  absl::MutexLock lock(&rows_mutex_);
  const auto known = by_place_.find(value.bytes());
  if (known == by_place_.end() || !known->second->writes_rows) return;
  known->second->committed = value;
  known->second->writes_rows = false;
  --row_writers_;
  --row_writes_here;
}

bool KeptVariables::Note(const Tensor& value, const Tensor& rows) {
  if (value.rank() < 1 || value.dim(0) == 0) return false;
  const size_t row_bytes = value.size_bytes() / static_cast<size_t>(value.dim(0));
  const auto count = static_cast<size_t>(rows.num_elements());
  if (count > static_cast<size_t>(value.dim(0)) / kLeastRowsToCopy) return false;
  const auto begin = static_cast<uint64_t>(value.bytes() - data_);
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  ranges.reserve(count);
  const auto add = [&](const auto& span) {
    for (const int64_t row : span) {
      // An error of the update, which then writes nothing.
      if (row < 0 || row >= value.dim(0)) continue;
      ranges.emplace_back(begin + static_cast<uint64_t>(row) * row_bytes, row_bytes);
    }
  };
  if (rows.dtype() == DType::kInt32) {
    add(rows.span<int32_t>());
  } else if (rows.dtype() == DType::kInt64) {
    add(rows.span<int64_t>());
  } else {
    return false;
  }
  return memory_->NoteOldBytes(ranges);
}

void KeptVariables::Refuse(Slot* slot, const Variable& variable) {
  if (std::exchange(slot->is_refused, true)) return;
  WEFT_LOG(WARNING) << "Variable " << variable.name()
                    << " cannot be kept in memory; after a kill it comes from the checkpoint";
}

void KeptVariables::Look(Slot* slot, Variable& variable, std::vector<Next>* next) {
  absl::MutexLock lock(&variable.mutex());
  const Tensor& value = variable.ValueLocked();
  const bool had_value = slot->committed.IsInitialized() || slot->copy;
  if (!value.IsInitialized()) {
    if (had_value) next->push_back({.slot = slot});
    return;
  }
  if (value.memory() != nullptr || !IsPlain(value.dtype()) ||
      value.rank() >= static_cast<int>(KeptMemory::kMostDescription)) {
    Refuse(slot, variable);
    if (had_value) next->push_back({.slot = slot});
    return;
  }
  if (Lies(value)) {
    // We own what we committed, so that nobody writes to it: other bytes are another value.
    if (slot->committed.bytes() != value.bytes() || slot->committed.shape() != value.shape())
      next->push_back({.slot = slot, .value = value});
    return;
  }
  if (value.size_bytes() >= kLeastToMove) {
    StatusOr<Tensor> moved = value.Clone();
    if (moved.ok() && Lies(*moved)) {
      variable.AssignLocked(*moved);
      next->push_back({.slot = slot, .value = *std::move(moved)});
      return;
    }
  }
  if (slot->copy && slot->copied_shape == value.shape() &&
      std::memcmp(slot->copy->data(), value.bytes(), value.size_bytes()) == 0) {
    return;
  }
  if (!slot->spare || slot->spare->size() < value.size_bytes())
    slot->spare = TakePages(value.size_bytes());
  if (!slot->spare || slot->spare->data() < data_ || slot->spare->data() >= data_ + bytes_) {
    Refuse(slot, variable);
    if (had_value) next->push_back({.slot = slot});
    return;
  }
  std::memcpy(slot->spare->data(), value.bytes(), value.size_bytes());
  next->push_back({.slot = slot,
                   .value = Tensor(value.dtype(), value.shape(), slot->spare),
                   .is_copied = true});
}

// Variables whose values are not what they were, then those that are gone.
std::vector<KeptVariables::Next> KeptVariables::LookAtAll() {
  std::vector<Next> next;
  ++looks_;
  size_t found = 0;
  for (int i = 0; i < static_cast<int>(devices_.size()); ++i) {
    devices_[static_cast<size_t>(i)]->resources().Visit(
        [&](const std::string& container, const std::string& name, const Resource& resource) {
          auto* const variable = dynamic_cast<const Variable*>(&resource);
          if (variable == nullptr) return;
          Slot* const slot = SlotOf(i, container, name);
          if (slot == nullptr) return;
          slot->seen = looks_;
          ++found;
          Look(slot, const_cast<Variable&>(*variable), &next);
        });
  }
  if (found == slots_.size()) return next;
  for (const auto& [key, slot] : slots_) {
    if (slot->seen != looks_ && (slot->committed.IsInitialized() || slot->copy))
      next.push_back({.slot = slot.get()});
  }
  return next;
}

void KeptVariables::Commit() {
  std::vector<Next> next;
  std::vector<Tensor> dropped;  // after the locks
  absl::MutexLock lock(&commit_mutex_);
  next = LookAtAll();
  std::vector<KeptMemory::Change> changes;
  for (const Next& one : next) {
    KeptMemory::Change change{
        .entry = one.slot->number, .present = one.value.IsInitialized(), .place = {}};
    if (change.present) change.place = PlaceOf(one.value);
    changes.push_back(std::move(change));
  }
  absl::MutexLock rows(&rows_mutex_);
  commits_ = true;
  const auto alone = [this] { return row_writers_ == 0; };
  rows_mutex_.Await(absl::Condition(&alone));
  memory_->Commit(changes);
  for (Next& one : next) {
    Slot& slot = *one.slot;
    if (slot.committed.IsInitialized()) by_place_.erase(slot.committed.bytes());
    dropped.push_back(std::exchange(slot.committed, Tensor()));
    if (one.is_copied) {
      std::swap(slot.copy, slot.spare);
      slot.copied_shape = one.value.shape();
    } else {
      slot.copy.reset();
      slot.committed = std::move(one.value);
      if (slot.committed.IsInitialized()) by_place_[slot.committed.bytes()] = &slot;
    }
  }
  commits_ = false;
}

KeptPlace KeptVariables::PlaceOf(const Tensor& value) const {
  KeptPlace place{.offset = 0, .bytes = value.size_bytes(), .description = {}};
  if (place.bytes > 0) place.offset = static_cast<uint64_t>(value.bytes() - data_);
  place.description.push_back(static_cast<int64_t>(value.dtype()));
  for (int i = 0; i < value.rank(); ++i) place.description.push_back(value.dim(i));
  return place;
}

}  // namespace weft::server
