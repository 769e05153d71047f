// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/op_call.h"

namespace weft {

StatusOr<OpCall> OpCall::Make(const OpDefinition* definition, std::string name, AttrMap attrs,
                              std::string requested_device) {
  OpCall call;
  WEFT_RETURN_IF_ERROR(CompleteAttrs(definition->schema, &attrs));
  WEFT_ASSIGN_OR_RETURN(call.input_types_, ResolveArgs(definition->schema.inputs, attrs));
  WEFT_ASSIGN_OR_RETURN(call.output_types_, ResolveArgs(definition->schema.outputs, attrs));
  call.name_ = std::move(name);
  call.definition_ = definition;
  call.attrs_ = std::move(attrs);
  call.requested_device_ = std::move(requested_device);
  return call;
}

}  // namespace weft
