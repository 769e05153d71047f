// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/examples.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace weft::serving {
namespace {

namespace proto = tensorflow::serving;

constexpr char kClassify[] = "tensorflow/serving/classify";
constexpr char kRegress[] = "tensorflow/serving/regress";
constexpr char kInputs[] = "inputs";
constexpr char kClasses[] = "classes";
constexpr char kScores[] = "scores";
constexpr char kOutputs[] = "outputs";

// The examples as a string vector of their bytes, the context's in front of each.
StatusOr<Tensor> ExamplesOf(const proto::Input& input) {
  const bool has_context = input.has_example_list_with_context();
  const auto& examples =
      has_context ? input.example_list_with_context().examples() : input.example_list().examples();
  if (examples.empty()) return InvalidArgument("Input is empty.");
  const std::string context =
      has_context ? input.example_list_with_context().context().SerializeAsString() : "";
  WEFT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(DType::kString, Shape{examples.size()}));
  for (int i = 0; i < examples.size(); ++i)
    tensor.data<std::string>()[i] = context + examples[i].SerializeAsString();
  return tensor;
}

// A signature that takes examples: what is fed, and what is fetched, by the signature's names.
struct ExampleCall {
  std::string input;
  std::map<std::string, std::string> outputs;
};

StatusOr<std::string> OnlyInput(const train::Signature& signature, const char* kind) {
  if (signature.inputs.size() != 1) return InvalidArgument("Expected one input Tensor.");
  const auto input = signature.inputs.find(kInputs);
  if (input == signature.inputs.end())
    return InvalidArgument("No ", kind, " inputs found in SignatureDef: expected 'inputs', found '",
                           signature.inputs.begin()->first, "'");
  if (input->second.dtype != DType::kString)
    return InvalidArgument("The input of a ", kind, " signature holds examples, expected string, ",
                           "found ", DTypeName(input->second.dtype));
  return input->second.name;
}

StatusOr<ExampleCall> CheckClassify(const train::Signature& signature) {
  ExampleCall call;
  WEFT_ASSIGN_OR_RETURN(call.input, OnlyInput(signature, "classification"));
  const size_t count = signature.outputs.size();
  if (count != 1 && count != 2)
    return InvalidArgument("Expected one or two output Tensors, found ", count);
  for (const char* name : {kClasses, kScores}) {
    const auto output = signature.outputs.find(name);
    if (output != signature.outputs.end()) call.outputs[name] = output->second.name;
  }
  if (!call.outputs.empty()) return call;
  return InvalidArgument(
      "Expected classification signature outputs to contain at least one of \"classes\" or "
      "\"scores\".");
}

StatusOr<ExampleCall> CheckRegress(const train::Signature& signature) {
  ExampleCall call;
  WEFT_ASSIGN_OR_RETURN(call.input, OnlyInput(signature, "regression"));
  if (signature.outputs.size() != 1) return InvalidArgument("Expected one output Tensor.");
  const auto output = signature.outputs.find(kOutputs);
  if (output == signature.outputs.end())
    return InvalidArgument("No regression outputs found in SignatureDef: expected 'outputs', ",
                           "found '", signature.outputs.begin()->first, "'");
  call.outputs[kOutputs] = output->second.name;
  return call;
}

StatusOr<ExampleCall> CheckMethod(const train::Signature& signature, const std::string& method) {
  if (method == kClassify) return CheckClassify(signature);
  if (method == kRegress) return CheckRegress(signature);
  return Unimplemented("Unsupported signature method_name: ", method);
}

// [examples, classes] of `dtype`.
Status CheckMatrix(const Tensor& tensor, const char* name, DType dtype, int64_t examples) {
  if (tensor.rank() != 2)
    return InvalidArgument("Expected Tensor shape: [batch_size num_classes] but got ",
                           tensor.shape().ToString());
  if (tensor.dtype() != dtype)
    return InvalidArgument("Expected ", name, " Tensor of ", DTypeName(dtype),
                           ". Got: ", DTypeName(tensor.dtype()));
  if (tensor.dim(0) != examples)
    return InvalidArgument("Expected ", name, " output batch size of ", examples,
                           ". Got: ", tensor.dim(0));
  return absl::OkStatus();
}

using Fetched = std::map<std::string, Tensor>;  // by the tensor's name in the graph

Status ToClasses(const ExampleCall& call, const Fetched& fetched, int64_t examples,
                 proto::ClassificationResult* result) {
  const auto find = [&](const char* name) -> const Tensor* {
    const auto output = call.outputs.find(name);
    return output == call.outputs.end() ? nullptr : &fetched.at(output->second);
  };
  const Tensor *classes = find(kClasses), *scores = find(kScores);
  if (classes != nullptr)
    WEFT_RETURN_IF_ERROR(CheckMatrix(*classes, kClasses, DType::kString, examples));
  if (scores != nullptr)
    WEFT_RETURN_IF_ERROR(CheckMatrix(*scores, kScores, DType::kFloat, examples));
  if (classes != nullptr && scores != nullptr && classes->dim(1) != scores->dim(1))
    return InvalidArgument("Tensors class and score should match in dim_size(1). Got ",
                           classes->dim(1), " vs. ", scores->dim(1));
  const int64_t count = (classes != nullptr ? classes : scores)->dim(1);
  for (int64_t i = 0; i < examples; ++i) {
    proto::Classifications* const one = result->add_classifications();
    for (int64_t c = 0; c < count; ++c) {
      proto::Class* const entry = one->add_classes();
      if (classes != nullptr) entry->set_label(classes->data<std::string>()[i * count + c]);
      if (scores != nullptr) entry->set_score(scores->data<float>()[i * count + c]);
    }
  }
  return absl::OkStatus();
}

Status ToValues(const ExampleCall& call, const Fetched& fetched, int64_t examples,
                proto::RegressionResult* result) {
  const Tensor& values = fetched.at(call.outputs.at(kOutputs));
  if (values.rank() != 1 && !(values.rank() == 2 && values.dim(1) == 1))
    return InvalidArgument(
        "Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got ",
        values.shape().ToString());
  if (values.dim(0) != examples)
    return InvalidArgument("Input batch size did not match output batch size: ", examples, " vs. ",
                           values.dim(0));
  if (values.dtype() != DType::kFloat)
    return InvalidArgument("Expected output Tensor of DT_FLOAT.  Got: ", DTypeName(values.dtype()));
  for (int64_t i = 0; i < examples; ++i)
    result->add_regressions()->set_value(values.data<float>()[i]);
  return absl::OkStatus();
}

// Feeds the examples to all inputs and fetches all outputs, each once.
void RunExamples(std::shared_ptr<const ModelVersion> model, const std::vector<ExampleCall>& calls,
                 const proto::Input& input, const CallLimits& limits, const char* api,
                 absl::AnyInvocable<void(StatusOr<Fetched>, int64_t examples)> done) {
  StatusOr<Tensor> examples = ExamplesOf(input);
  if (!examples.ok()) return done(examples.status(), 0);
  const int64_t count = examples->dim(0);
  model->metrics()->CountExamples(model->model(), count);
  std::set<std::string> inputs, outputs;
  for (const ExampleCall& call : calls) {
    inputs.insert(call.input);
    for (const auto& [name, tensor] : call.outputs) outputs.insert(tensor);
  }
  RunCall run{.fetches = {outputs.begin(), outputs.end()},
              .timeout = limits.timeout,
              .cancellation = limits.cancellation};
  for (const std::string& name : inputs) run.feeds.push_back({name, *examples});
  const ModelVersion& version = *model;
  std::vector<std::string> names = run.fetches;
  version.Run(std::move(run), api,
              [model = std::move(model), names = std::move(names), count,
               done = std::move(done)](StatusOr<std::vector<Tensor>> results) mutable {
                if (!results.ok()) return done(results.status(), count);
                Fetched fetched;
                for (size_t i = 0; i < names.size(); ++i) fetched[names[i]] = (*results)[i];
                done(std::move(fetched), count);
              });
}

StatusOr<const train::Signature*> NamedSignature(const ModelVersion& model, const std::string& name,
                                                 const char* refusal) {
  StatusOr<const train::Signature*> signature = FindSignature(model, name);
  if (signature.ok()) return signature;
  return InvalidArgument(refusal, name.empty() ? kDefaultSignature : name);
}

// The common part of Classify and Regress: `convert` fills the response from what was fetched.
template <typename Response, typename Request, typename Check, typename Convert>
void Answer(std::shared_ptr<const ModelVersion> model, const Request& request,
            const CallLimits& limits, const char* api, Check check, Convert convert,
            AnswerDone<Response> done) {
  const std::string name = request.model_spec().signature_name();
  const StatusOr<const train::Signature*> signature =
      NamedSignature(*model, name, "No signature was found with the name: ");
  if (!signature.ok()) return done(signature.status());
  StatusOr<ExampleCall> call = check(**signature);
  if (!call.ok()) return done(call.status());
  const ModelVersion& version = *model;
  RunExamples(std::move(model), {*call}, request.input(), limits, api,
              [&version, name, call = *call, convert, done = std::move(done)](
                  StatusOr<Fetched> fetched, int64_t examples) mutable {
                if (!fetched.ok()) return done(fetched.status());
                Response response;
                FillSpec(version, name, response.mutable_model_spec());
                const Status status = convert(call, *fetched, examples, response.mutable_result());
                if (!status.ok()) return done(status);
                done(std::move(response));
              });
}

// A task of MultiInference, checked.
struct Task {
  std::string signature;
  bool classifies = false;
  ExampleCall call;
};

StatusOr<std::vector<Task>> CheckTasks(const ModelVersion& model,
                                       const proto::MultiInferenceRequest& request) {
  std::vector<Task> tasks;
  std::set<std::string> seen;
  for (const proto::InferenceTask& asked : request.tasks()) {
    const std::string& name = asked.model_spec().signature_name();
    if (asked.model_spec().name() != request.tasks(0).model_spec().name())
      return InvalidArgument(
          "All ModelSpecs in a MultiInferenceRequest must access the same model name.");
    if (!seen.insert(name.empty() ? kDefaultSignature : name).second)
      return InvalidArgument("Duplicate evaluation of signature: ",
                             name.empty() ? kDefaultSignature : name);
    WEFT_ASSIGN_OR_RETURN(
        const train::Signature* signature,
        NamedSignature(model, name, "Requested signature not found in model graph: "));
    WEFT_ASSIGN_OR_RETURN(ExampleCall call, CheckMethod(*signature, asked.method_name()));
    tasks.push_back({name, asked.method_name() == kClassify, std::move(call)});
  }
  if (tasks.empty()) return InvalidArgument("A MultiInferenceRequest needs tasks");
  return tasks;
}

StatusOr<proto::MultiInferenceResponse> ToResponse(const ModelVersion& model,
                                                   const std::vector<Task>& tasks,
                                                   const Fetched& fetched, int64_t examples) {
  proto::MultiInferenceResponse response;
  for (const Task& task : tasks) {
    proto::InferenceResult* const result = response.add_results();
    FillSpec(model, task.signature, result->mutable_model_spec());
    if (task.classifies) {
      WEFT_RETURN_IF_ERROR(
          ToClasses(task.call, fetched, examples, result->mutable_classification_result()));
    } else {
      WEFT_RETURN_IF_ERROR(
          ToValues(task.call, fetched, examples, result->mutable_regression_result()));
    }
  }
  return response;
}

}  // namespace

void FillSpec(const ModelVersion& model, const std::string& signature, proto::ModelSpec* spec) {
  spec->set_name(model.model());
  spec->set_signature_name(signature.empty() ? kDefaultSignature : signature);
  spec->mutable_version()->set_value(model.version());
}

void Classify(std::shared_ptr<const ModelVersion> model,
              const proto::ClassificationRequest& request, const CallLimits& limits,
              AnswerDone<proto::ClassificationResponse> done) {
  Answer<proto::ClassificationResponse>(std::move(model), request, limits, "Classify",
                                        CheckClassify, ToClasses, std::move(done));
}

void Regress(std::shared_ptr<const ModelVersion> model, const proto::RegressionRequest& request,
             const CallLimits& limits, AnswerDone<proto::RegressionResponse> done) {
  Answer<proto::RegressionResponse>(std::move(model), request, limits, "Regress", CheckRegress,
                                    ToValues, std::move(done));
}

void InferAll(std::shared_ptr<const ModelVersion> model,
              const proto::MultiInferenceRequest& request, const CallLimits& limits,
              AnswerDone<proto::MultiInferenceResponse> done) {
  StatusOr<std::vector<Task>> tasks = CheckTasks(*model, request);
  if (!tasks.ok()) return done(tasks.status());
  std::vector<ExampleCall> calls;
  for (const Task& task : *tasks) calls.push_back(task.call);
  const ModelVersion& version = *model;
  RunExamples(std::move(model), calls, request.input(), limits, "MultiInference",
              [&version, tasks = *std::move(tasks), done = std::move(done)](
                  StatusOr<Fetched> fetched, int64_t examples) mutable {
                if (!fetched.ok()) return done(fetched.status());
                done(ToResponse(version, tasks, *fetched, examples));
              });
}

}  // namespace weft::serving
