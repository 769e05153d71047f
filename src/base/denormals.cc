// SPDX-License-Identifier: Apache-2.0
#include "base/denormals.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weft {
namespace {

#if defined(__x86_64__)
constexpr uint64_t kFlush = 0x8040;  // results to zero, operands as zero
uint64_t ControlWord() { return _mm_getcsr(); }
void SetControlWord(uint64_t word) { _mm_setcsr(static_cast<unsigned>(word)); }
#elif defined(__aarch64__)
constexpr uint64_t kFlush = uint64_t{1} << 24;
uint64_t ControlWord() {
  uint64_t word;
  asm volatile("mrs %0, fpcr" : "=r"(word));
  return word;
}
void SetControlWord(uint64_t word) { asm volatile("msr fpcr, %0" : : "r"(word)); }
#else
constexpr uint64_t kFlush = 0;
uint64_t ControlWord() { return 0; }
void SetControlWord(uint64_t) {}
#endif

}  // namespace

ScopedFlushDenormals::ScopedFlushDenormals() : before_(ControlWord()) {
  if ((before_ & kFlush) != kFlush) SetControlWord(before_ | kFlush);
}

ScopedFlushDenormals::~ScopedFlushDenormals() {
  if ((before_ & kFlush) != kFlush) SetControlWord((ControlWord() & ~kFlush) | (before_ & kFlush));
}

}  // namespace weft
