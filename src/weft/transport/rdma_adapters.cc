// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/rdma_adapters.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include "absl/strings/match.h"

namespace weft::transport {
namespace {

bool HasActivePort(const std::filesystem::path& adapter) {
  std::error_code error;
  for (const auto& port : std::filesystem::directory_iterator(adapter / "ports", error)) {
    std::string state;  // "4: ACTIVE"
    std::getline(std::ifstream(port.path() / "state"), state);
    if (absl::StrContains(state, "ACTIVE")) return true;
  }
  return false;
}

bool HasDeviceFile(const std::string& root, const std::filesystem::path& adapter) {
  std::error_code error;
  for (const auto& verbs :
       std::filesystem::directory_iterator(adapter / "device" / "infiniband_verbs", error)) {
    const std::string file = root + "/dev/infiniband/" + verbs.path().filename().string();
    if (access(file.c_str(), R_OK | W_OK) == 0) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> ActiveRdmaAdapters(const std::string& root) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& adapter :
       std::filesystem::directory_iterator(root + "/sys/class/infiniband", error)) {
    if (HasActivePort(adapter.path()) && HasDeviceFile(root, adapter.path()))
      names.push_back(adapter.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace weft::transport
