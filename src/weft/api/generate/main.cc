// SPDX-License-Identifier: Apache-2.0
// Host tool of the build: api_generator OUTPUT_HEADER OUTPUT_SOURCE OUTPUT_REFERENCE
// or, with the kernels of device libraries, api_generator OUTPUT_REFERENCE LIBRARY
#include <fstream>
#include <iostream>

#include "weft/api/generator.h"
#include "weft/device/plugin/plugin_devices.h"
#include "weft/ops/catalogue.h"

namespace {
bool Write(const char* path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  return file.good();
}

weft::Status WriteReferenceWith(const char* path, const char* library) {
  weft::Catalogue catalogue;
  weft::RegisterOps(catalogue);
  WEFT_ASSIGN_OR_RETURN(const auto devices, weft::PluginDevices::Load(library));
  WEFT_RETURN_IF_ERROR(devices->AddKernels(&catalogue));
  if (Write(path, weft::api::GenerateReference(catalogue))) return absl::OkStatus();
  return weft::Internal("Cannot write ", path);
}
}  // namespace

int main(int argc, char** argv) {
  const weft::Catalogue& catalogue = weft::StandardCatalogue();
  if (!catalogue.status().ok()) {
    std::cerr << "api_generator: " << catalogue.status() << "\n";
    return 1;
  }
  if (argc == 3) {
    const weft::Status written = WriteReferenceWith(argv[1], argv[2]);
    if (!written.ok()) std::cerr << "api_generator: " << written << "\n";
    return written.ok() ? 0 : 1;
  }
  if (argc != 4) {
    std::cerr << "usage: api_generator HEADER SOURCE REFERENCE, or REFERENCE DEVICE_LIBRARY\n";
    return 2;
  }
  const weft::api::Constructors code = weft::api::GenerateConstructors(catalogue);
  const bool ok = Write(argv[1], code.header) && Write(argv[2], code.source) &&
                  Write(argv[3], weft::api::GenerateReference(catalogue));
  if (!ok) std::cerr << "api_generator: cannot write its files\n";
  return ok ? 0 : 1;
}
