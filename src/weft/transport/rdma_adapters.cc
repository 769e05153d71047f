// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/rdma_adapters.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

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

}  // namespace

std::vector<std::string> ActiveRdmaAdapters(const std::string& root) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& adapter :
       std::filesystem::directory_iterator(root + "/sys/class/infiniband", error)) {
    if (HasActivePort(adapter.path())) names.push_back(adapter.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace weft::transport
