// SPDX-License-Identifier: Apache-2.0
#include "platform/devices/machine.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "base/files.h"
#include "platform/object/fields.h"
#include "platform/object/quantity.h"

namespace weft::platform {
namespace {

constexpr uint64_t kMostFileBytes = 64 << 10;
constexpr int kMostProcessors = 1 << 14;

std::string ReadText(const std::string& path) {
  RealFileSystem files;
  return std::string(
      absl::StripAsciiWhitespace(ReadFile(files, path, kMostFileBytes).value_or("")));
}

int64_t ReadNumber(const std::string& path, int64_t missing) {
  int64_t value = 0;
  return absl::SimpleAtoi(ReadText(path), &value) ? value : missing;
}

// Names in a folder, in the order of the numbers in them; empty when there is none.
std::vector<std::string> NamesIn(const std::string& folder, absl::string_view prefix) {
  std::vector<std::pair<int64_t, std::string>> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, prefix)) continue;
    int64_t number = 0;
    found.emplace_back(absl::SimpleAtoi(rest, &number) ? number : int64_t{1} << 40, name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& [number, name] : found) names.push_back(std::move(name));
  return names;
}

// "MemTotal:       16384 kB"
int64_t MemoryLine(const std::string& text, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t at = line.find(name);
    if (at == absl::string_view::npos) continue;
    const std::vector<absl::string_view> words =
        absl::StrSplit(line.substr(at + name.size()), ' ', absl::SkipEmpty());
    int64_t kib = 0;
    if (!words.empty() && absl::SimpleAtoi(words[0], &kib)) return kib * 1024;
  }
  return 0;
}

// "1280K", "30M"
int64_t ParseCacheSize(std::string text) {
  if (text.empty()) return 0;
  const int64_t unit = text.back() == 'K' ? 1024 : text.back() == 'M' ? 1 << 20 : 1;
  if (unit > 1) text.pop_back();
  int64_t value = 0;
  return absl::SimpleAtoi(text, &value) ? value * unit : 0;
}

void ReadProcessors(const std::string& root, Machine* machine) {
  const std::string folder = root + "/sys/devices/system/cpu";
  const std::vector<int> online = ParseProcessorList(ReadText(folder + "/online"));
  machine->processors = static_cast<int>(online.size());
  std::set<int64_t> sockets;
  std::set<std::pair<int, std::string>> seen;
  for (const int processor : online) {
    const std::string own = absl::StrCat(folder, "/cpu", processor);
    const int64_t socket = ReadNumber(own + "/topology/physical_package_id", 0);
    sockets.insert(socket);
    const int64_t core = ReadNumber(own + "/topology/core_id", processor);
    machine->core_threads[{socket, core}].push_back(processor);
    for (const std::string& index : NamesIn(own + "/cache", "index")) {
      const std::string path = own + "/cache/" + index;
      Cache cache;
      cache.level = static_cast<int>(ReadNumber(path + "/level", 0));
      cache.kind = ReadText(path + "/type");
      const std::string shared = ReadText(path + "/shared_cpu_list");
      if (cache.level < 2 || !seen.emplace(cache.level, shared).second) continue;
      cache.bytes = ParseCacheSize(ReadText(path + "/size"));
      cache.processors = ParseProcessorList(shared);
      machine->caches.push_back(std::move(cache));
    }
  }
  machine->sockets = static_cast<int>(sockets.size());
  machine->cores = static_cast<int>(machine->core_threads.size());
}

void ReadMemory(const std::string& root, Machine* machine) {
  machine->memory = MemoryLine(ReadText(root + "/proc/meminfo"), "MemTotal:");
  const std::string folder = root + "/sys/devices/system/node";
  for (const std::string& name : NamesIn(folder, "node")) {
    NumaNode node;
    if (!absl::SimpleAtoi(name.substr(4), &node.number)) continue;
    const std::string own = folder + "/" + name;
    node.processors = ParseProcessorList(ReadText(own + "/cpulist"));
    node.memory = MemoryLine(ReadText(own + "/meminfo"), "MemTotal:");
    machine->numa_nodes.push_back(std::move(node));
  }
  const std::string pages = root + "/sys/kernel/mm/hugepages";
  for (const std::string& name : NamesIn(pages, "hugepages-")) {
    absl::string_view size = name;
    absl::ConsumePrefix(&size, "hugepages-");
    absl::ConsumeSuffix(&size, "kB");
    int64_t kib = 0;
    if (!absl::SimpleAtoi(size, &kib) || kib <= 0) continue;
    machine->huge_pages.push_back(
        {kib * 1024, std::max<int64_t>(ReadNumber(pages + "/" + name + "/nr_hugepages", 0), 0)});
  }
}

void ReadRdma(const std::string& root, Machine* machine) {
  const std::string folder = root + "/sys/class/infiniband";
  for (const std::string& name : NamesIn(folder, "")) {
    RdmaAdapter adapter;
    adapter.name = name;
    adapter.numa_node = static_cast<int>(ReadNumber(folder + "/" + name + "/device/numa_node", -1));
    for (const char* kind : {"infiniband_verbs", "infiniband_mad"}) {
      for (const std::string& file : NamesIn(folder + "/" + name + "/device/" + kind, "u"))
        adapter.files.push_back("/dev/infiniband/" + file);
    }
    std::error_code error;
    if (std::filesystem::exists(root + "/dev/infiniband/rdma_cm", error))
      adapter.files.push_back("/dev/infiniband/rdma_cm");
    for (const std::string& port : NamesIn(folder + "/" + name + "/ports", "")) {
      const std::string own = folder + "/" + name + "/ports/" + port;
      ++adapter.ports;
      // "4: ACTIVE"
      if (absl::StrContains(ReadText(own + "/state"), "ACTIVE")) ++adapter.active_ports;
      if (!adapter.link_layer.empty()) continue;
      adapter.link_layer = ReadText(own + "/link_layer");
      adapter.rate = ReadText(own + "/rate");
    }
    machine->rdma.push_back(std::move(adapter));
  }
}

void ReadGpus(const std::string& root, const std::string& nvml, Machine* machine) {
  StatusOr<std::vector<DriverGpu>> gpus = ReadDriverGpus(nvml);
  if (!gpus.ok()) return;
  machine->gpus = *std::move(gpus);
  for (DriverGpu& gpu : machine->gpus) {
    if (gpu.pci_address.empty()) continue;
    gpu.gpu.numa_node = static_cast<int>(
        ReadNumber(absl::StrCat(root, "/sys/bus/pci/devices/", gpu.pci_address, "/numa_node"), -1));
  }
  for (const std::string& name : NamesIn(root + "/dev", "nvidia")) {
    const std::string path = root + "/dev/" + name;
    std::error_code error;
    if (!std::filesystem::is_directory(path, error))
      machine->driver_files.push_back("/dev/" + name);
  }
  const auto& files = machine->driver_files;
  for (DriverGpu& gpu : machine->gpus) {
    const std::string own = absl::StrCat("/dev/nvidia", gpu.minor);
    const bool is_missing = gpu.minor >= 0 && !files.empty() &&
                            std::find(files.begin(), files.end(), own) == files.end();
    if (is_missing) gpu.gpu.is_healthy = false;
  }
}

void KeepLost(const Machine& before, Machine* machine) {
  Machine& now = *machine;
  std::vector<DriverGpu> gpus;
  const auto find = [&](const std::string& uuid) {
    return std::find_if(now.gpus.begin(), now.gpus.end(),
                        [&](const DriverGpu& gpu) { return gpu.gpu.uuid == uuid; });
  };
  for (const DriverGpu& known : before.gpus) {
    const auto found = known.gpu.uuid.empty() ? now.gpus.end() : find(known.gpu.uuid);
    gpus.push_back(found == now.gpus.end() ? known : *found);
    if (found == now.gpus.end())
      gpus.back().gpu.is_healthy = false;
    else
      now.gpus.erase(found);
  }
  for (const DriverGpu& fresh : now.gpus) {
    // One that is lost says nothing of itself: it is one of those that we knew.
    if (!fresh.gpu.uuid.empty() || before.gpus.empty()) gpus.push_back(fresh);
  }
  now.gpus = std::move(gpus);
  std::vector<RdmaAdapter> adapters;
  for (const RdmaAdapter& known : before.rdma) {
    const bool is_there =
        std::any_of(now.rdma.begin(), now.rdma.end(),
                    [&](const RdmaAdapter& adapter) { return adapter.name == known.name; });
    if (is_there) continue;
    adapters.push_back(known);
    adapters.back().active_ports = 0;
  }
  now.rdma.insert(now.rdma.end(), adapters.begin(), adapters.end());
}

// Letters, digits and -_. are all that the value of a label may hold.
std::string LabelValue(const std::string& text) {
  std::string value;
  for (const char c : text) value += absl::ascii_isalnum(c) || c == '.' || c == '_' ? c : '-';
  while (!value.empty() && !absl::ascii_isalnum(value.back())) value.pop_back();
  return value.substr(0, 63);
}

void DescribeGpus(const Machine& machine, Json* node) {
  if (machine.gpus.empty()) return;
  Json list = Json::MakeArray();
  int64_t healthy = 0;
  const Gpu* first = nullptr;
  for (const DriverGpu& each : machine.gpus) {
    Json gpu;
    gpu.Set("uuid", each.gpu.uuid);
    gpu.Set("model", each.gpu.model);
    gpu.Set("memory", FormatQuantity(each.gpu.memory * 1000, true));
    gpu.Set("numa", each.gpu.numa_node);
    gpu.Set("island", each.gpu.island);
    gpu.Set("health", each.gpu.is_healthy ? "Healthy" : "Unhealthy");
    list.Append(std::move(gpu));
    if (!each.gpu.is_healthy) continue;
    ++healthy;
    if (first == nullptr) first = &each.gpu;
  }
  SetField(node, {"metadata", "annotations", kGpusAnnotation}, list.Dump());
  for (const char* name : {"nvidia.com/gpu", "alpha.kubernetes.io/nvidia-gpu"})
    SetField(node, {"status", "allocatable", name}, absl::StrCat(healthy));
  if (first == nullptr) return;
  SetField(node, {"metadata", "labels", "nvidia.com/gpu.present"}, "true");
  SetField(node, {"metadata", "labels", "nvidia.com/gpu.count"}, absl::StrCat(healthy));
  SetField(node, {"metadata", "labels", "nvidia.com/gpu.product"}, LabelValue(first->model));
  SetField(node, {"metadata", "labels", "nvidia.com/gpu.memory"},
           absl::StrCat(first->memory >> 20));
}

void DescribeRdma(const Machine& machine, Json* node) {
  int64_t active = 0;
  bool has_infiniband = false;
  for (const RdmaAdapter& adapter : machine.rdma) {
    if (adapter.active_ports == 0) continue;
    ++active;
    has_infiniband = has_infiniband || adapter.link_layer == "InfiniBand";
  }
  if (active == 0) return;
  SetField(node, {"metadata", "labels", "weft.dev/rdma-adapters"}, absl::StrCat(active));
  if (has_infiniband)
    SetField(node, {"metadata", "labels", "alpha.kubernetes.io/infiniBand"}, "true");
}

}  // namespace

std::vector<int> ParseProcessorList(const std::string& text) {
  std::vector<int> numbers;
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(absl::StripAsciiWhitespace(part), absl::MaxSplits('-', 1));
    int first = 0;
    int last = 0;
    if (!absl::SimpleAtoi(ends.first, &first)) continue;
    if (ends.second.empty()) {
      last = first;
    } else if (!absl::SimpleAtoi(ends.second, &last)) {
      continue;
    }
    for (int i = std::max(first, 0); i <= last && i < kMostProcessors; ++i) numbers.push_back(i);
  }
  return numbers;
}

Machine ReadMachine(const std::string& root, const std::string& nvml) {
  Machine machine;
  ReadProcessors(root, &machine);
  ReadMemory(root, &machine);
  ReadRdma(root, &machine);
  ReadGpus(root, nvml, &machine);
  return machine;
}

Machine LookAgain(const Machine& before, const std::string& root, const std::string& nvml) {
  Machine now = before;
  now.gpus.clear();
  now.rdma.clear();
  now.driver_files.clear();
  ReadRdma(root, &now);
  ReadGpus(root, nvml, &now);
  KeepLost(before, &now);
  return now;
}

ProcessorTopology TopologyOf(const Machine& machine) {
  ProcessorTopology topology;
  int number = 0;
  for (const auto& [core, threads] : machine.core_threads) {
    for (const int processor : threads) topology[processor].core = number;
    ++number;
  }
  for (const NumaNode& node : machine.numa_nodes) {
    for (const int processor : node.processors) {
      const auto found = topology.find(processor);
      if (found != topology.end()) found->second.numa_node = node.number;
    }
  }
  int last_level = 0;
  for (const Cache& cache : machine.caches) last_level = std::max(last_level, cache.level);
  number = 0;
  for (const Cache& cache : machine.caches) {
    if (cache.level != last_level) continue;
    for (const int processor : cache.processors) {
      const auto found = topology.find(processor);
      if (found != topology.end()) found->second.cache = number;
    }
    ++number;
  }
  return topology;
}

Json DescribeAsNode(const Machine& machine, const std::string& name) {
  Json node;
  node.Set("apiVersion", "v1");
  node.Set("kind", "Node");
  SetField(&node, {"metadata", "name"}, name);
  const auto label = [&](const char* key, int64_t value) {
    if (value > 0) SetField(&node, {"metadata", "labels", key}, absl::StrCat(value));
  };
  label("weft.dev/sockets", machine.sockets);
  label("weft.dev/cores", machine.cores);
  label("weft.dev/numa-nodes", static_cast<int64_t>(machine.numa_nodes.size()));
  int64_t last_level = 0;
  int64_t last_level_bytes = 0;
  for (const Cache& cache : machine.caches) {
    if (cache.level > last_level) last_level_bytes = 0;
    last_level = std::max<int64_t>(last_level, cache.level);
    if (cache.level == last_level) last_level_bytes += cache.bytes;
  }
  label("weft.dev/last-level-cache-kib", last_level_bytes / 1024);
  for (const HugePages& pages : machine.huge_pages) {
    if (pages.count == 0) continue;
    SetField(
        &node,
        {"status", "allocatable", "hugepages-" + FormatQuantity(pages.page_bytes * 1000, true)},
        FormatQuantity(pages.page_bytes * pages.count * 1000, true));
  }
  DescribeGpus(machine, &node);
  DescribeRdma(machine, &node);
  return node;
}

}  // namespace weft::platform
