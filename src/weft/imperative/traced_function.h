// SPDX-License-Identifier: Apache-2.0
// Functions that become graphs when they are called, and variables.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"

#include "weft/graph/function.h"
#include "weft/imperative/array.h"
#include "weft/imperative/graph_call.h"
#include "weft/imperative/runtime.h"

namespace weft::imperative {

// Runs `body` once for inputs of new dtypes or shapes, to see which ops it calls; from then on
// these run as one graph, compiled. Shapes that differ from call to call become sizes that vary.
// What the body takes from outside (variables, arrays) it uses as it is at each call; what it does
// beside ops it does while it is traced only. Not thread-safe; ends before its runtime.
//   TracedFunction step(run, [&](absl::Span<const Array> in) {
//     Tape tape(run);
//     const Array loss = Loss(in[0], in[1]);
//     w.AssignSub(run.Op("Mul", {rate, tape.Gradient({loss}, {w.handle()})[0]}));
//     return std::vector<Array>{loss};
//   });
class TracedFunction {
 public:
  using Body = std::function<std::vector<Array>(absl::Span<const Array> inputs)>;
  TracedFunction(Runtime& runtime, Body body) : runtime_(runtime), body_(std::move(body)) {}

  // Errors go to the runtime, and nothing comes back.
  std::vector<Array> operator()(const std::vector<Array>& inputs);
  // How many graphs it has become.
  size_t num_traces() const { return traces_.size(); }

 private:
  struct Trace {
    std::vector<TensorType> inputs;
    std::vector<Array> captured;
    std::shared_ptr<GraphCall> call;  // shared with tapes
  };
  StatusOr<std::vector<Array>> Call(const std::vector<Array>& inputs);
  StatusOr<Trace*> TraceFor(const std::vector<Array>& inputs);

  Runtime& runtime_;
  const Body body_;
  std::vector<Trace> traces_;
};

// A value that ops change, on the runtime's device. Copies are the same variable, which goes with
// the last of them. Ends before its runtime.
class Variable {
 public:
  // Errors go to the runtime, as of all that follows.
  Variable(Runtime& runtime, const Array& initial);

  const Array& handle() const;  // what gradients are asked for
  Array Read() const;
  void Assign(const Array& value) const { Change("AssignVariableOp", value); }
  void AssignAdd(const Array& value) const { Change("AssignAddVariableOp", value); }
  void AssignSub(const Array& value) const { Change("AssignSubVariableOp", value); }

 private:
  struct State;
  void Change(const char* op, const Array& value) const;
  std::shared_ptr<State> state_;  // shared by copies
};

}  // namespace weft::imperative
