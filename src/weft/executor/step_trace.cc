// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/step_trace.h"

#include <utility>

#include <sys/syscall.h>
#include <unistd.h>

#include "weft/compile/plan.h"
#include "weft/executor/step_state.h"

namespace weft::executor {

uint64_t ThreadNumber() {
  thread_local const auto number = static_cast<uint64_t>(syscall(SYS_gettid));
  return number;
}

void TraceInstruction(const compile::Instruction& instruction, const InstructionTimes& times,
                      StepState& state, StepTrace* trace) {
  const Node& node = *instruction.node;
  NodeTrace record{.node = node.name(),
                   .op = node.op(),
                   .device = node.assigned_device(),
                   .start_us = absl::ToUnixMicros(times.start),
                   .end_us = absl::ToUnixMicros(times.end),
                   .thread = times.thread};
  for (int i = 0; i < node.num_inputs(); ++i) record.inputs.push_back(node.input(i).node->name());
  for (int o = 0; o < instruction.num_outputs; ++o) {
    const Value& value = state.slot(instruction.first_output + o);
    Tensor output = value.tensor;
    if (value.variable) {
      StatusOr<Tensor> read = value.variable->Read();
      if (read.ok()) output = *std::move(read);
    }
    // A dead or unset output keeps its place.
    OutputTrace& traced = record.outputs.emplace_back();
    if (!output.IsInitialized()) continue;
    traced.dtype = output.dtype();
    traced.dims.assign(output.shape().dims().begin(), output.shape().dims().end());
    traced.bytes = static_cast<int64_t>(output.size_bytes());
  }
  trace->Add(std::move(record));
}

}  // namespace weft::executor
