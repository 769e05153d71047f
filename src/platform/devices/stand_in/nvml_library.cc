// SPDX-License-Identifier: Apache-2.0
// A library with the functions of NVML that weft calls, over GPUs from the variable STAND_IN_GPUS:
// "NAME/MIB/PCI_ADDRESS;..." Two of the same NUMA socket (bus 00-7f, 80-ff) are linked. "@FILE"
// stands for the first line of the file, which may change.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

struct StandIn {
  std::string name;
  unsigned long long mib = 0;
  std::string address;
};

std::vector<StandIn>& All() {
  static auto* const all = new std::vector<StandIn>();
  return *all;
}

StandIn* At(void* handle) { return static_cast<StandIn*>(handle); }

int Copy(const std::string& text, char* to, unsigned size) {
  if (text.size() + 1 > size) return 7;
  std::memcpy(to, text.c_str(), text.size() + 1);
  return 0;
}

struct Pci {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char address[32];
};

}  // namespace

extern "C" {

int nvmlInit_v2() {
  const char* const text = std::getenv("STAND_IN_GPUS");
  if (text == nullptr) return 9;  // the driver is not loaded
  All().clear();
  std::string rest = text;
  if (rest[0] == '@') {
    std::ifstream file(rest.substr(1));
    std::getline(file, rest);
  }
  while (!rest.empty()) {
    const std::string one = rest.substr(0, rest.find(';'));
    rest = one.size() == rest.size() ? "" : rest.substr(one.size() + 1);
    const size_t first = one.find('/');
    const size_t second = one.find('/', first + 1);
    All().push_back({one.substr(0, first), std::stoull(one.substr(first + 1, second - first - 1)),
                     one.substr(second + 1)});
  }
  return 0;
}
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(All().size());
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index >= All().size()) return 2;
  // One that is lost.
  if (All()[index].name == "lost") return 15;
  *handle = &All()[index];
  return 0;
}
int nvmlDeviceGetName(void* handle, char* name, unsigned size) {
  return Copy(At(handle)->name, name, size);
}
int nvmlDeviceGetUUID(void* handle, char* uuid, unsigned size) {
  return Copy("GPU-" + At(handle)->address, uuid, size);
}
int nvmlDeviceGetMinorNumber(void* handle, unsigned* minor) {
  *minor = static_cast<unsigned>(At(handle) - All().data());
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* handle, unsigned long long* total_free_used) {
  total_free_used[0] = At(handle)->mib << 20;
  total_free_used[1] = total_free_used[0];
  total_free_used[2] = 0;
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* handle, Pci* pci) {
  std::memset(pci, 0, sizeof(*pci));
  return Copy("0000" + At(handle)->address, pci->address, sizeof(pci->address));
}
int nvmlDeviceGetTopologyCommonAncestor(void* a, void* b, int* level) {
  const auto socket = [](void* handle) {
    return std::stoi(At(handle)->address.substr(5, 2), nullptr, 16) / 128;
  };
  *level = socket(a) == socket(b) ? 20 : 50;  // one host bridge, or across sockets
  return 0;
}
}
