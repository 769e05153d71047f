// SPDX-License-Identifier: Apache-2.0
// weft's side of the benchmarks of what stands above sessions: ops at once, tapes, and Fit.
// bench/run.py starts it beside its peers and takes turns, so that all see the same machine.
//
//   model_rounds eager OP SIZE         100 calls of an op on [SIZE, SIZE]
//   model_rounds tape BATCH THREADS    a step of the MLP of session_rounds, by a tape
//   model_rounds traced BATCH THREADS  the same step as a function that was traced
//   model_rounds fit FILE.keras EXAMPLES CLASSES BATCH    an epoch
//
// {"us": microseconds a step, "check": a number that peers must agree on, "cpu_us": ...}
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"

#include "bench/rounds.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/estimator/keras_files.h"
#include "weft/estimator/model.h"
#include "weft/imperative/runtime.h"
#include "weft/imperative/tape.h"
#include "weft/imperative/traced_function.h"
#include "weft/ops/catalogue.h"

namespace weft {
namespace {

using bench::Step;
using imperative::Array;
using imperative::Runtime;

StatusOr<std::shared_ptr<Runtime>> MakeRuntime(int threads) {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Runtime> runtime,
                        Runtime::Make({.catalogue = &StandardCatalogue(),
                                       .devices = &StandardDevices(),
                                       .num_threads = threads}));
  return std::shared_ptr<Runtime>(std::move(runtime));  // shared by copies of the step
}

Array Filled(const Shape& shape, float value) {
  return Array(Tensor::FromSpan<float>(shape, std::vector<float>(shape.num_elements(), value)));
}

// One call, as a program writes it.
StatusOr<std::function<Array()>> EagerCall(Runtime& run, const std::string& op, const Array& x,
                                           const Array& y) {
  const Array one = Array::Scalar<int32_t>(1), order = Array::Vector<int32_t>({1, 0});
  const auto is = [&](const char* name) { return op == name; };
  using Call = std::function<Array()>;
  if (is("add")) return Call([=, &run] { return run.Op("AddV2", {x, y}); });
  if (is("mul")) return Call([=, &run] { return run.Op("Mul", {x, y}); });
  if (is("matmul")) return Call([=, &run] { return run.Op("MatMul", {x, y}); });
  if (is("relu")) return Call([=, &run] { return run.Op("Relu", {x}); });
  if (is("sum")) return Call([=, &run] { return run.Op("Sum", {x, one}); });
  if (is("softmax")) return Call([=, &run] { return run.Op("Softmax", {x}); });
  if (is("transpose")) return Call([=, &run] { return run.Op("Transpose", {x, order}); });
  if (is("concat"))
    return Call([=, &run] { return run.Op("ConcatV2", {std::vector<Array>{x, y}, one}); });
  return InvalidArgument("there is no op '", op, "' here");
}

StatusOr<Step> Eager(const std::string& op, int64_t size) {
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<Runtime> run, MakeRuntime(1));
  const Shape shape{size, size};
  WEFT_ASSIGN_OR_RETURN(const auto call,
                        EagerCall(*run, op, Filled(shape, 0.5f), Filled(shape, 0.25f)));
  return Step([run, call]() -> StatusOr<double> {
    Array last;
    for (int i = 0; i < 100; ++i) last = call();
    WEFT_RETURN_IF_ERROR(run->status());
    return last.tensor().data<float>()[0];
  });
}

// 784-100-10 with softmax cross entropy and SGD, as in session_rounds.
StatusOr<Step> TapeMlp(int64_t batch, int threads, bool traced) {
  struct State {
    std::shared_ptr<Runtime> run;  // shared with whoever made it
    std::vector<imperative::Variable> weights;
    Array x, y, rate;
    std::unique_ptr<imperative::TracedFunction> function;
  };
  const auto state = std::make_shared<State>();  // shared by copies of the step
  WEFT_ASSIGN_OR_RETURN(state->run, MakeRuntime(threads));
  Runtime& run = *state->run;
  for (const auto& [shape, value] :
       {std::pair(Shape{784, 100}, 0.01f), std::pair(Shape{100}, 0.0f),
        std::pair(Shape{100, 10}, 0.01f), std::pair(Shape{10}, 0.0f)}) {
    state->weights.emplace_back(run, Filled(shape, value));
  }
  WEFT_ASSIGN_OR_RETURN(Tensor x, Tensor::Allocate(DType::kFloat, Shape{batch, 784}));
  for (int64_t i = 0; i < x.num_elements(); ++i)
    x.data<float>()[i] = static_cast<float>(i % 97) / 97;
  std::vector<float> targets(batch * 10, 0);
  for (int64_t i = 0; i < batch; ++i) targets[i * 10 + i % 10] = 1;
  state->x = Array(x);
  state->y = Array(Tensor::FromSpan<float>(Shape{batch, 10}, targets));
  state->rate = Array::Scalar<float>(0.001f);
  const auto body = [s = state.get()](absl::Span<const Array> in) {
    Runtime& b = *s->run;
    const auto& w = s->weights;
    imperative::Tape tape(b);
    const auto layer = [&](const Array& rows, int at) {
      return b.Op("BiasAdd", {b.Op("MatMul", {rows, w[at].Read()}), w[at + 1].Read()});
    };
    const Array logits = layer(b.Op("Relu", {layer(in[0], 0)}), 2);
    const Array loss = b.Op("Mean", {b.Op("SoftmaxCrossEntropyWithLogits", {logits, in[1]}),
                                     Array::Scalar<int32_t>(0)});
    const std::vector<Array> gradients =
        tape.Gradient({loss}, {w[0].handle(), w[1].handle(), w[2].handle(), w[3].handle()});
    if (!b.ok()) return std::vector<Array>();
    for (size_t i = 0; i < w.size(); ++i) w[i].AssignSub(b.Op("Mul", {s->rate, gradients[i]}));
    return std::vector<Array>{loss};
  };
  if (traced) state->function = std::make_unique<imperative::TracedFunction>(run, body);
  return Step([state, body]() -> StatusOr<double> {
    const std::vector<Array> in = {state->x, state->y};
    const std::vector<Array> loss = state->function ? (*state->function)(in) : body(in);
    WEFT_RETURN_IF_ERROR(state->run->status());
    return loss[0].tensor().scalar<float>();
  });
}

// Inputs whose values follow from their places, as in peers/keras_rounds.py.
StatusOr<estimator::Examples> Data(const estimator::Model& model, int64_t count, int64_t classes) {
  const Endpoint input = model.inputs()[0];
  const DType dtype = input.node->output_type(input.port).dtype;
  const auto sizes = input.node->Attr<PartialShape>("shape");
  WEFT_RETURN_IF_ERROR(sizes.status());
  Shape shape{count};
  for (int axis = 1; axis < sizes->rank(); ++axis) shape.AddDim(sizes->dim(axis));
  WEFT_ASSIGN_OR_RETURN(Tensor x, Tensor::Allocate(dtype, shape));
  WEFT_ASSIGN_OR_RETURN(Tensor y, Tensor::Allocate(DType::kInt64, Shape{count}));
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    if (dtype == DType::kFloat)
      x.data<float>()[i] = static_cast<float>(i % 97) / 97;
    else if (dtype == DType::kInt32)
      x.data<int32_t>()[i] = static_cast<int32_t>(i * 31 % 997);
    else
      return InvalidArgument("an input of ", DTypeName(dtype));
  }
  for (int64_t i = 0; i < count; ++i) y.data<int64_t>()[i] = i % classes;
  return estimator::Examples{{x}, {y}};
}

StatusOr<Step> FitEpoch(const std::string& file, int64_t count, int64_t classes, int64_t batch) {
  WEFT_ASSIGN_OR_RETURN(auto loaded, estimator::LoadModel(file));
  const std::shared_ptr<estimator::Model> model(std::move(loaded));  // shared by copies of the step
  WEFT_RETURN_IF_ERROR(model->Compile({.optimizer = estimator::Adam(0.001),
                                       .loss = {"sparse_categorical_crossentropy"},
                                       .metrics = {"accuracy"}}));
  WEFT_ASSIGN_OR_RETURN(const estimator::Examples data, Data(*model, count, classes));
  return Step([model, data, batch]() -> StatusOr<double> {
    WEFT_ASSIGN_OR_RETURN(const estimator::History history,
                          model->Fit(data, {.batch_size = batch, .shuffle = false}));
    return history.values.at("loss").back();
  });
}

Status Main(const std::vector<std::string>& args) {
  int64_t first = 0, classes = 0, batch = 0;
  int threads = 0;
  Step step;
  const bool three = args.size() == 3;
  if (three && args[0] == "eager" && absl::SimpleAtoi(args[2], &first)) {
    WEFT_ASSIGN_OR_RETURN(step, Eager(args[1], first));
  } else if (three && (args[0] == "tape" || args[0] == "traced") &&
             absl::SimpleAtoi(args[1], &first) && absl::SimpleAtoi(args[2], &threads)) {
    WEFT_ASSIGN_OR_RETURN(step, TapeMlp(first, threads, args[0] == "traced"));
  } else if (args.size() == 5 && args[0] == "fit" && absl::SimpleAtoi(args[2], &first) &&
             absl::SimpleAtoi(args[3], &classes) && absl::SimpleAtoi(args[4], &batch)) {
    WEFT_ASSIGN_OR_RETURN(step, FitEpoch(args[1], first, classes, batch));
    return bench::Serve(step, 2);
  } else {
    return InvalidArgument(
        "usage: model_rounds eager OP SIZE | tape BATCH THREADS | traced BATCH THREADS | fit FILE "
        "EXAMPLES CLASSES BATCH");
  }
  return bench::Serve(step);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  const weft::Status status = weft::Main({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "model_rounds: %s\n", std::string(status.message()).c_str());
  return 1;
}
