// SPDX-License-Identifier: Apache-2.0
#include "weft/imperative/traced_function.h"

#include <utility>

#include "weft/imperative/tracing.h"

namespace weft::imperative {
namespace {

// Whether arrays of these types and shapes may be given.
bool Fits(const std::vector<TensorType>& wanted, const std::vector<Array>& given) {
  if (wanted.size() != given.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].dtype != given[i].dtype() ||
        !wanted[i].shape.IsCompatibleWith(given[i].tensor().shape()))
      return false;
  }
  return true;
}

// Sizes that differ vary. False where dtypes or ranks do.
bool Relax(const std::vector<TensorType>& known, std::vector<TensorType>* wanted) {
  if (known.size() != wanted->size()) return false;
  for (size_t i = 0; i < known.size(); ++i) {
    TensorType& one = (*wanted)[i];
    if (known[i].dtype != one.dtype || known[i].shape.rank() != one.shape.rank()) return false;
    for (int axis = 0; axis < one.shape.rank(); ++axis) {
      if (known[i].shape.dim(axis) != one.shape.dim(axis)) one.shape.SetDim(axis, -1);
    }
  }
  return true;
}

}  // namespace

StatusOr<TracedFunction::Trace*> TracedFunction::TraceFor(const std::vector<Array>& inputs) {
  std::vector<TensorType> wanted;
  for (const Array& input : inputs) wanted.push_back({input.dtype(), input.tensor().shape()});
  Trace* relaxed = nullptr;
  for (Trace& trace : traces_) {
    if (Fits(trace.inputs, inputs)) return &trace;
    if (relaxed == nullptr && Relax(trace.inputs, &wanted)) relaxed = &trace;
  }
  Trace made{.inputs = wanted};
  {
    Tracing tracing(runtime_);
    std::vector<Array> arguments;
    for (const TensorType& type : wanted)
      arguments.push_back(tracing.AddInput(type.dtype, type.shape));
    const std::vector<Array> outputs = body_(arguments);
    WEFT_RETURN_IF_ERROR(runtime_.TakeStatus());
    WEFT_ASSIGN_OR_RETURN(TracedGraph graph, tracing.End(outputs, &made.captured));
    WEFT_ASSIGN_OR_RETURN(made.call, GraphCall::Make(runtime_, std::move(graph)));
  }
  if (relaxed != nullptr) {
    *relaxed = std::move(made);
    return relaxed;
  }
  traces_.push_back(std::move(made));
  return &traces_.back();
}

StatusOr<std::vector<Array>> TracedFunction::Call(const std::vector<Array>& inputs) {
  for (const Array& input : inputs) {
    if (!input) return InvalidArgument("A function got an array of nothing");
  }
  // Inside another one it becomes a part of that.
  if (runtime_.tracing_ != nullptr) return body_(inputs);
  WEFT_ASSIGN_OR_RETURN(const Trace* const trace, TraceFor(inputs));
  std::vector<Array> all = inputs;
  all.insert(all.end(), trace->captured.begin(), trace->captured.end());
  return trace->call->Run(runtime_, std::move(all));
}

std::vector<Array> TracedFunction::operator()(const std::vector<Array>& inputs) {
  if (!runtime_.ok()) return {};
  StatusOr<std::vector<Array>> outputs = Call(inputs);
  if (outputs.ok()) return *std::move(outputs);
  runtime_.Fail(Annotate(outputs.status(), "A traced function"));
  return {};
}

struct Variable::State {
  explicit State(Runtime& of) : runtime(of) {}
  ~State() {
    if (!handle) return;
    const Status before = runtime.TakeStatus();
    runtime.Outputs("DestroyResourceOp", {handle}, {{"ignore_lookup_error", true}});
    runtime.TakeStatus().IgnoreError();
    runtime.Fail(before);
  }

  Runtime& runtime;
  Array handle;
  DType dtype = DType::kInvalid;
};

Variable::Variable(Runtime& runtime, const Array& initial)
    : state_(std::make_shared<State>(runtime)) {
  if (!runtime.ok() || !initial) return;
  state_->dtype = initial.dtype();
  // Made once, not when a function is traced: the name is its own.
  state_->handle = runtime.Op(
      "VarHandleOp", {},
      {{"dtype", initial.dtype()},
       {"shape", PartialShape(initial.tensor().shape())},
       {"shared_name", absl::StrCat("variable_", initial.id(), "_", runtime.NextName())}});
  Assign(initial);
}

const Array& Variable::handle() const { return state_->handle; }

Array Variable::Read() const {
  return state_->runtime.Op("ReadVariableOp", {state_->handle}, {{"dtype", state_->dtype}});
}

void Variable::Change(const char* op, const Array& value) const {
  state_->runtime.Outputs(op, {state_->handle, value}, {{"dtype", state_->dtype}});
}

}  // namespace weft::imperative
