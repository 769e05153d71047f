// SPDX-License-Identifier: Apache-2.0
// Numbers too small for all their digits cost a hundred times the others: threads that compute take
// them for zero, as TensorFlow's do.
#pragma once

#include <cstdint>

namespace weft {

// This thread takes denormal numbers for zero, as operands and as results, until it is destroyed.
class ScopedFlushDenormals {
 public:
  ScopedFlushDenormals();
  ~ScopedFlushDenormals();
  ScopedFlushDenormals(const ScopedFlushDenormals&) = delete;
  ScopedFlushDenormals& operator=(const ScopedFlushDenormals&) = delete;

 private:
  const uint64_t before_;  // the processor's control word
};

}  // namespace weft
