// SPDX-License-Identifier: Apache-2.0
// Any bytes as an HDF5 file and as a zip archive; what is read is written and read again the same.
#include <cstdlib>
#include <string>

#include "weft/storage/hdf5.h"
#include "weft/storage/zip_archive.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto group = weft::storage::ReadHdf5(bytes);
  if (group.ok()) {
    const auto written = weft::storage::WriteHdf5(**group);
    if (written.ok() && !weft::storage::ReadHdf5(*written).ok()) abort();
  }
  const auto files = weft::storage::ReadZip(bytes, 1 << 20);
  if (files.ok() && weft::storage::ReadZip(*weft::storage::WriteZip(*files))
                            .value_or(weft::storage::ArchiveFiles{{"no", ""}}) != *files) {
    abort();
  }
  // Behind valid beginnings: the seeds are random bytes.
  const weft::storage::Hdf5Group root;
  std::string valid = *weft::storage::WriteHdf5(root);
  for (size_t i = 0; i < size; ++i)
    valid[(i * 131 + data[i]) % valid.size()] ^= static_cast<char>(data[i]);
  weft::storage::ReadHdf5(valid).status().IgnoreError();
  return 0;
}
