// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/stores.h"

namespace weft {

Stores StoresOf(const Node& node) {
  static const auto* const known = new absl::flat_hash_map<std::string, Stores>{
      {"StackV2", Stores::kMakes},
      {"StackPushV2", Stores::kPushes},
      {"StackPopV2", Stores::kPops},
      {"TensorArrayV3", Stores::kMakes},
      {"TensorArrayWriteV3", Stores::kWrites},
      {"TensorArrayScatterV3", Stores::kWritesRows},
      {"TensorArrayReadV3", Stores::kReads},
      {"TensorArrayGatherV3", Stores::kLeaves},
      {"TensorArrayConcatV3", Stores::kLeaves},
      {"TensorArrayGradV3", Stores::kLeaves},
      {"TensorArraySizeV3", Stores::kLeaves},
  };
  if (!node.schema().is_stateful) return Stores::kNothing;
  const auto found = known->find(node.op());
  return found == known->end() ? Stores::kNothing : found->second;
}

}  // namespace weft
