// SPDX-License-Identifier: Apache-2.0
#include "platform/devices/nvml.h"

#include <algorithm>
#include <memory>

#include <dlfcn.h>

#include "absl/strings/ascii.h"

namespace weft::platform {
namespace {

// The library's interface, as far as it is used: handles are opaque, 0 is success.
using Handle = void*;
struct MemoryInfo {
  unsigned long long total = 0;
  unsigned long long free = 0;
  unsigned long long used = 0;
};
struct PciInfo {
  char legacy_address[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char address[32];
};
// What lies between two GPUs: up to a host bridge they are near.
constexpr int kHostBridge = 30;
constexpr unsigned kMostText = 96;

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

template <typename Function>
Function* Find(const Library& library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library.get(), name));
}

struct Functions {
  explicit Functions(const Library& library)
      : init(Find<int()>(library, "nvmlInit_v2")),
        shutdown(Find<int()>(library, "nvmlShutdown")),
        count(Find<int(unsigned*)>(library, "nvmlDeviceGetCount_v2")),
        handle(Find<int(unsigned, Handle*)>(library, "nvmlDeviceGetHandleByIndex_v2")),
        name(Find<int(Handle, char*, unsigned)>(library, "nvmlDeviceGetName")),
        uuid(Find<int(Handle, char*, unsigned)>(library, "nvmlDeviceGetUUID")),
        memory(Find<int(Handle, MemoryInfo*)>(library, "nvmlDeviceGetMemoryInfo")),
        pci(Find<int(Handle, PciInfo*)>(library, "nvmlDeviceGetPciInfo_v3")),
        minor(Find<int(Handle, unsigned*)>(library, "nvmlDeviceGetMinorNumber")),
        ancestor(Find<int(Handle, Handle, int*)>(library, "nvmlDeviceGetTopologyCommonAncestor")) {}

  bool has_all() const {
    return init != nullptr && shutdown != nullptr && count != nullptr && handle != nullptr &&
           name != nullptr && uuid != nullptr && memory != nullptr;
  }

  int (*init)();
  int (*shutdown)();
  int (*count)(unsigned*);
  int (*handle)(unsigned, Handle*);
  int (*name)(Handle, char*, unsigned);
  int (*uuid)(Handle, char*, unsigned);
  int (*memory)(Handle, MemoryInfo*);
  int (*pci)(Handle, PciInfo*);           // may be null
  int (*minor)(Handle, unsigned*);        // may be null
  int (*ancestor)(Handle, Handle, int*);  // may be null
};

// "00000000:17:00.0", as the library says it, is "0000:17:00.0" in sysfs.
std::string SysfsAddress(const PciInfo& pci) {
  std::string address(pci.address, ::strnlen(pci.address, sizeof(pci.address)));
  const size_t colon = address.find(':');
  if (colon != std::string::npos && colon > 4) address = address.substr(colon - 4);
  return absl::AsciiStrToLower(address);
}

DriverGpu ReadOne(const Functions& nvml, Handle handle) {
  DriverGpu read;
  char text[kMostText] = "";
  if (nvml.name(handle, text, sizeof(text)) == 0) read.gpu.model = text;
  if (nvml.uuid(handle, text, sizeof(text)) == 0) read.gpu.uuid = text;
  MemoryInfo memory;
  if (nvml.memory(handle, &memory) == 0) read.gpu.memory = static_cast<int64_t>(memory.total);
  PciInfo pci = {};
  if (nvml.pci != nullptr && nvml.pci(handle, &pci) == 0) read.pci_address = SysfsAddress(pci);
  unsigned minor = 0;
  if (nvml.minor != nullptr && nvml.minor(handle, &minor) == 0)
    read.minor = static_cast<int>(minor);
  return read;
}

// Each joins the island of the first one before it that is near.
void FindIslands(const Functions& nvml, const std::vector<Handle>& handles,
                 std::vector<DriverGpu>* gpus) {
  int islands = 0;
  for (size_t i = 0; i < handles.size(); ++i) {
    int island = -1;
    for (size_t j = 0; j < i && island < 0; ++j) {
      int level = 0;
      const bool is_told = nvml.ancestor != nullptr && handles[i] != nullptr &&
                           handles[j] != nullptr &&
                           nvml.ancestor(handles[i], handles[j], &level) == 0;
      if (is_told && level <= kHostBridge) island = (*gpus)[j].gpu.island;
    }
    (*gpus)[i].gpu.island = island >= 0 ? island : islands++;
  }
}

}  // namespace

StatusOr<std::vector<DriverGpu>> ReadDriverGpus(const std::string& name) {
  const char* const path = name.empty() ? "libnvidia-ml.so.1" : name.c_str();
  const Library library(::dlopen(path, RTLD_NOW | RTLD_LOCAL));
  if (library == nullptr) return NotFound("There is no ", path, " on this machine");
  const Functions nvml(library);
  if (!nvml.has_all()) return FailedPrecondition(path, " lacks functions of NVML");
  const int begun = nvml.init();
  if (begun != 0) {
    return FailedPrecondition("NVIDIA's driver does not answer (error ", begun,
                              " of nvmlInit): does nvidia-smi work?");
  }
  unsigned count = 0;
  std::vector<DriverGpu> gpus;
  std::vector<Handle> handles;
  if (nvml.count(&count) == 0) {
    for (unsigned i = 0; i < std::min<unsigned>(count, kMostGpus); ++i) {
      Handle handle = nullptr;
      DriverGpu gpu;
      if (nvml.handle(i, &handle) == 0) {
        gpu = ReadOne(nvml, handle);
      } else {
        gpu.gpu.is_healthy = false;
        handle = nullptr;
      }
      gpus.push_back(gpu);
      handles.push_back(handle);
    }
    FindIslands(nvml, handles, &gpus);
  }
  nvml.shutdown();
  return gpus;
}

}  // namespace weft::platform
