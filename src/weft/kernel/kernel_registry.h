// SPDX-License-Identifier: Apache-2.0
// Which kernels there are for an op, by device type and dtypes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "base/status.h"
#include "weft/kernel/op_kernel.h"
#include "weft/kernel/tile.h"

namespace weft {

using KernelFactory = std::function<StatusOr<std::unique_ptr<OpKernel>>(KernelConstruction&)>;

// How long a call takes, for the executor's choice of thread.
enum class KernelCost {
  kInline,    // under a microsecond: run where you are
  kParallel,  // real work that may share the device's threads
  kBlocking,  // may block the calling thread (files): never on the step's own thread
};

struct KernelDef {
  std::string op;
  std::string device_type = "CPU";
  // Type attributes this kernel is limited to; absent = any.
  std::map<std::string, std::vector<DType>> types;
  KernelFactory factory;
  KernelCost cost = KernelCost::kParallel;
  // It only passes tensors on and looks at no element that may lie in a device's memory: good on
  // devices of every type.
  bool any_device = false;
};

// Read-only after start-up, then safe on any thread.
class KernelRegistry {
 public:
  void Add(KernelDef def);
  void AddTile(const std::string& op, TileBody body);
  // The kernel for `call` on a device of `device_type`: an error names op, dtypes and what there
  // is.
  StatusOr<const KernelDef*> Find(const OpCall& call, const std::string& device_type) const;
  // By op and attributes alone, for `weft check` and placement.
  StatusOr<const KernelDef*> Find(const std::string& op, const AttrMap& attrs,
                                  const std::string& device_type) const;
  bool HasKernel(const std::string& op) const { return kernels_.contains(op); }
  const std::vector<KernelDef>* KernelsOf(const std::string& op) const;
  // The tile body of `op` for inputs of `input`; null if it has none.
  const TileBody* FindTile(const std::string& op, DType input) const;

 private:
  absl::flat_hash_map<std::string, std::vector<KernelDef>> kernels_;
  absl::flat_hash_map<std::string, std::vector<TileBody>> tiles_;
};

}  // namespace weft
