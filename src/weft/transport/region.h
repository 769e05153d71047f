// SPDX-License-Identifier: Apache-2.0
// Bytes, and the object that keeps them where they are.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/ref.h"

namespace weft::transport {

// A cheap handle, copied and moved like a pointer. `keep` may be null for memory that outlives
// every frame. Bytes given to Peer::Send are only read, and must not change until the send is done;
// bytes of a received frame may be the sender's own (same process or mapped memory), so they are
// read-only unless `keep` is the receiver's.
struct Region {
  std::byte* data = nullptr;
  size_t size = 0;
  Ref<RefCounted> keep;
  bool read_only = false;  // another process's memory: a write would end this one

  Region() = default;
  Region(std::byte* region_data, size_t region_size, Ref<RefCounted> owner = nullptr)
      : data(region_data), size(region_size), keep(std::move(owner)) {}
  // For a sender that holds its bytes as const; the transport never writes through it.
  static Region Of(std::span<const std::byte> bytes, Ref<RefCounted> owner = nullptr) {
    return Region(const_cast<std::byte*>(bytes.data()), bytes.size(), std::move(owner));
  }

  std::span<const std::byte> bytes() const { return {data, size}; }
};

}  // namespace weft::transport
