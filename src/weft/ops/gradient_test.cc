// SPDX-License-Identifier: Apache-2.0
// Every gradient function against finite differences. An op with a gradient and without a case here
// fails.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "weft/ops/gradient_cases_test.h"
#include "weft/ops/testing/graph_runner.h"
#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

bool IsTried(DType dtype) {
  return dtype == DType::kFloat || dtype == DType::kDouble || dtype == DType::kComplex128;
}
// A complex number counts as two: for the loss sum(Re(conj(w) * y)) its gradient is what they get
// together.
int64_t NumParts(const Tensor& t) {
  return t.num_elements() * (t.dtype() == DType::kComplex128 ? 2 : 1);
}
double PartOf(const Tensor& t, int64_t i) {
  return t.dtype() == DType::kFloat ? t.data<float>()[i] : t.bits<double>()[i];
}
Tensor Moved(const Tensor& t, int64_t i, double by) {
  Tensor moved = *t.Clone();
  if (t.dtype() == DType::kFloat) {
    moved.data<float>()[i] += static_cast<float>(by);
  } else {
    moved.bits<double>()[i] += by;
  }
  return moved;
}
Tensor Weights(const Tensor& of, uint64_t seed) {
  if (of.dtype() == DType::kFloat) return Fill<float>(of.shape(), 0.5, 2, seed);
  if (of.dtype() == DType::kDouble) return Fill<double>(of.shape(), 0.5, 2, seed);
  Tensor out = *Tensor::Zeros(of.dtype(), of.shape());
  const Tensor parts = Fill<double>({NumParts(of)}, 0.5, 2, seed);
  std::copy_n(parts.data<double>(), NumParts(of), out.bits<double>());
  return out;
}

// Ops whose gradient is made by what is known of their inputs' shapes.
bool NeedsShapes(const std::string& op) {
  static const auto* const ops =
      new std::set<std::string>{"Qr", "MatrixSolveLs", "RaggedTensorToTensor", "ApproxTopK"};
  return ops->contains(op);
}

// The op's outputs, weighted and summed to one number, and the gradients of that number.
class Differentiated {
 public:
  explicit Differentiated(const GradientCase& test) {
    std::vector<Argument> arguments;
    for (const TestInput& input : test.inputs) {
      std::vector<Endpoint> sources;
      for (const Tensor& tensor : input.tensors) {
        sources.push_back(runner_.Input(tensor.dtype()));
        values_.emplace_back(sources.back(), tensor);
        if (!NeedsShapes(test.op)) continue;
        sources.back() =
            runner_.builder().Op("EnsureShape", {sources.back()}, {{"shape", tensor.shape()}});
      }
      arguments.push_back(input.is_list ? Argument(sources) : Argument(sources[0]));
    }
    node_ = runner_.builder().AddNode(test.op, arguments, test.attrs, "tested");
    num_outputs_ =
        test.num_outputs < 0 && node_ != nullptr ? node_->num_outputs() : test.num_outputs;
    counted_ = test.outputs;
  }

  Status Differentiate() {
    WEFT_RETURN_IF_ERROR(runner_.builder().status());
    std::vector<Endpoint> outputs;
    for (int i = 0; i < node_->num_outputs(); ++i) outputs.push_back({node_, i});
    WEFT_ASSIGN_OR_RETURN(std::vector<Tensor> results, runner_.Evaluate(values_, outputs));
    std::vector<Endpoint> gradients(node_->num_outputs());
    for (int i = 0; i < num_outputs_; ++i) {
      if (!IsTried(results[i].dtype())) continue;
      if (!counted_.empty() && std::find(counted_.begin(), counted_.end(), i) == counted_.end()) {
        continue;
      }
      weights_.push_back(Weights(results[i], 77 + i));
      outputs_.push_back(outputs[i]);
      gradients[i] = runner_.Input(results[i].dtype());
      values_.emplace_back(gradients[i], weights_.back());
    }
    if (!node_->definition().gradient) return NotFound(node_->op(), " has no gradient");
    GradientContext context(node_, gradients, &runner_.builder());
    WEFT_RETURN_IF_ERROR(node_->definition().gradient(context));
    WEFT_RETURN_IF_ERROR(runner_.builder().status());
    gradients_ = context.input_gradients();
    return absl::OkStatus();
  }

  int num_inputs() const { return node_->num_inputs(); }
  const Tensor& input(int i) const { return values_[i].second; }
  void set_input(int i, Tensor tensor) { values_[i].second = std::move(tensor); }
  const TensorGradient& gradient(int i) const { return gradients_[i]; }

  StatusOr<double> Loss() {
    WEFT_ASSIGN_OR_RETURN(std::vector<Tensor> results, runner_.Evaluate(values_, outputs_));
    double loss = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      for (int64_t j = 0; j < NumParts(results[i]); ++j)
        loss += PartOf(weights_[i], j) * PartOf(results[i], j);
    }
    return loss;
  }

  // The gradient of input i, made dense.
  StatusOr<Tensor> Analytic(int i) {
    const TensorGradient& gradient = gradients_[i];
    if (gradient.dense) {
      WEFT_ASSIGN_OR_RETURN(std::vector<Tensor> found, runner_.Evaluate(values_, {gradient.dense}));
      return found[0];
    }
    WEFT_ASSIGN_OR_RETURN(
        std::vector<Tensor> found,
        runner_.Evaluate(values_, {gradient.slices->values, gradient.slices->indices}));
    WEFT_ASSIGN_OR_RETURN(Tensor dense, Tensor::Zeros(DType::kDouble, input(i).shape()));
    const int64_t row = dense.num_elements() / dense.dim(0);
    for (int64_t r = 0; r < found[1].num_elements(); ++r) {
      const int64_t at = found[1].dtype() == DType::kInt32 ? found[1].data<int32_t>()[r]
                                                           : found[1].data<int64_t>()[r];
      for (int64_t j = 0; j < row; ++j)
        dense.data<double>()[at * row + j] += found[0].data<double>()[r * row + j];
    }
    return dense;
  }

 private:
  GraphRunner runner_;
  Node* node_ = nullptr;
  int num_outputs_ = 0;
  std::vector<int> counted_;
  std::vector<std::pair<Endpoint, Tensor>> values_;
  std::vector<Endpoint> outputs_;
  std::vector<Tensor> weights_;
  std::vector<TensorGradient> gradients_;
};

void CheckInput(Differentiated& d, int i) {
  StatusOr<Tensor> analytic = d.Analytic(i);
  ASSERT_TRUE(analytic.ok()) << analytic.status();
  const Tensor x = d.input(i);
  ASSERT_EQ(analytic->shape(), x.shape());
  ASSERT_EQ(analytic->dtype(), x.dtype());
  const bool narrow = x.dtype() == DType::kFloat;
  const double step = narrow ? 1e-2 : 1e-5;
  const double tolerance = narrow ? 5e-3 : 2e-5;
  for (int64_t j = 0; j < NumParts(x); ++j) {
    double losses[2];
    for (const int side : {0, 1}) {
      d.set_input(i, Moved(x, j, side == 0 ? -step : step));
      StatusOr<double> loss = d.Loss();
      ASSERT_TRUE(loss.ok()) << loss.status();
      losses[side] = *loss;
    }
    d.set_input(i, x);
    const double numeric = (losses[1] - losses[0]) / (2 * step);
    ASSERT_NEAR(PartOf(*analytic, j), numeric, tolerance * std::max(1.0, std::abs(numeric)))
        << "element " << j;
  }
}

TEST(GradientTest, EveryGradientAgreesWithFiniteDifferences) {
  for (const GradientCase& test : GradientCases()) {
    SCOPED_TRACE(test.op + (test.note.empty() ? "" : ": " + test.note));
    Differentiated d(test);
    const Status made = d.Differentiate();
    EXPECT_TRUE(made.ok()) << made;
    if (!made.ok()) continue;
    int checked = 0;
    for (int i = 0; i < d.num_inputs(); ++i) {
      if (!IsTried(d.input(i).dtype()) || d.gradient(i).empty()) continue;
      if (std::count(test.not_tried.begin(), test.not_tried.end(), i) > 0) continue;
      SCOPED_TRACE(::testing::Message() << "input " << i);
      CheckInput(d, i);
      ++checked;
    }
    EXPECT_EQ(checked, test.num_differentiable);
  }
}

// Gradients that one op between tensors cannot show, with the reason.
const std::map<std::string, std::string>& NotTried() {
  static const auto* const ops = new std::map<std::string, std::string>{
      {"PreventGradient", "refuses"},
      {"FakeQuantWithMinMaxArgs", "has steps, which its gradient leaves out"},
      {"FakeQuantWithMinMaxVars", "has steps, which its gradient leaves out"},
      {"FakeQuantWithMinMaxVarsPerChannel", "has steps, which its gradient leaves out"},
      {"QuantizeAndDequantize", "has steps, which its gradient leaves out"},
      {"QuantizeAndDequantizeV2", "has steps, which its gradient leaves out"},
      {"QuantizeAndDequantizeV3", "has steps, which its gradient leaves out"},
      {"QuantizeAndDequantizeV4", "has steps, which its gradient leaves out"},
      {"StatelessParameterizedTruncatedNormal", "TensorFlow's counts the bounds apart"},
      {"ReadVariableOp", "reads a variable: train/gradients_test.cc"},
      {"ResourceGather", "reads a variable: train/gradients_test.cc"},
      {"ResourceGatherNd", "reads a variable: train/gradients_test.cc"},
      {"Switch", "one side is dead: train/gradients_test.cc"},
      {"Merge", "one side is dead: train/gradients_test.cc"},
      {"OptionalFromValue", "makes a variant: train/function_gradients_test.cc"},
      {"OptionalGetValue", "takes a variant: train/function_gradients_test.cc"},
      {"TensorListPushBack", "makes a variant: train/function_gradients_test.cc"},
      {"TensorListPopBack", "takes a variant: train/function_gradients_test.cc"},
      {"TensorListGetItem", "takes a variant: train/function_gradients_test.cc"},
      {"TensorListSetItem", "takes a variant: train/function_gradients_test.cc"},
      {"TensorListResize", "takes a variant: train/function_gradients_test.cc"},
      {"TensorListStack", "takes a variant: train/function_gradients_test.cc"},
      {"TensorListGather", "takes a variant: train/function_gradients_test.cc"},
      {"TensorListFromTensor", "makes a variant: train/function_gradients_test.cc"},
      {"TensorListScatter", "makes a variant: train/function_gradients_test.cc"},
      {"TensorListScatterV2", "makes a variant: train/function_gradients_test.cc"},
      {"TensorListScatterIntoExistingList", "takes a variant: train/function_gradients_test.cc"},
      {"TensorListSplit", "makes a variant: train/function_gradients_test.cc"},
      {"TensorListConcat", "takes a variant: train/function_gradients_test.cc"},
      {"TensorListConcatV2", "takes a variant: train/function_gradients_test.cc"},
      {"TensorMapInsert", "makes a variant: train/function_gradients_test.cc"},
      {"TensorMapLookup", "takes a variant: train/function_gradients_test.cc"},
      {"TensorMapErase", "takes a variant: train/function_gradients_test.cc"},
      {"CompositeTensorVariantFromComponents", "makes a variant: train/function_gradients_test.cc"},
      {"CompositeTensorVariantToComponents", "takes a variant: train/function_gradients_test.cc"},
      {"RaggedTensorToVariant", "makes a variant: tests/conformance/function_gradients_test.py"},
      {"RaggedTensorFromVariant", "takes a variant: tests/conformance/function_gradients_test.py"},
      {"RandomGamma", "differentiates what was drawn at a fixed probability, not at fixed draws"},
      {"StatelessRandomGammaV2", "differentiates at a fixed probability, not at fixed draws"},
      {"StatelessRandomGammaV3", "differentiates at a fixed probability, not at fixed draws"},
      {"Batch", "waits for calls of other steps"},
      {"Unbatch", "waits for calls of other steps"},
      {"RefIdentity", "takes a reference; passes on what Identity does"},
      {"RefSwitch", "takes a reference; shares Switch's gradient"},
      {"RefMerge", "takes references; shares Merge's gradient"},
  };
  return *ops;
}

// Ops whose gradient function says that there is none yet.
bool Refuses(const std::string& op) {
  static const auto* const ops = new std::set<std::string>{"Enter",
                                                           "Exit",
                                                           "NextIteration",
                                                           "RefEnter",
                                                           "RefExit",
                                                           "RefNextIteration",
                                                           "If",
                                                           "StatelessIf",
                                                           "While",
                                                           "StatelessWhile",
                                                           "Case",
                                                           "StatelessCase",
                                                           "PartitionedCall",
                                                           "StatefulPartitionedCall"};
  return ops->contains(op) || op.starts_with("TensorArray");
}

TEST(GradientTest, EveryOpWithAGradientHasACase) {
  std::set<std::string> covered;
  for (const auto& [op, reason] : NotTried()) covered.insert(op);
  for (const GradientCase& test : GradientCases()) covered.insert(test.op);
  for (const OpDefinition* op : StandardCatalogue().ops().All()) {
    if (!op->gradient || Refuses(op->schema.name)) continue;
    EXPECT_TRUE(covered.contains(op->schema.name)) << op->schema.name;
  }
}

}  // namespace
}  // namespace weft::ops::testing
