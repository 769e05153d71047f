// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/scratch.h"

#include "weft/tensor/pool_allocator.h"

namespace weft {

Status CheckRoomFor(int64_t count, size_t bytes_each, absl::string_view what) {
  size_t bytes = 0;
  if (count >= 0 && !__builtin_mul_overflow(static_cast<size_t>(count), bytes_each, &bytes) &&
      HostHasRoomFor(bytes)) {
    return absl::OkStatus();
  }
  return ResourceExhausted("Out of memory for ", count, " ", what, " of ", bytes_each,
                           " bytes each: the limit is ", HostMemoryLimit(), " bytes");
}

}  // namespace weft
