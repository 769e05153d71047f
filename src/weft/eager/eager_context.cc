// SPDX-License-Identifier: Apache-2.0
#include "weft/eager/eager_context.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

#include "weft/eager/place_function.h"
#include "weft/graph/graph_proto.h"
#include "weft/graph/op_call.h"
#include "weft/tensor/shape_proto.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::eager {
namespace {

namespace proto = tensorflow::eager;

// What TensorFlow 2 calls a resource that is to have a name of its own.
constexpr char kAnonymous[] = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";
constexpr int64_t kMostOutputs = 1 << 20;

// Equal values give equal bytes, also of what is kept in maps.
std::string Bytes(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&out);
  out.Trim();
  return bytes;
}

// "/job:worker/task:1", as sessions say which tasks they need.
std::string FilterOf(const DeviceName& task) {
  return absl::StrCat("/job:", task.job.value_or(""), "/task:", task.task.value_or(0));
}

// A device of this task: the one that was asked for if it is, else the first.
std::string PlaceOf(const worker::Worker& worker, const std::string& asked) {
  const std::vector<DeviceAttributes> devices = worker.devices();
  for (const DeviceAttributes& device : devices) {
    if (device.name == asked) return asked;
  }
  return devices.front().name;
}

// The device is one of another task.
bool IsElsewhere(const worker::Worker& worker, const std::string& device) {
  const StatusOr<DeviceName> name = DeviceName::Parse(device);
  return name.ok() && name->IsFull() && name->TaskName() != worker.task();
}

// Of a resource that is to have a name of its own: the same at every task.
std::string NameOf(uint64_t context, int64_t op_id) {
  return absl::StrCat("eager_", context, "_", op_id);
}

// Says which other task an error comes from, in the words by which programs tell that it is not the
// fault of the task that they asked. `places` are devices where inputs lie, or empty.
Status BlameTask(const Status& status, const std::vector<std::string>& places) {
  if (!absl::IsUnavailable(status) && !absl::IsAborted(status)) return status;
  std::string blamed;
  for (const std::string& place : places) {
    const StatusOr<DeviceName> device = DeviceName::Parse(place);
    if (place.empty() || !device.ok()) continue;
    const bool is_named = absl::StrContains(status.message(), device->TaskName()) ||
                          absl::StrContains(status.message(), FilterOf(*device));
    if (blamed.empty() || is_named) blamed = device->TaskName();
    if (is_named) break;
  }
  if (blamed.empty()) return status;
  return Status(
      status.code(),
      absl::StrCat(status.message(), "\nAdditional GRPC error information from remote target ",
                   blamed,
                   // In the words of gRPC's own library, which programs look for.
                   ": failed to connect to all addresses: it does not answer, or has been started "
                   "again"));
}

// How the program runs functions is the task's affair.
bool IsAboutRunning(absl::string_view attr) {
  return attr == "executor_type" || attr == "config_proto" || attr == "config";
}

// The node for an input: fed, or a variable of another task by its name.
NodeDef MakeInput(const Tensor& value, const std::string& place, const std::string& device) {
  if (place.empty()) {
    NodeDef fed{.op = "Placeholder", .device = device};
    fed.attrs["dtype"] = value.dtype();
    return fed;
  }
  const ResourceHandle& handle = value.scalar<ResourceHandle>();
  NodeDef variable{.op = "VarHandleOp", .device = place};
  variable.attrs["shared_name"] = handle.name;
  if (handle.container != kDefaultContainer) variable.attrs["container"] = handle.container;
  if (!handle.dtypes_and_shapes.empty()) {
    variable.attrs["dtype"] = handle.dtypes_and_shapes[0].first;
    variable.attrs["shape"] = handle.dtypes_and_shapes[0].second;
  }
  return variable;
}

// Of a _Send or a _Recv: where its tensor is met.
StatusOr<RendezvousKey> KeyOf(const AttrMap& attrs) {
  RendezvousKey key;
  WEFT_ASSIGN_OR_RETURN(key.edge, FindAttr<std::string>(attrs, "tensor_name"));
  WEFT_ASSIGN_OR_RETURN(key.send_device, FindAttr<std::string>(attrs, "send_device"));
  WEFT_ASSIGN_OR_RETURN(key.receive_device, FindAttr<std::string>(attrs, "recv_device"));
  WEFT_ASSIGN_OR_RETURN(const int64_t incarnation,
                        FindAttr<int64_t>(attrs, "send_device_incarnation"));
  key.send_incarnation = static_cast<uint64_t>(incarnation);
  return key;
}

// A dataset lives where it was made: what another process sends of it is no more than its name.
Status RefuseDataset(const Tensor& tensor) {
  if (tensor.dtype() != DType::kVariant) return absl::OkStatus();
  for (const Variant& variant : tensor.span<Variant>()) {
    if (variant.value && variant.value->type_name() == "tensorflow::DatasetVariantWrapper")
      return InvalidArgument("A dataset cannot be copied from one task to another: make it in a ",
                             "function that runs where it is used");
  }
  return absl::OkStatus();
}

}  // namespace

EagerContext::EagerContext(const EagerEnvironment& environment, uint64_t id,
                           absl::Duration keep_alive)
    : environment_(environment),
      id_(id),
      keep_alive_(keep_alive),
      rendezvous_(MakeRef<rendezvous::StepRendezvous>(static_cast<int64_t>(id),
                                                      environment.worker->task(), nullptr,
                                                      environment.worker->options().waits)),
      library_(&environment.worker->options().catalogue->ops()),
      last_used_(absl::Now()),
      components_(environment.worker, environment.tasks->source(), absl::StrCat("eager_", id)) {
  rendezvous_->PullFrom(environment_.tasks->source());
}

EagerContext::~EagerContext() {
  const Status closed = Cancelled("The context was closed");
  Cancel(closed);
  rendezvous_->Abort(closed);
  for (const auto& [tasks, session] : sessions_)
    environment_.master->CloseSession(session.handle, [] {}).IgnoreError();
}

Status EagerContext::Open() {
  absl::MutexLock lock(&mutex_);
  return SessionOver({}, &cancellation_).status();
}

void EagerContext::Touch() {
  absl::MutexLock lock(&mutex_);
  last_used_ = absl::Now();
}

bool EagerContext::IsExpired() const {
  absl::MutexLock lock(&mutex_);
  return absl::Now() - last_used_ > keep_alive_;
}

Status EagerContext::AddFunctions(const proto::RegisterFunctionOp& functions) {
  if (functions.is_component_function()) return components_.Add(functions);
  std::vector<FunctionDef> defs;
  for (const auto& function : functions.library().function()) {
    WEFT_ASSIGN_OR_RETURN(FunctionDef def, FunctionDefFromProto(function));
    defs.push_back(std::move(def));
  }
  if (functions.has_function_def()) {
    WEFT_ASSIGN_OR_RETURN(FunctionDef def, FunctionDefFromProto(functions.function_def()));
    defs.push_back(std::move(def));
  }
  absl::MutexLock lock(&mutex_);
  for (FunctionDef& def : defs) {
    if (library_.FindFunction(def.signature.name) != nullptr) continue;
    WEFT_RETURN_IF_ERROR(library_.AddFunction(def));
    functions_.push_back(std::move(def));
  }
  return absl::OkStatus();
}

StatusOr<Tensor> EagerContext::Find(const proto::RemoteTensorHandle& handle, Cancellation* caller) {
  const std::pair<int64_t, int> key = {handle.op_id(), handle.output_num()};
  {
    absl::MutexLock lock(&mutex_);
    const auto found = tensors_.find(key);
    if (found != tensors_.end()) return found->second;
    const auto known = elsewhere_.find(key);
    if (known != elsewhere_.end()) return known->second;
  }
  if (!IsElsewhere(*environment_.worker, handle.device()))
    return InvalidArgument(
        "Unable to find the relevant tensor remote_handle: Op ID: ", handle.op_id(),
        ", Output num: ", handle.output_num(), ", which lies at ", handle.device());
  StatusOr<Tensor> fetched = environment_.tasks->Fetch(id_, handle, caller);
  if (!fetched.ok()) return BlameTask(fetched.status(), {handle.device()});
  if (fetched->dtype() == DType::kResource) {
    absl::MutexLock lock(&mutex_);
    elsewhere_.emplace(key, *fetched);
  }
  return fetched;
}

Status EagerContext::Put(const proto::SendTensorOp& sent) {
  std::vector<Tensor> tensors;
  for (const tensorflow::TensorProto& tensor : sent.tensors()) {
    WEFT_ASSIGN_OR_RETURN(Tensor read, TensorFromProto(tensor));
    WEFT_RETURN_IF_ERROR(RefuseDataset(read));
    tensors.push_back(std::move(read));
  }
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < tensors.size(); ++i)
    tensors_[{sent.op_id(), static_cast<int>(i)}] = std::move(tensors[i]);
  return absl::OkStatus();
}

Status EagerContext::Release(int64_t op_id, int output) {
  absl::MutexLock lock(&mutex_);
  if (tensors_.erase({op_id, output}) > 0) return absl::OkStatus();
  return InvalidArgument("Unable to find the relevant tensor remote_handle: Op ID: ", op_id,
                         ", Output num: ", output);
}

StatusOr<EagerContext::Call> EagerContext::Read(const proto::Operation& operation,
                                                Cancellation* caller) {
  Call call{
      .op = operation.name(), .device = operation.device(), .is_function = operation.is_function()};
  call.key = absl::StrCat(call.op, "\n", call.device);
  const std::map<std::string, tensorflow::AttrValue> attrs(operation.attrs().begin(),
                                                           operation.attrs().end());
  for (const auto& [name, value] : attrs) {
    if (call.is_function && IsAboutRunning(name)) continue;
    StatusOr<AttrValue> read = AttrValueFromProto(value);
    if (!read.ok()) return Annotate(read.status(), absl::StrCat(call.op, "'s attribute ", name));
    // One that nobody else has.
    if (name == "shared_name" && value.s() == kAnonymous)
      read = AttrValue(NameOf(id_, operation.id()));
    absl::StrAppend(&call.key, "\n", name, "=",
                    name == "shared_name" ? read->ToString() : Bytes(value));
    call.attrs[name] = *std::move(read);
  }
  for (const proto::Operation::Input& input : operation.op_inputs()) {
    StatusOr<Tensor> tensor = input.has_remote_handle() ? Find(input.remote_handle(), caller)
                                                        : TensorFromProto(input.tensor());
    if (!tensor.ok())
      return Annotate(tensor.status(), absl::StrCat("Input ", call.inputs.size(), " of ", call.op));
    absl::StrAppend(&call.key, "\n", static_cast<int>(tensor->dtype()));
    call.places.emplace_back();
    if (tensor->dtype() == DType::kResource && tensor->num_elements() == 1) {
      const ResourceHandle& handle = tensor->scalar<ResourceHandle>();
      if (IsElsewhere(*environment_.worker, handle.device)) {
        call.places.back() = handle.device;
        absl::StrAppend(&call.key, " ", handle.device, " ", handle.name);
      }
    }
    call.inputs.push_back(*std::move(tensor));
  }
  return call;
}

// `num_outputs` of the call; functions are called by an op.
StatusOr<NodeDef> EagerContext::MakeNode(const Call& call, const std::string& name,
                                         int* num_outputs) {
  WEFT_ASSIGN_OR_RETURN(const OpDefinition* definition, library_.FindOp(call.op));
  const StatusOr<OpCall> made = OpCall::Make(definition, name, call.attrs, call.device);
  if (!made.ok()) return Annotate(made.status(), call.op);
  if (made->num_inputs() != static_cast<int>(call.inputs.size()))
    return InvalidArgument("Operation ", call.op, " expects ", made->num_inputs(),
                           " inputs, but got ", call.inputs.size());
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const DType wanted = made->input_type(static_cast<int>(i)).dtype;
    if (wanted == call.inputs[i].dtype()) continue;
    return InvalidArgument("Type mismatch for input ", i, " of operation ", call.op, ". Expected ",
                           DTypeName(wanted), ", got ", DTypeName(call.inputs[i].dtype()));
  }
  *num_outputs = made->num_outputs();
  if (*num_outputs > kMostOutputs) return InvalidArgument(call.op, " has too many outputs");
  NodeDef node{.name = name, .op = call.op, .device = call.device, .attrs = call.attrs};
  if (library_.FindFunction(call.op) == nullptr) return node;
  AttrValue::TypeList inputs, outputs;
  for (const ArgType& type : made->input_types()) inputs.push_back(type.dtype);
  for (const ArgType& type : made->output_types()) outputs.push_back(type.dtype);
  std::string function = call.op;
  if (absl::c_any_of(call.places, [](const std::string& place) { return !place.empty(); })) {
    WEFT_ASSIGN_OR_RETURN(function,
                          PlaceFunction(call.op, call.places, call.device, &library_, &functions_));
  }
  node.op = "StatefulPartitionedCall";
  node.attrs = {{"f", FunctionRef{.name = std::move(function), .attrs = nullptr}},
                {"Tin", std::move(inputs)},
                {"Tout", std::move(outputs)}};
  return node;
}

StatusOr<std::shared_ptr<const EagerContext::Compiled>> EagerContext::Compile(
    const Call& call, Cancellation* caller) {
  absl::MutexLock lock(&mutex_);
  const auto known = compiled_.find(call.key);
  if (known != compiled_.end()) return known->second;
  const std::string name = absl::StrCat("call_", next_call_);
  int num_outputs = 0;
  WEFT_ASSIGN_OR_RETURN(NodeDef node, MakeNode(call, name, &num_outputs));
  WEFT_ASSIGN_OR_RETURN(Session* const session, SessionOver(DevicesOf(call, node), caller));
  GraphDef graph;
  graph.versions.producer = kGraphVersion;
  graph.functions.assign(functions_.begin() + static_cast<int64_t>(session->functions),
                         functions_.end());
  auto compiled = std::make_shared<Compiled>();  // shared by the table and running calls
  compiled->session = session->session;
  compiled->addresses = session->addresses;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    NodeDef input = MakeInput(call.inputs[i], call.places[i], call.device);
    input.name = absl::StrCat(name, "/input_", i);
    node.inputs.push_back(input.name);
    if (call.places[i].empty()) {
      compiled->fed.push_back(static_cast<int>(i));
      compiled->feeds.push_back(absl::StrCat(input.name, ":0"));
    }
    graph.nodes.push_back(std::move(input));
  }
  graph.nodes.push_back(std::move(node));
  for (int i = 0; i < num_outputs; ++i) compiled->fetches.push_back(absl::StrCat(name, ":", i));
  if (num_outputs == 0) compiled->targets.push_back(name);
  ++next_call_;
  StatusOr<int64_t> version = session->session->Extend(std::move(graph), session->version, caller);
  if (!version.ok()) return Annotate(version.status(), call.op);
  session->version = *version;
  session->functions = functions_.size();
  compiled_[call.key] = compiled;
  return std::shared_ptr<const Compiled>(compiled);
}

StatusOr<std::vector<Tensor>> EagerContext::RunCompiled(const Compiled& compiled,
                                                        std::vector<Tensor> inputs,
                                                        Cancellation* caller) {
  struct Outcome {
    absl::Notification ended;
    StatusOr<master::StepResult> result = Internal("The call gave no answer");
  };
  auto outcome = std::make_shared<Outcome>();  // outlives a callback that is still in Notify
  master::SessionStep step{.fetches = compiled.fetches,
                           .targets = compiled.targets,
                           .any_shape = true,
                           .caller = caller};
  for (size_t i = 0; i < compiled.fed.size(); ++i)
    step.feeds.push_back(
        {compiled.feeds[i], std::move(inputs[static_cast<size_t>(compiled.fed[i])])});
  compiled.session->Run(std::move(step), [outcome](StatusOr<master::StepResult> result) {
    outcome->result = std::move(result);
    outcome->ended.Notify();
  });
  outcome->ended.WaitForNotification();
  WEFT_RETURN_IF_ERROR(outcome->result.status());
  return std::move(outcome->result->fetches);
}

Status EagerContext::Send(const Call& call) {
  WEFT_ASSIGN_OR_RETURN(const RendezvousKey key, KeyOf(call.attrs));
  if (call.inputs.size() != 1) return InvalidArgument("_Send sends one tensor");
  return rendezvous_->Send(key, call.inputs[0], /*is_dead=*/false);
}

StatusOr<Tensor> EagerContext::Receive(const Call& call, Cancellation* caller) {
  WEFT_ASSIGN_OR_RETURN(const RendezvousKey key, KeyOf(call.attrs));
  struct Outcome {
    absl::Mutex mutex;
    absl::Notification ended;
    StatusOr<Tensor> tensor ABSL_GUARDED_BY(mutex) = Internal("No tensor came");
    void End(StatusOr<Tensor> value) {
      absl::MutexLock lock(&mutex);
      if (ended.HasBeenNotified()) return;
      tensor = std::move(value);
      ended.Notify();
    }
  };
  auto outcome = std::make_shared<Outcome>();  // shared with what comes later than the cancellation
  Cancellation::Token token = 0;
  if (!caller->Register(&token, [outcome](const Status& why) { outcome->End(why); }))
    return caller->status();
  rendezvous_->Receive(key, [outcome](StatusOr<Tensor> tensor, bool is_dead) {
    if (is_dead) tensor = InvalidArgument("A dead tensor came");
    outcome->End(std::move(tensor));
  });
  outcome->ended.WaitForNotification();
  caller->Deregister(token);
  absl::MutexLock lock(&outcome->mutex);
  return outcome->tensor;
}

Status EagerContext::Answer(int64_t op_id, const std::string& device, std::vector<Tensor> outputs,
                            proto::QueueResponse* response) {
  if (op_id == kNotKept) {
    for (const Tensor& output : outputs)
      WEFT_RETURN_IF_ERROR(TensorToProto(output, response->add_tensor()));
    return absl::OkStatus();
  }
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < outputs.size(); ++i) {
    ShapeToProto(outputs[i].shape(), response->add_shape());
    if (!device.empty()) response->add_device(device);
    tensors_[{op_id, static_cast<int>(i)}] = std::move(outputs[i]);
  }
  return absl::OkStatus();
}

Status EagerContext::Run(const proto::Operation& operation, Cancellation* caller,
                         proto::QueueResponse* response) {
  // The call ends with who asks, and with the context.
  Cancellation both(caller);
  Cancellation::Token token = 0;
  if (!cancellation_.Register(&token, [&](const Status& why) { both.Cancel(why); }))
    return cancellation_.status();
  const Status status = [&]() -> Status {
    WEFT_ASSIGN_OR_RETURN(Call call, Read(operation, &both));
    if (call.op == "_Send") return Send(call);
    std::vector<Tensor> outputs;
    if (call.op == "_Recv") {
      WEFT_ASSIGN_OR_RETURN(Tensor received, Receive(call, &both));
      outputs.push_back(std::move(received));
    } else {
      const StatusOr<std::shared_ptr<const Compiled>> compiled = Compile(call, &both);
      if (!compiled.ok()) return BlameTask(compiled.status(), call.places);
      StatusOr<std::vector<Tensor>> ran = RunCompiled(**compiled, std::move(call.inputs), &both);
      if (!ran.ok()) {
        const Status gone =
            both.IsCancelled() ? absl::OkStatus() : WhyGone(**compiled, ran.status());
        return gone.ok() ? BlameTask(ran.status(), call.places) : gone;
      }
      outputs = *std::move(ran);
    }
    // Where a function's outputs lie the program is told; of an op it knows, and takes it ill.
    const std::string place =
        operation.is_function() ? PlaceOf(*environment_.worker, call.device) : "";
    return Answer(operation.id(), place, std::move(outputs), response);
  }();
  cancellation_.Deregister(token);
  return status;
}

}  // namespace weft::eager
