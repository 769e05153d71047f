// SPDX-License-Identifier: Apache-2.0
// Numbers of the HDF5 file format (HDF5 File Format Specification Version 1.1 and 3.0).
#pragma once

#include <cstdint>

namespace weft::storage::hdf5 {

inline constexpr char kSignature[] = "\x89HDF\r\n\x1a\n";
inline constexpr uint64_t kUndefined = ~uint64_t{0};

// Messages of object headers.
inline constexpr uint16_t kDataspace = 0x0001;
inline constexpr uint16_t kDatatype = 0x0003;
inline constexpr uint16_t kFillValue = 0x0005;
inline constexpr uint16_t kLayout = 0x0008;
inline constexpr uint16_t kFilters = 0x000B;
inline constexpr uint16_t kAttribute = 0x000C;
inline constexpr uint16_t kContinuation = 0x0010;
inline constexpr uint16_t kSymbolTable = 0x0011;

// Classes of datatypes.
inline constexpr int kWhole = 0;
inline constexpr int kFloating = 1;
inline constexpr int kText = 3;
inline constexpr int kEnumeration = 8;
inline constexpr int kVariableLength = 9;

// A symbol node holds at most twice this many entries.
inline constexpr uint16_t kLeafK = 4;

}  // namespace weft::storage::hdf5
