// SPDX-License-Identifier: Apache-2.0
// What a program needed only to start need not stay in its memory.
#pragma once

namespace weft {

// Gives back the pages of program and libraries that this process only reads; those that it goes on
// to use come again, each by a page fault. For processes that live long and do little: a start
// touches about twice as many as the work after it. Does nothing where the system does not say
// which pages those are. Reads /proc, so some milliseconds. Thread-safe.
void ReleaseStartPages();

}  // namespace weft
