// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/known_values.h"

#include "base/cancellation.h"
#include "base/denormals.h"
#include "weft/kernel/kernel_context.h"
#include "weft/kernel/make_op_kernel.h"

namespace weft::compile {

std::optional<std::vector<Tensor>> ValuesTold(const Node& node,
                                              absl::Span<const PartialShape> inputs) {
  const ShapeFact fact = node.traits().tells;
  if (fact == ShapeFact::kNone) return std::nullopt;
  std::vector<Tensor> values;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const StatusOr<Shape> defined = inputs[i].ToShape();
    if (!defined.ok()) return std::nullopt;
    const Shape& shape = *defined;
    std::vector<int64_t> numbers;
    if (fact == ShapeFact::kRank) {
      numbers = {shape.rank()};
    } else if (fact == ShapeFact::kNumElements) {
      numbers = {shape.num_elements()};
    } else {
      for (int d = 0; d < shape.rank(); ++d) numbers.push_back(shape.dim(d));
    }
    const Shape out =
        fact == ShapeFact::kSizes ? Shape{static_cast<int64_t>(numbers.size())} : Shape();
    if (node.output_type(i).dtype == DType::kInt64) {
      values.push_back(Tensor::FromSpan<int64_t>(out, numbers));
      continue;
    }
    std::vector<int32_t> narrow;
    for (const int64_t number : numbers) {
      if (number > INT32_MAX) return std::nullopt;  // the kernel says what is wrong
      narrow.push_back(static_cast<int32_t>(number));
    }
    values.push_back(Tensor::FromSpan<int32_t>(out, narrow));
  }
  return values;
}

std::optional<std::vector<Tensor>> ValuesComputed(const PlanOptions& options, const Node& node,
                                                  absl::Span<const Tensor* const> given) {
  const auto def = options.kernels->Find(node.call(), options.device->type());
  if (!def.ok() || (*def)->cost == KernelCost::kBlocking) return std::nullopt;
  const StatusOr<std::unique_ptr<OpKernel>> kernel =
      MakeOpKernel(**def, node.call(), options.device);
  if (!kernel.ok() || (*kernel)->is_async()) return std::nullopt;
  std::vector<Value> inputs(node.num_inputs());
  std::vector<Value> outputs(node.num_outputs());
  KernelContext::Binding binding{.call = &node.call()};
  for (int i = 0; i < node.num_inputs(); ++i) {
    inputs[i].tensor = *given[i];
    binding.inputs.push_back(&inputs[i].tensor);
    binding.input_values.push_back(&inputs[i]);
    binding.input_is_last_use.push_back(false);
  }
  for (Value& output : outputs) binding.outputs.push_back(&output);
  Cancellation cancellation;
  const StepEnvironment environment{.device = options.device, .cancellation = &cancellation};
  KernelContext context(std::move(binding));
  context.set_environment(&environment);
  const ScopedFlushDenormals flush;  // as kernels of a step have it
  try {
    if (!(*kernel)->Compute(context).ok()) return std::nullopt;
  } catch (...) {
    return std::nullopt;  // the step meets it again and says what it is
  }
  std::vector<Tensor> values;
  for (Value& output : outputs) {
    if (output.is_dead || output.variable || !output.tensor.IsInitialized()) return std::nullopt;
    values.push_back(std::move(output.tensor));
  }
  return values;
}

}  // namespace weft::compile
