// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/state/lookup_table_kernel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/ops/elements.h"

namespace weft::ops::state {
namespace {

// The bytes of row `i`, of `width` elements. Several strings each have their length before them.
std::string RowOf(const Tensor& tensor, int64_t i, int64_t width) {
  if (tensor.dtype() == DType::kString) {
    const std::string* row = tensor.data<std::string>() + i * width;
    if (width == 1) return *row;
    std::string bytes;
    for (int64_t k = 0; k < width; ++k) {
      const uint64_t length = row[k].size();
      bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
      bytes.append(row[k]);
    }
    return bytes;
  }
  const size_t size = DTypeSize(tensor.dtype()) * static_cast<size_t>(width);
  return std::string(reinterpret_cast<const char*>(tensor.bytes()) + static_cast<size_t>(i) * size,
                     size);
}

void SetRow(Tensor* tensor, int64_t i, int64_t width, const std::string& bytes) {
  if (tensor->dtype() != DType::kString) {
    std::memcpy(tensor->bytes() + static_cast<size_t>(i) * bytes.size(), bytes.data(),
                bytes.size());
    return;
  }
  std::string* row = tensor->data<std::string>() + i * width;
  if (width == 1) {
    *row = bytes;
    return;
  }
  size_t at = 0;
  for (int64_t k = 0; k < width; ++k) {
    uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof(length));
    at += sizeof(length);
    row[k] = bytes.substr(at, length);
    at += length;
  }
}

// How an element is shown in an error.
std::string Shown(const Tensor& tensor, int64_t i, int64_t width) {
  if (width != 1) return absl::StrCat("number ", i);
  if (tensor.dtype() == DType::kString) return tensor.data<std::string>()[i];
  StatusOr<Tensor> one = Tensor::Allocate(tensor.dtype(), Shape());
  if (!one.ok()) return absl::StrCat("number ", i);
  SetRow(&*one, 0, 1, RowOf(tensor, i, 1));
  return one->ToString();
}

bool EndsWith(const Shape& shape, const Shape& end) {
  if (shape.rank() < end.rank()) return false;
  for (int i = 0; i < end.rank(); ++i) {
    if (shape.dim(shape.rank() - end.rank() + i) != end.dim(i)) return false;
  }
  return true;
}

StatusOr<Shape> Joined(int64_t count, const Shape& rest) {
  Dims sizes{count};
  sizes.insert(sizes.end(), rest.dims().begin(), rest.dims().end());
  return Shape::Make(sizes);
}

}  // namespace

Status TableOptions::Check() const {
  if (!IsPlain(value) && value != DType::kString) {
    return Unimplemented("A table cannot hold values of type ", DTypeName(value), ": '", name, "'");
  }
  if (key_shape.num_elements() > 0) return absl::OkStatus();
  return InvalidArgument("A key must have elements, got shape ", key_shape.ToString());
}

LookupTable::LookupTable(TableOptions options)
    : options_(std::move(options)),
      key_width_(options_.key_shape.num_elements()),
      value_width_(options_.value_shape.num_elements()),
      buckets_(std::max<int64_t>(1, options_.buckets)) {
  if (options_.empty_key.IsInitialized()) empty_key_ = RowOf(options_.empty_key, 0, key_width_);
  if (options_.deleted_key.IsInitialized())
    deleted_key_ = RowOf(options_.deleted_key, 0, key_width_);
}

std::string LookupTable::DebugString() const {
  return absl::StrCat("A lookup table of ", size(), " entries, ", DTypeName(options_.key), " -> ",
                      DTypeName(options_.value));
}

int64_t LookupTable::size() const {
  absl::ReaderMutexLock lock(&mutex_);
  return static_cast<int64_t>(entries_.size());
}

StatusOr<Shape> LookupTable::ShapeOfValues(const Tensor& keys) const {
  if (!EndsWith(keys.shape(), options_.key_shape)) {
    return InvalidArgument("Input key shape ", keys.shape().ToString(),
                           " must end with the table's key shape ", options_.key_shape.ToString());
  }
  Dims sizes(keys.shape().dims().begin(), keys.shape().dims().end());
  sizes.resize(sizes.size() - static_cast<size_t>(options_.key_shape.rank()));
  sizes.insert(sizes.end(), options_.value_shape.dims().begin(), options_.value_shape.dims().end());
  return Shape::Make(sizes);
}

Status LookupTable::CheckKeys(const Tensor& keys) const {
  if (keys.dtype() != options_.key) {
    return InvalidArgument("Table '", options_.name, "' has keys of type ", DTypeName(options_.key),
                           ", but was given ", DTypeName(keys.dtype()));
  }
  if (const int64_t batch = keys.rank() == 0 ? 1 : keys.dim(0);
      is_dense() && keys.num_elements() != batch * key_width_) {
    return InvalidArgument("Expected key shape [", batch, "] + ", options_.key_shape.ToString(),
                           ", got ", keys.shape().ToString());
  }
  WEFT_RETURN_IF_ERROR(ShapeOfValues(keys).status());
  for (int64_t i = 0; is_dense() && i < CountOf(keys); ++i) {
    const std::string key = RowOf(keys, i, key_width_);
    if (!IsReserved(key)) continue;
    return InvalidArgument("Using the ", key == empty_key_ ? "empty_key" : "deleted_key",
                           " as a table key is not allowed");
  }
  return absl::OkStatus();
}

bool LookupTable::IsReserved(const std::string& key) const {
  return key == empty_key_ || (options_.deleted_key.IsInitialized() && key == deleted_key_);
}

Status LookupTable::CheckRows(const Tensor& keys, const Tensor& values) const {
  const auto is_rows = [](const Tensor& tensor, DType dtype, int64_t rows, int64_t width) {
    return tensor.dtype() == dtype && tensor.rank() == 2 && tensor.dim(0) == rows &&
           tensor.dim(1) == width;
  };
  const int64_t rows = keys.rank() > 0 ? keys.dim(0) : 0;
  if (is_rows(keys, options_.key, rows, key_width_) &&
      is_rows(values, options_.value, rows, value_width_)) {
    return absl::OkStatus();
  }
  return InvalidArgument("Dense table '", options_.name, "' takes keys of ", key_width_,
                         " elements and values of ", value_width_, " as rows of matrices, got ",
                         keys.shape().ToString(), " and ", values.shape().ToString());
}

Status LookupTable::CheckEntries(const Tensor& keys, const Tensor& values) const {
  if (values.dtype() != options_.value) {
    return InvalidArgument("Table '", options_.name, "' maps ", DTypeName(options_.key), " to ",
                           DTypeName(options_.value), ", but was given ", DTypeName(keys.dtype()),
                           " and ", DTypeName(values.dtype()));
  }
  WEFT_RETURN_IF_ERROR(CheckKeys(keys));
  WEFT_ASSIGN_OR_RETURN(const Shape wanted, ShapeOfValues(keys));
  if (values.shape() == wanted) return absl::OkStatus();
  return InvalidArgument("Expected shape ", wanted.ToString(), " for value, got ",
                         values.shape().ToString());
}

Status LookupTable::Find(const Tensor& keys, const Tensor& fallback, Tensor* values) const {
  WEFT_RETURN_IF_ERROR(CheckKeys(keys));
  WEFT_ASSIGN_OR_RETURN(const Shape wanted, ShapeOfValues(keys));
  const bool is_one_for_all = fallback.shape() == options_.value_shape;
  if (fallback.dtype() != options_.value || (!is_one_for_all && fallback.shape() != wanted)) {
    return InvalidArgument("Expected shape ", options_.value_shape.ToString(), " or ",
                           wanted.ToString(), " and type ", DTypeName(options_.value),
                           " for default value, got ", fallback.shape().ToString(), " and ",
                           DTypeName(fallback.dtype()));
  }
  absl::ReaderMutexLock lock(&mutex_);
  if (options_.is_fixed && !is_filled_) {
    return FailedPrecondition("Table not initialized. ('", options_.name,
                              "': run its initializer, tf.tables_initializer() in Python)");
  }
  for (int64_t i = 0; i < CountOf(keys); ++i) {
    const auto found = entries_.find(RowOf(keys, i, key_width_));
    SetRow(values, i, value_width_,
           found != entries_.end() ? found->second
                                   : RowOf(fallback, is_one_for_all ? 0 : i, value_width_));
  }
  return absl::OkStatus();
}

Status LookupTable::Initialize(const Tensor& keys, const Tensor& values) {
  if (!options_.is_fixed) {
    return InvalidArgument("Table '", options_.name, "' needs no initializer: insert");
  }
  WEFT_RETURN_IF_ERROR(CheckEntries(keys, values));
  absl::MutexLock lock(&mutex_);
  if (is_filled_) {
    if (keys.num_elements() == static_cast<int64_t>(entries_.size())) return absl::OkStatus();
    return FailedPrecondition("Table was already initialized with different data. ('",
                              options_.name, "' has ", entries_.size(), " entries, given were ",
                              keys.num_elements(), ")");
  }
  Entries entries;
  for (int64_t i = 0; i < CountOf(keys); ++i) {
    std::string value = RowOf(values, i, value_width_);
    const auto [entry, is_new] = entries.try_emplace(RowOf(keys, i, key_width_), value);
    if (is_new || entry->second == value) continue;
    return FailedPrecondition("HashTable has different value for same key. Table '", options_.name,
                              "', key ", Shown(keys, i, key_width_), ", second value ",
                              Shown(values, i, value_width_));
  }
  entries_ = std::move(entries);
  is_filled_ = true;
  return absl::OkStatus();
}

Status LookupTable::CheckMayChange() const {
  if (!options_.is_fixed) return absl::OkStatus();
  return Unimplemented("Insert not supported by a table whose entries are fixed: '", options_.name,
                       "'. A MutableHashTable takes more");
}

Status LookupTable::Insert(const Tensor& keys, const Tensor& values) {
  WEFT_RETURN_IF_ERROR(CheckMayChange());
  WEFT_RETURN_IF_ERROR(CheckEntries(keys, values));
  absl::MutexLock lock(&mutex_);
  if (is_dense()) WEFT_RETURN_IF_ERROR(MakeRoom(CountOf(keys)));
  for (int64_t i = 0; i < CountOf(keys); ++i) {
    entries_.insert_or_assign(RowOf(keys, i, key_width_), RowOf(values, i, value_width_));
  }
  return absl::OkStatus();
}

Status LookupTable::Remove(const Tensor& keys) {
  WEFT_RETURN_IF_ERROR(CheckMayChange());
  WEFT_RETURN_IF_ERROR(CheckKeys(keys));
  absl::MutexLock lock(&mutex_);
  for (int64_t i = 0; i < CountOf(keys); ++i) {
    const auto found = entries_.find(RowOf(keys, i, key_width_));
    if (found == entries_.end()) continue;
    if (is_dense()) removed_.push_back(std::move(found->second));
    entries_.erase(found);
  }
  return absl::OkStatus();
}

Status LookupTable::MakeRoom(int64_t more) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const double wanted = static_cast<double>(entries_.size()) + static_cast<double>(more);
  int64_t buckets = buckets_;
  while (wanted > static_cast<double>(buckets) * options_.max_load) {
    if (buckets > kMost) {
      return ResourceExhausted("Dense table '", options_.name, "' would need room for more than ",
                               kMost, " entries");
    }
    buckets *= 2;
  }
  // Where entries get new places, those that were removed take none.
  if (buckets != buckets_) removed_.clear();
  buckets_ = buckets;
  return absl::OkStatus();
}

Status LookupTable::Import(const Tensor& keys, const Tensor& values) {
  if (options_.is_fixed) return Initialize(keys, values);
  WEFT_RETURN_IF_ERROR(is_dense() ? CheckRows(keys, values) : CheckEntries(keys, values));
  Entries entries;
  for (int64_t i = 0; i < CountOf(keys); ++i) {
    if (is_dense() && IsReserved(RowOf(keys, i, key_width_))) continue;
    entries.insert_or_assign(RowOf(keys, i, key_width_), RowOf(values, i, value_width_));
  }
  absl::MutexLock lock(&mutex_);
  entries_ = std::move(entries);
  removed_.clear();
  buckets_ = std::max<int64_t>(1, CountOf(keys));
  return absl::OkStatus();
}

Status LookupTable::Export(Tensor* keys, Tensor* values) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto taken = static_cast<int64_t>(entries_.size());
  const int64_t count = is_dense() ? std::max(taken, buckets_) : taken;
  WEFT_ASSIGN_OR_RETURN(const Shape key_shape, is_dense() ? Shape::Make({count, key_width_})
                                                          : Joined(count, options_.key_shape));
  WEFT_ASSIGN_OR_RETURN(const Shape value_shape, is_dense() ? Shape::Make({count, value_width_})
                                                            : Joined(count, options_.value_shape));
  WEFT_ASSIGN_OR_RETURN(*keys, Tensor::Allocate(options_.key, key_shape));
  WEFT_ASSIGN_OR_RETURN(*values, Tensor::Allocate(options_.value, value_shape));
  int64_t i = 0;
  for (const auto& [key, value] : entries_) {
    SetRow(keys, i, key_width_, key);
    SetRow(values, i++, value_width_, value);
  }
  for (auto removed = removed_.begin(); removed != removed_.end() && i < count; ++removed, ++i) {
    SetRow(keys, i, key_width_, deleted_key_);
    SetRow(values, i, value_width_, *removed);
  }
  ClearElements(values, i * value_width_, (count - i) * value_width_);
  for (; i < count; ++i) SetRow(keys, i, key_width_, empty_key_);
  return absl::OkStatus();
}

}  // namespace weft::ops::state
