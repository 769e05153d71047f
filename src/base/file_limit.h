// SPDX-License-Identifier: Apache-2.0
// How many files a process may have open.
#pragma once

namespace weft {

// Lets us have as many open as the system allows; what a Subprocess starts has the limit that we
// had before. Thread-safe.
void RaiseFileLimit();
// In a child before its program starts; safe after a signal.
void RestoreFileLimit();

}  // namespace weft
