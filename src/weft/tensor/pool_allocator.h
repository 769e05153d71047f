// SPDX-License-Identifier: Apache-2.0
// What a pool of tensors' memory keeps, and how much it may have. It keeps what it gets back, but
// not for long: what nobody asked for in ten seconds goes back to the system. Sizes that change
// from step to step do not pile up: in use and cached together stay within one and a half times of
// what was in use at most in the last seconds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/tensor/buffer.h"

namespace weft {

// How many calls of AgePool a cached block survives.
inline constexpr uint32_t kPoolAgesKept = 10;

// Time goes on by one unit, a second for the process's pool: gives back what has rested for
// kPoolAgesKept of them. Returns how many bytes that was.
size_t AgePool(PoolAllocator& pool);

// A block in the place of others that came back before: of what a pool keeps, as much goes to the
// system as it takes from there.
Ref<Buffer> AllocateInstead(Allocator& allocator, size_t size);

// The pool has no more than `bytes` of the system at a time, those that it keeps included.
void SetPoolLimit(PoolAllocator& pool, size_t bytes);

// Of the process's pool, HostAllocator(): nine tenths of what the control group allows, else the
// machine's memory, unless it is set.
size_t HostMemoryLimit();
void SetHostMemoryLimit(size_t bytes);
// Whether `bytes` more would stay within it.
bool HostHasRoomFor(size_t bytes);

}  // namespace weft
