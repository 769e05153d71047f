// SPDX-License-Identifier: Apache-2.0
// A shared library that is no op library.
extern "C" int Answer() { return 42; }
