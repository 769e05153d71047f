// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/step_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "weft/executor/parallel_run.h"

namespace weft::executor {

using compile::Instruction;
using compile::InstructionKind;
using compile::ReferenceRead;

namespace {

// How the caller knows it: by the fed tensor's name, or by its place.
std::string NameOfArgument(const Node& node) {
  const std::string fed = FindAttrOr<std::string>(node.attrs(), "_fed", "");
  return fed.empty() ? absl::StrCat("Argument '", node.name(), "'")
                     : absl::StrCat("The value fed to tensor ", fed);
}

}  // namespace

StepState::StepState(const compile::Plan& plan)
    : plan_(plan),
      slots_(plan.num_slots()),
      scratch_(plan.num_scratch()),
      contexts_(plan.instructions().size()) {
  for (size_t i = 0; i < plan.instructions().size(); ++i) {
    if (plan.instructions()[i].kind == InstructionKind::kKernel) Bind(static_cast<int>(i));
  }
  if (plan.is_straight_line()) ListCalls();
}

StepState::~StepState() = default;

bool StepState::IsLastUse(int index, int slot) const {
  if (schedule_ != nullptr) return schedule_->IsLastUse(index, slot);
  const Instruction& instruction = plan_.instructions()[index];
  if (std::count(instruction.inputs.begin(), instruction.inputs.end(), slot) != 1) return false;
  if (!plan_.is_straight_line()) return plan_.uses()[slot] == 1;
  return std::count(instruction.releases.begin(), instruction.releases.end(), slot) > 0;
}

void StepState::Bind(int index) {
  const Instruction& instruction = plan_.instructions()[index];
  KernelContext::Binding binding;
  binding.call = &instruction.node->call();
  for (int slot : instruction.inputs) {
    Value* value = &slots_[slot];
    binding.input_values.push_back(value);
    binding.inputs.push_back(&value->tensor);
    binding.input_is_last_use.push_back(IsLastUse(index, slot));
  }
  for (const ReferenceRead& read : instruction.reference_reads) {
    binding.inputs[read.input] = &scratch_[read.scratch];
  }
  for (int o = 0; o < instruction.num_outputs; ++o) {
    binding.outputs.push_back(&slots_[instruction.first_output + o]);
  }
  contexts_[index] = KernelContext(std::move(binding));
  contexts_[index].set_environment(&environment_);
}

void StepState::ListCalls() {
  for (size_t i = 0; i < plan_.instructions().size(); ++i) {
    const Instruction& instruction = plan_.instructions()[i];
    calls_.push_back(
        {.kernel = instruction.kind == InstructionKind::kKernel ? instruction.kernel : nullptr,
         .context = &contexts_[i],
         .releases = instruction.releases.data(),
         .num_releases = static_cast<int>(instruction.releases.size()),
         .instruction = static_cast<int>(i),
         .reads_references = !instruction.reference_reads.empty()});
  }
}

Status StepState::SetArguments(std::vector<Tensor>& arguments) {
  for (const Instruction& instruction : plan_.instructions()) {
    if (instruction.kind != InstructionKind::kArgument) continue;
    const size_t index = static_cast<size_t>(instruction.index);
    const DType wanted = plan_.argument_types()[index];
    if (index >= arguments.size() || !arguments[index].IsInitialized()) {
      return InvalidArgument(NameOfArgument(*instruction.node), " has no value");
    }
    if (arguments[index].dtype() != wanted) {
      return InvalidArgument(NameOfArgument(*instruction.node), " has dtype ",
                             DTypeName(arguments[index].dtype()), ", expected ", DTypeName(wanted));
    }
    Value& value = slots_[instruction.first_output];
    value.tensor = std::move(arguments[index]);
    value.is_shared = true;
  }
  return absl::OkStatus();
}

bool StepState::HasShapesOf(const std::vector<Tensor>& arguments) const {
  if (shapes_.size() != arguments.size()) return false;
  for (size_t i = 0; i < shapes_.size(); ++i) {
    if (!(shapes_[i] == arguments[i].shape())) return false;
  }
  return true;
}

void StepState::SettleFor(const std::vector<Tensor>& arguments) {
  shapes_.clear();
  for (const Tensor& argument : arguments) shapes_.push_back(argument.shape());
  steps_ = 0;
  observer_.reset();
  arena_.reset();
}

void StepState::BeginStep() {
  if (++steps_ == 2) observer_ = std::make_unique<StepObserver>(plan_);
}

void StepState::EndStep(const Status& status) {
  if (observer_ == nullptr) return;
  if (status.ok()) {
    arena_ = StepArena::Make(plan_, std::move(*observer_).Take(), schedule_.get());
  }
  observer_.reset();
}

void StepState::Adopt(std::shared_ptr<const Schedule> schedule) {
  // What lies in the arena shares bytes as plan order allows it: no slot may keep it.
  arena_.reset();
  Clear();
  schedule_ = std::move(schedule);
  parallel_run_.reset();
  for (size_t i = 0; i < plan_.instructions().size(); ++i) {
    const Instruction& instruction = plan_.instructions()[i];
    if (instruction.kind != InstructionKind::kKernel) continue;
    auto& is_last_use = contexts_[i].binding().input_is_last_use;
    for (size_t k = 0; k < instruction.inputs.size(); ++k) {
      is_last_use[k] = IsLastUse(static_cast<int>(i), instruction.inputs[k]);
    }
  }
  steps_ = 0;
  observer_.reset();
}

ParallelRun& StepState::parallel_run(ThreadPool* pool) {
  if (!parallel_run_ || !parallel_run_->HasOneRef()) {
    parallel_run_ = MakeRef<ParallelRun>(&plan_, schedule_, pool);
  }
  return *parallel_run_;
}

Status TakeResult(const Instruction& instruction, StepState& state, std::vector<Tensor>* results) {
  const Value& value = state.slot(instruction.inputs[0]);
  if (!value.variable) {
    (*results)[instruction.index] = value.tensor;
    return absl::OkStatus();
  }
  StatusOr<Tensor> read = value.variable->Read();
  if (!read.ok()) return NodeError(read.status(), *instruction.node->input(0).node);
  (*results)[instruction.index] = *std::move(read);
  return absl::OkStatus();
}

Status StepState::TakeSnapshots(const Instruction& instruction) {
  for (const ReferenceRead& read : instruction.reference_reads) {
    if (slots_[read.slot].is_dead) continue;  // a send passes that on
    const Variable* variable = slots_[read.slot].variable.get();
    if (variable == nullptr && slots_[read.slot].tensor.IsInitialized()) {
      scratch_[read.scratch] = slots_[read.slot].tensor;  // _AsReference made it
      continue;
    }
    if (variable == nullptr) {
      return Internal("Reference input ", read.input, " of '", instruction.node->name(),
                      "' has no variable");
    }
    WEFT_ASSIGN_OR_RETURN(scratch_[read.scratch], variable->Read());
  }
  return absl::OkStatus();
}

void StepState::DropSnapshots(const Instruction& instruction) {
  for (const ReferenceRead& read : instruction.reference_reads) scratch_[read.scratch] = Tensor();
}

Value StepState::TakeOut(int slot) {
  Value value;
  std::swap(value, slots_[slot]);
  return value;
}

void StepState::Clear() {
  for (int slot = 0; slot < static_cast<int>(slots_.size()); ++slot) Release(slot);
  for (Tensor& tensor : scratch_) tensor = Tensor();
}

Status NodeError(const Status& status, const Node& node) {
  const std::string mark = absl::StrCat("[[{{node ", node.name(), "}}]]");
  if (absl::StrContains(status.message(), "[[{{node ")) return status;
  Status named(status.code(), absl::StrCat(status.message(), "\n\t ", mark));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { named.SetPayload(url, payload); });
  return named;
}

StatusOr<bool> Truth(const Tensor& tensor) {
  if (tensor.rank() > 0) return tensor.num_elements() > 0;
  if (tensor.dtype() == DType::kBool) return tensor.scalar<bool>();
  if (tensor.dtype() == DType::kString) return !tensor.scalar<std::string>().empty();
  bool truth = false;
  const bool known = VisitDType(tensor.dtype(), RealNumbers(), [&]<typename T>() {
    truth = static_cast<double>(tensor.scalar<T>()) != 0;
  });
  if (known) return truth;
  return InvalidArgument("A condition must be a bool, number or string, got ",
                         DTypeName(tensor.dtype()));
}

}  // namespace weft::executor
