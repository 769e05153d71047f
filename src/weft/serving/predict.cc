// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/predict.h"

#include <set>

#include "absl/strings/str_join.h"

namespace weft::serving {
namespace {

template <typename Map>
std::vector<std::string> NamesOf(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : map) names.push_back(name);
  return names;
}

std::string Without(const std::vector<std::string>& names, const std::vector<std::string>& taken) {
  const std::set<std::string> gone(taken.begin(), taken.end());
  std::vector<std::string> left;
  for (const std::string& name : names) {
    if (!gone.contains(name)) left.push_back(name);
  }
  return absl::StrJoin(left, ",");
}

Status CheckNames(const train::Signature& signature, const std::map<std::string, Tensor>& inputs) {
  std::vector<std::string> needed;
  for (const auto& [name, unused] : signature.inputs) {
    if (!signature.defaults.contains(name)) needed.push_back(name);
  }
  const std::vector<std::string> given = NamesOf(inputs), all = NamesOf(signature.inputs);
  const std::string extra = Without(given, all), missing = Without(needed, given);
  if (extra.empty() && missing.empty()) return absl::OkStatus();
  return InvalidArgument("input size does not match signature: ", given.size(), "!=", all.size(),
                         " len({", absl::StrJoin(given, ","), "}) != len({",
                         absl::StrJoin(all, ","), "}). Sent extra: {", extra,
                         "}. Missing but required: {", missing, "}.");
}

Status CheckInput(const std::string& name, const train::SignatureTensor& wanted,
                  const Tensor& given) {
  if (wanted.name.empty())
    return Unimplemented("The input '", name, "' is a composite tensor, which cannot be fed");
  const bool fits =
      wanted.dtype == given.dtype() && wanted.shape.IsCompatibleWith(PartialShape(given.shape()));
  if (fits) return absl::OkStatus();
  return InvalidArgument("The input '", name, "' is ", DTypeName(given.dtype()), " ",
                         given.shape().ToString(), ", expected ", DTypeName(wanted.dtype), " ",
                         wanted.shape.ToString());
}

// Fills what is run; `names` get the outputs' names in the order of the fetches.
Status MakeCall(const train::Signature& signature, const PredictAsk& ask, RunCall* call,
                std::vector<std::string>* names) {
  WEFT_RETURN_IF_ERROR(CheckNames(signature, ask.inputs));
  for (const auto& [name, wanted] : signature.inputs) {
    const auto given = ask.inputs.find(name);
    const Tensor& value = given != ask.inputs.end() ? given->second : signature.defaults.at(name);
    WEFT_RETURN_IF_ERROR(CheckInput(name, wanted, value));
    call->feeds.push_back({wanted.name, value});
  }
  *names = ask.output_filter.empty() ? NamesOf(signature.outputs) : ask.output_filter;
  std::set<std::string> seen;
  for (const std::string& name : *names) {
    const auto output = signature.outputs.find(name);
    if (output == signature.outputs.end()) {
      return InvalidArgument("output tensor alias not found in signature: ", name,
                             " Outputs expected to be in the set {",
                             absl::StrJoin(NamesOf(signature.outputs), ","), "}.");
    }
    if (!seen.insert(name).second) return InvalidArgument("duplicate output tensor alias: ", name);
    if (output->second.name.empty())
      return Unimplemented("The output '", name, "' is a composite tensor, which cannot be sent");
    call->fetches.push_back(output->second.name);
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<const train::Signature*> FindSignature(const ModelVersion& model,
                                                const std::string& name) {
  const std::string wanted = name.empty() ? kDefaultSignature : name;
  const auto found = model.signatures().find(wanted);
  if (found != model.signatures().end()) return &found->second;
  return FailedPrecondition("Serving signature key \"", wanted, "\" not found. There are: ",
                            absl::StrJoin(NamesOf(model.signatures()), ", "));
}

void Predict(std::shared_ptr<const ModelVersion> model, PredictAsk ask, PredictDone done) {
  const StatusOr<const train::Signature*> signature = FindSignature(*model, ask.signature);
  if (!signature.ok()) return done(signature.status());
  RunCall call{.timeout = ask.limits.timeout, .cancellation = ask.limits.cancellation};
  std::vector<std::string> names;
  const Status made = MakeCall(**signature, ask, &call, &names);
  if (!made.ok()) return done(made);
  const ModelVersion& version = *model;
  version.Run(std::move(call), "Predict",
              [model = std::move(model), names = std::move(names),
               done = std::move(done)](StatusOr<std::vector<Tensor>> results) mutable {
                if (!results.ok()) return done(results.status());
                NamedTensors outputs;
                for (size_t i = 0; i < names.size(); ++i)
                  outputs.push_back({std::move(names[i]), std::move((*results)[i])});
                done(std::move(outputs));
              });
}

}  // namespace weft::serving
