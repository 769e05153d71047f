// SPDX-License-Identifier: Apache-2.0
#include "weft/imperative/runtime.h"

#include <atomic>

#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"

#include "weft/executor/kernel_call.h"
#include "weft/imperative/backward.h"
#include "weft/imperative/tape.h"
#include "weft/imperative/tracing.h"
#include "weft/kernel/make_op_kernel.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::imperative {
namespace {

using Arrays = absl::InlinedVector<Array, 4>;

Arrays Flat(absl::Span<const Input> inputs) {
  Arrays all;
  for (const Input& input : inputs)
    all.insert(all.end(), input.arrays().begin(), input.arrays().end());
  return all;
}

// Appends what tells attributes apart: texts of numbers and tensors do not say all.
Status AppendKey(const AttrValue& value, std::string* key) {
  if (const float* const number = value.As<float>()) {
    key->append(reinterpret_cast<const char*>(number), sizeof(*number));
  } else if (const Tensor* const tensor = value.As<Tensor>()) {
    WEFT_ASSIGN_OR_RETURN(const std::string bytes, SerializeTensorProto(*tensor));
    absl::StrAppend(key, bytes.size(), ":", bytes);
  } else if (const auto* const numbers = value.As<AttrValue::FloatList>();
             numbers != nullptr && !numbers->empty()) {
    key->append(reinterpret_cast<const char*>(numbers->data()), numbers->size() * sizeof(float));
  } else {
    *key += value.ToString();
  }
  return absl::OkStatus();
}

}  // namespace

int64_t Array::NextId() {
  static std::atomic<int64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

StatusOr<std::unique_ptr<Runtime>> Runtime::Make(const RuntimeOptions& options) {
  if (options.catalogue == nullptr || options.devices == nullptr)
    return InvalidArgument("A runtime needs a catalogue of ops and devices");
  std::unique_ptr<Runtime> runtime(new Runtime(options));
  WEFT_RETURN_IF_ERROR(runtime->MakeDevices(*options.devices));
  return runtime;
}

Runtime::Runtime(const RuntimeOptions& options)
    : catalogue_(*options.catalogue),
      pool_("weft-eager", options.num_threads),
      waits_(&clock_),
      task_{.pool = &pool_, .files = &files_, .waits = &waits_} {}

Runtime::~Runtime() { step_resources_.CleanupAll(); }

Status Runtime::MakeDevices(DeviceFactory& factory) {
  const DeviceName task{.job = "localhost", .replica = 0, .task = 0};
  WEFT_ASSIGN_OR_RETURN(devices_, factory.Make(task, &pool_));
  if (devices_.empty()) return InvalidArgument("A runtime needs a device, its factory made none");
  std::vector<Device*> all;
  for (const auto& device : devices_) {
    if (device->memory() != nullptr)
      return Unimplemented("Ops one at a time do not run on ", device->name(),
                           ", which has a memory of its own");
    environments_.push_back({.device = device.get(),
                             .cancellation = &cancellation_,
                             .step_resources = &step_resources_,
                             .waits = &waits_,
                             .files = &files_});
    all.push_back(device.get());
  }
  session_devices_ = step::SessionDevices(std::move(all));
  return absl::OkStatus();
}

std::vector<std::string> Runtime::Devices() const {
  std::vector<std::string> names;
  for (const auto& device : devices_) names.push_back(device->name());
  return names;
}

Status Runtime::SetDevice(const std::string& device) {
  WEFT_ASSIGN_OR_RETURN(const DeviceName wanted, DeviceName::Parse(device));
  for (size_t i = 0; i < devices_.size(); ++i) {
    WEFT_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(devices_[i]->name()));
    if (!wanted.Matches(name)) continue;
    device_ = i;
    return absl::OkStatus();
  }
  return InvalidArgument("There is no device ", device, ", but ", absl::StrJoin(Devices(), ", "));
}

void Runtime::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

Array Runtime::Op(absl::string_view op, absl::Span<const Input> inputs, Attrs attrs) {
  std::vector<Array> outputs = Outputs(op, inputs, attrs);
  return outputs.empty() ? Array() : std::move(outputs[0]);
}

std::vector<Array> Runtime::Outputs(absl::string_view op, absl::Span<const Input> inputs,
                                    Attrs attrs) {
  if (!ok()) return {};
  const Arrays arrays = Flat(inputs);
  for (const Array& array : arrays) {
    if (array) continue;
    Fail(InvalidArgument(op, " got an array of nothing"));
    return {};
  }
  const StatusOr<const OpKind*> kind = KindOf(op, inputs, attrs);
  if (!kind.ok()) {
    Fail(Annotate(kind.status(), op));
    return {};
  }
  StatusOr<std::vector<Array>> outputs = Call(**kind, arrays);
  if (outputs.ok()) return *std::move(outputs);
  Fail(Annotate(outputs.status(), op));
  return {};
}

StatusOr<const OpKind*> Runtime::KindOf(absl::string_view op, absl::Span<const Input> inputs,
                                        Attrs attrs) {
  key_.assign(op.data(), op.size());
  key_ += static_cast<char>(device_);
  for (const Input& input : inputs) {
    if (input.is_list()) key_ += '[';
    for (const Array& array : input.arrays()) key_ += static_cast<char>(array.dtype());
    if (input.is_list()) key_ += ']';
  }
  for (const auto& [name, value] : attrs) {
    absl::StrAppend(&key_, "\n", name, "=");
    WEFT_RETURN_IF_ERROR(AppendKey(value, &key_));
  }
  const auto known = kinds_.find(key_);
  if (known != kinds_.end()) return known->second.get();
  return MakeKind(key_, op, inputs, attrs);
}

StatusOr<const OpKind*> Runtime::MakeKind(std::string key, absl::string_view op,
                                          absl::Span<const Input> inputs, Attrs attrs) {
  // A graph of placeholders and the op finds the attributes that are not said.
  Graph graph(&catalogue_.ops());
  GraphBuilder builder(&graph);
  std::vector<Argument> arguments;
  for (const Input& input : inputs) {
    std::vector<Endpoint> list;
    for (const Array& array : input.arrays())
      list.push_back(builder.Op("Placeholder", {}, {{"dtype", array.dtype()}}));
    arguments.push_back(input.is_list() || list.empty() ? Argument(list) : Argument(list[0]));
  }
  AttrMap map;
  for (const auto& [name, value] : attrs) map.emplace(name, value);
  const Node* const node = builder.AddNode(op, arguments, std::move(map));
  WEFT_RETURN_IF_ERROR(builder.status());
  return AddKind(std::move(key), node->call());
}

StatusOr<const OpKind*> Runtime::KindOfCall(const OpCall& call) {
  std::string key = absl::StrCat(call.op(), std::string(1, static_cast<char>(device_)), "\n");
  for (const auto& [name, value] : call.attrs()) {
    absl::StrAppend(&key, "\n", name, "=");
    WEFT_RETURN_IF_ERROR(AppendKey(value, &key));
  }
  const auto known = kinds_.find(key);
  if (known != kinds_.end()) return known->second.get();
  return AddKind(std::move(key), call);
}

StatusOr<const OpKind*> Runtime::AddKind(std::string key, OpCall call) {
  auto kind = std::make_unique<OpKind>();
  kind->call = std::move(call);
  kind->device = device_;
  Device* const device = devices_[device_].get();
  kind->call.set_assigned_device(device->name());
  WEFT_ASSIGN_OR_RETURN(const KernelDef* const def,
                        catalogue_.kernels().Find(kind->call, device->type()));
  WEFT_ASSIGN_OR_RETURN(kind->kernel, MakeOpKernel(*def, kind->call, device));
  return kinds_.emplace(std::move(key), std::move(kind)).first->second.get();
}

StatusOr<std::vector<Array>> Runtime::Call(const OpKind& kind, absl::Span<const Array> inputs) {
  std::vector<Array> outputs;
  if (tracing_ != nullptr) {
    WEFT_ASSIGN_OR_RETURN(outputs, tracing_->Add(kind, inputs));
  } else {
    WEFT_ASSIGN_OR_RETURN(std::vector<Tensor> results, Compute(kind, inputs));
    outputs.reserve(results.size());
    for (Tensor& result : results) outputs.emplace_back(std::move(result));
  }
  for (Tape* tape : tapes_) tape->Record(kind, inputs, outputs);
  return outputs;
}

StatusOr<std::vector<Tensor>> Runtime::Compute(const OpKind& kind, absl::Span<const Array> inputs) {
  absl::InlinedVector<Value, 4> values(inputs.size());
  absl::InlinedVector<Value, 2> made(static_cast<size_t>(kind.call.num_outputs()));
  KernelContext::Binding binding{.call = &kind.call};
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_traced())
      return InvalidArgument("Input ", i, " is of a function that was traced, which has ended");
    values[i].tensor = inputs[i].tensor();
    binding.inputs.push_back(&values[i].tensor);
    binding.input_values.push_back(&values[i]);
    binding.input_is_last_use.push_back(false);
  }
  for (Value& value : made) binding.outputs.push_back(&value);
  KernelContext context(std::move(binding));
  context.set_environment(&environments_[kind.device]);
  if (kind.kernel->is_async()) {
    struct Outcome {
      absl::Notification ended;
      Status status;
    };
    const auto outcome = std::make_shared<Outcome>();  // outlives a callback still in Notify
    executor::CallAsyncKernel(*kind.kernel, context, [outcome](Status status) {
      outcome->status = std::move(status);
      outcome->ended.Notify();
    });
    outcome->ended.WaitForNotification();
    WEFT_RETURN_IF_ERROR(outcome->status);
  } else {
    WEFT_RETURN_IF_ERROR(executor::CallKernel(*kind.kernel, context));
  }
  std::vector<Tensor> results;
  results.reserve(made.size());
  for (Value& value : made) {
    if (value.variable || !value.tensor.IsInitialized())
      return Unimplemented("Op ", kind.call.op(), " gives no values outside of a graph");
    results.push_back(std::move(value.tensor));
  }
  return results;
}

}  // namespace weft::imperative
