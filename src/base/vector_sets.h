// SPDX-License-Identifier: Apache-2.0
// Of the instruction sets that Highway knows, those that no vector kernel is compiled for.
#pragma once

// Older than what is asked of a processor, or no gain beside their neighbours. SVE's vectors have
// no size, so they cannot stand in arrays as those of the other sets do.
#define WEFT_UNUSED_VECTOR_SETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
