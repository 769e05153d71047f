// SPDX-License-Identifier: Apache-2.0
// Reads numbers of an HDF5 file, and never outside of it.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft::storage::hdf5 {

class Cursor {
 public:
  // At byte `at`, which may lie outside: then nothing can be taken.
  Cursor(absl::string_view bytes, uint64_t at) : bytes_(bytes), at_(at) {}

  uint64_t at() const { return at_; }
  void Move(uint64_t at) { at_ = at; }

  // A little-endian number of up to 8 bytes.
  StatusOr<uint64_t> Take(int size) {
    if (!Has(static_cast<uint64_t>(size))) return Damaged("a number");
    uint64_t value = 0;
    for (int i = 0; i < size; ++i) {
      value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes_[at_ + i])) << (8 * i);
    }
    at_ += size;
    return value;
  }
  StatusOr<absl::string_view> Bytes(uint64_t size) {
    if (!Has(size)) return Damaged("bytes");
    const absl::string_view taken = bytes_.substr(at_, size);
    at_ += size;
    return taken;
  }
  Status Skip(uint64_t size) { return Bytes(size).status(); }
  Status Expect(absl::string_view mark) {
    const uint64_t at = at_;
    const StatusOr<absl::string_view> found = Bytes(mark.size());
    if (found.ok() && *found == mark) return absl::OkStatus();
    at_ = at;
    return DataLoss("HDF5 file: expected ", mark, " at byte ", at);
  }
  Status Damaged(absl::string_view what) const {
    return DataLoss("HDF5 file: ", what, " at byte ", at_, " is damaged or lies outside the file");
  }
  static Status Unread(absl::string_view what, uint64_t version) {
    return Unimplemented("HDF5 files with version ", version, " of ", what,
                         " are not read; write the file without libver=\"latest\"");
  }

 private:
  bool Has(uint64_t size) const { return at_ <= bytes_.size() && size <= bytes_.size() - at_; }

  absl::string_view bytes_;
  uint64_t at_;
};

}  // namespace weft::storage::hdf5
