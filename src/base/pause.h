// SPDX-License-Identifier: Apache-2.0
// What a thread does between two looks at something that another is about to write.
#pragma once

namespace weft {

// Leaves the processor's units to its other thread for a moment. No system call.
inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace weft
