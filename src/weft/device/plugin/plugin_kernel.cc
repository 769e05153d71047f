// SPDX-License-Identifier: Apache-2.0
#include "weft/device/plugin/plugin_kernel.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "weft/device/plugin/plugin_library.h"
#include "weft/device/plugin/plugin_memory.h"
#include "weft/kernel/op_kernel.h"

namespace weft::plugin {
namespace {

template <typename T, typename Out>
int GetAttr(const void* attributes, const char* name, Out* value) {
  const auto& attrs = *static_cast<const AttrMap*>(attributes);
  const auto found = attrs.find(name);
  const T* const held = found == attrs.end() ? nullptr : found->second.As<T>();
  if (held == nullptr) return 0;
  if constexpr (std::is_same_v<T, std::string>) {
    *value = held->c_str();
  } else {
    *value = static_cast<Out>(*held);
  }
  return 1;
}

int GetInts(const void* attributes, const char* name, const int64_t** values, size_t* count) {
  const auto& attrs = *static_cast<const AttrMap*>(attributes);
  const auto found = attrs.find(name);
  const auto* const held = found == attrs.end() ? nullptr : found->second.As<AttrValue::IntList>();
  if (held == nullptr) return 0;
  *values = held->data();
  *count = held->size();
  return 1;
}

std::vector<int32_t> Numbers(absl::Span<const ArgType> types) {
  std::vector<int32_t> numbers;
  for (const ArgType& type : types) numbers.push_back(static_cast<int32_t>(type.dtype));
  return numbers;
}

weft_tensor Describe(const Tensor& tensor) {
  const absl::Span<const int64_t> dims = tensor.shape().dims();
  const bool on_host = tensor.memory() == nullptr;
  return {.dtype = static_cast<int32_t>(tensor.dtype()),
          .rank = tensor.rank(),
          .dims = dims.data(),
          .elements = tensor.num_elements(),
          .bytes = tensor.size_bytes(),
          .address = on_host ? 0 : tensor.device_address(),
          .on_host = on_host ? tensor.bytes() : nullptr};
}

class PluginKernel final : public OpKernel {
 public:
  PluginKernel(const weft_device_api* api, weft_kernel* kernel, uint64_t writes)
      : api_(api), kernel_(kernel), writes_(writes) {}
  ~PluginKernel() override { api_->destroy_kernel(kernel_); }

  Status Compute(KernelContext& c) override;

 private:
  const weft_device_api* const api_;
  weft_kernel* const kernel_;
  const uint64_t writes_;
};

// The inputs of one call, with the variables among them held.
class CallInputs {
 public:
  CallInputs(KernelContext& c, uint64_t writes) : c_(c), writes_(writes) {}
  CallInputs(const CallInputs&) = delete;
  ~CallInputs() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (Variable* variable : locked_) variable->mutex().Unlock();
  }

  Status Gather() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    variables_.resize(c_.num_inputs());
    for (int i = 0; i < c_.num_inputs(); ++i) {
      const ArgType& type = c_.call().input_type(i);
      if (!type.is_ref && type.dtype != DType::kResource) continue;
      if (type.is_ref) {
        WEFT_ASSIGN_OR_RETURN(Variable * variable, c_.input_variable(i));
        variables_[i] = Ref<Variable>(variable);
      } else {
        WEFT_ASSIGN_OR_RETURN(variables_[i], c_.input_resource_variable(i));
      }
    }
    LockWritten();
    values_.reserve(static_cast<size_t>(c_.num_inputs()));
    for (int i = 0; i < c_.num_inputs(); ++i) {
      if (!variables_[i]) {
        // No other handle: an output may take over its memory.
        described_.push_back(Describe(c_.input(i)));
        continue;
      }
      WEFT_ASSIGN_OR_RETURN(Tensor value, ValueOf(i));
      values_.push_back(std::move(value));
      described_.push_back(Describe(values_.back()));
    }
    return absl::OkStatus();
  }

  const std::vector<weft_tensor>& described() const { return described_; }

  // Reference outputs pass the variable of input 0 on, in turn.
  void ForwardVariables() {
    int input = 0;
    for (int o = 0; o < c_.num_outputs(); ++o) {
      if (!c_.call().output_type(o).is_ref) continue;
      if (input < c_.num_inputs() && variables_[input])
        c_.SetOutputVariable(o, variables_[input++]);
    }
  }

 private:
  bool writes(int i) const { return i < 64 && (writes_ >> i & 1) != 0; }

  void LockWritten() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    for (int i = 0; i < c_.num_inputs(); ++i) {
      if (variables_[i] && writes(i)) locked_.push_back(variables_[i].get());
    }
    std::sort(locked_.begin(), locked_.end(), std::less<Variable*>());
    locked_.erase(std::unique(locked_.begin(), locked_.end()), locked_.end());
    for (Variable* variable : locked_) variable->mutex().Lock();
  }

  StatusOr<Tensor> ValueOf(int i) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (!writes(i)) return variables_[i]->Read();
    WEFT_ASSIGN_OR_RETURN(Tensor * value, variables_[i]->MutableLocked());
    return *value;
  }

  KernelContext& c_;
  const uint64_t writes_;
  std::vector<Ref<Variable>> variables_;  // by input; null where it is none
  std::vector<Variable*> locked_;
  std::vector<Tensor> values_;  // of the variables
  std::vector<weft_tensor> described_;
};

// What `weft_call::output` needs.
struct Outputs {
  KernelContext* context = nullptr;
  std::vector<weft_tensor> described;
  Status status;
};

const weft_tensor* MakeOutput(void* host, int32_t index, int32_t reuse, int32_t rank,
                              const int64_t* dims) {
  Outputs& outputs = *static_cast<Outputs*>(host);
  KernelContext& c = *outputs.context;
  if (index < 0 || index >= c.num_outputs() || c.call().output_type(index).is_ref) {
    outputs.status = Internal("The device library asks for output ", index, ", which is none");
    return nullptr;
  }
  if (rank < 0 || rank > kMaxRank || (rank > 0 && dims == nullptr)) {
    outputs.status = Internal("The device library gives output ", index, " of ", c.call().op(),
                              " a rank of ", rank, (dims == nullptr ? " without sizes" : ""));
    return nullptr;
  }
  StatusOr<Shape> shape = Shape::Make(Dims(dims, dims + rank));
  if (!shape.ok()) {
    outputs.status = shape.status();
    return nullptr;
  }
  const bool can_reuse = reuse >= 0 && reuse < c.num_inputs() &&
                         c.input(reuse).memory() != nullptr && !c.call().output_type(index).on_host;
  StatusOr<Tensor*> made =
      can_reuse ? c.ForwardOrAllocateOutput(reuse, index, *shape) : c.AllocateOutput(index, *shape);
  if (!made.ok()) {
    outputs.status = made.status();
    return nullptr;
  }
  weft_tensor& described = outputs.described[index];
  described = Describe(**made);
  return &described;
}

Status PluginKernel::Compute(KernelContext& c) {
  CallInputs inputs(c, writes_);
  WEFT_RETURN_IF_ERROR(inputs.Gather());
  Outputs outputs{.context = &c, .described = std::vector<weft_tensor>(c.num_outputs())};
  const weft_call call{.num_inputs = c.num_inputs(),
                       .inputs = inputs.described().data(),
                       .host = &outputs,
                       .output = &MakeOutput};
  auto& memory = static_cast<PluginMemory&>(*c.device().memory());
  const Status launched =
      memory.Launch([&](weft_stream* stream,
                        weft_error* error) { return api_->launch(kernel_, stream, &call, error); },
                    absl::StrCat(c.call().op(), " on ", c.device().name()));
  WEFT_RETURN_IF_ERROR(outputs.status);
  WEFT_RETURN_IF_ERROR(launched);
  for (int o = 0; o < c.num_outputs(); ++o) {
    if (outputs.described[o].dtype == 0 && !c.call().output_type(o).is_ref) {
      return Internal("The device library made no output ", o, " of ", c.call().op());
    }
  }
  inputs.ForwardVariables();
  return absl::OkStatus();
}

}  // namespace

KernelFactory MakePluginKernel(const weft_device_api* api, size_t number) {
  return [api, number](KernelConstruction& c) -> StatusOr<std::unique_ptr<OpKernel>> {
    auto* const memory = dynamic_cast<PluginMemory*>(c.device()->memory());
    if (memory == nullptr) {
      return Internal("A kernel of ", api->type, " was asked for on ", c.device()->name());
    }
    const std::vector<int32_t> inputs = Numbers(c.call().input_types());
    const std::vector<int32_t> outputs = Numbers(c.call().output_types());
    const weft_op op{.name = c.name().c_str(),
                     .op = c.op().c_str(),
                     .num_inputs = c.num_inputs(),
                     .num_outputs = c.num_outputs(),
                     .input_dtypes = inputs.data(),
                     .output_dtypes = outputs.data(),
                     .attributes = &c.call().attrs(),
                     .get_int = &GetAttr<int64_t, int64_t>,
                     .get_float = &GetAttr<float, float>,
                     .get_bool = &GetAttr<bool, int>,
                     .get_dtype = &GetAttr<DType, int32_t>,
                     .get_string = &GetAttr<std::string, const char*>,
                     .get_ints = &GetInts};
    weft_kernel* kernel = nullptr;
    weft_error error = {};
    const int code = api->create_kernel(memory->device(), number, &op, &kernel, &error);
    WEFT_RETURN_IF_ERROR(ToStatus(code, error.message, absl::StrCat(c.op(), " on ", api->type)));
    if (kernel == nullptr) {
      return Internal("The device library made no kernel of ", c.op(), " and gave no reason");
    }
    return std::make_unique<PluginKernel>(api, kernel, api->kernels[number].writes);
  };
}

}  // namespace weft::plugin
