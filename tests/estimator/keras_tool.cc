// SPDX-License-Identifier: Apache-2.0
// Models of Keras, run here, for keras_layers_test.py to compare:
//
//   keras_tool FOLDER NAME...
//
// For each NAME reads FOLDER/NAME.keras, FOLDER/NAME.h5 (x0, x1, ..., y0, ...; its attribute
// "settings" is JSON: loss, optimizer, metrics, steps, batch) and writes FOLDER/NAME.weft.h5:
// predictions of inference before (out0, ...) and after (trained0, ...) the steps, losses, weights
// after the first and the last step, metrics over all; and the trained model as NAME.weft2.keras,
// NAME.weft3.keras, NAME.weft2.h5 and NAME.weft3.h5, NAME.weft3.weights.h5 and NAME.weft.ckpt.
// Prints one line a name: "NAME ok", or the error.
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "base/files.h"
#include "net/json.h"
#include "weft/estimator/keras_files.h"
#include "weft/estimator/model.h"
#include "weft/storage/hdf5.h"

namespace weft::estimator {
namespace {

using OptimizerMaker = std::function<std::unique_ptr<Optimizer>()>;

OptimizerOptions All(const char* what) {
  OptimizerOptions all;
  const std::string name = what;
  if (name == "clipnorm") all.clipnorm = 0.1;
  if (name == "global_clipnorm") all.global_clipnorm = 0.1;
  if (name == "clipvalue") all.clipvalue = 0.02;
  if (name == "weight_decay") all.weight_decay = 0.1;
  if (name == "ema") {
    all.use_ema = true;
    all.ema_momentum = 0.9;
    all.ema_overwrite_frequency = 5;
  }
  return all;
}

// What keras_layers_test.py's OPTIMIZERS are called.
const std::map<std::string, OptimizerMaker>& Optimizers() {
  static const auto* const makers = new std::map<std::string, OptimizerMaker>{
      {"sgd", [] { return Sgd(0.1); }},
      {"momentum", [] { return Sgd(0.1, {.momentum = 0.9}); }},
      {"nesterov", [] { return Sgd(0.1, {.momentum = 0.9, .nesterov = true}); }},
      {"rmsprop", [] { return RmsProp(0.01); }},
      {"rmsprop_momentum", [] { return RmsProp(0.01, {.momentum = 0.5}); }},
      {"rmsprop_centered", [] { return RmsProp(0.01, {.momentum = 0.5, .centered = true}); }},
      {"adam", [] { return Adam(0.01); }},
      {"amsgrad", [] { return Adam(0.01, {.amsgrad = true}); }},
      {"adamw", [] { return AdamW(0.01); }},
      {"adamax", [] { return Adamax(0.01); }},
      {"nadam", [] { return Nadam(0.01); }},
      {"adagrad", [] { return Adagrad(0.1); }},
      {"adadelta", [] { return Adadelta(1.0); }},
      {"lion", [] { return Lion(0.01); }},
      {"lamb", [] { return Lamb(0.01); }},
      {"ftrl", [] { return Ftrl(0.1); }},
      {"ftrl_l1_l2",
       [] {
         return Ftrl(0.1, {.l1_regularization_strength = 0.01,
                           .l2_regularization_strength = 0.01,
                           .l2_shrinkage_regularization_strength = 0.01,
                           .beta = 0.1});
       }},
      {"clipnorm", [] { return Sgd(0.1, {.all = All("clipnorm")}); }},
      {"global_clipnorm", [] { return Sgd(0.1, {.all = All("global_clipnorm")}); }},
      {"clipvalue", [] { return Sgd(0.1, {.all = All("clipvalue")}); }},
      {"weight_decay", [] { return Sgd(0.1, {.all = All("weight_decay")}); }},
      {"ema", [] { return Sgd(0.1, {.all = All("ema")}); }},
      {"exponential", [] { return Sgd(ExponentialDecay(0.1, 4, 0.5)); }},
      {"staircase", [] { return Sgd(ExponentialDecay(0.1, 4, 0.5, true)); }},
      {"inverse", [] { return Sgd(InverseTimeDecay(0.1, 4, 0.5)); }},
      {"polynomial", [] { return Sgd(PolynomialDecay(0.1, 6, 0.01, 2)); }},
      {"cycle", [] { return Sgd(PolynomialDecay(0.1, 4, 0.01, 1, true)); }},
      {"piecewise",
       [] {
         return Sgd(PiecewiseConstantDecay({2, 5}, {0.1, 0.05, 0.01}));
       }},
      {"cosine", [] { return Sgd(CosineDecay(0.1, 8, {.alpha = 0.1})); }},
      {"warmup",
       [] { return Sgd(CosineDecay(0.01, 8, {.warmup_target = 0.1, .warmup_steps = 4})); }},
      {"restarts", [] { return Sgd(CosineDecayRestarts(0.1, 3)); }},
  };
  return *makers;
}

// Metrics that are no names, as keras_layers_test.py makes them. Null for another name.
std::shared_ptr<Metric> MetricOf(const std::string& name) {
  if (name == "mean_io_u") return MeanIou(6, {.sparse_y_pred = false});
  if (name == "one_hot_io_u") {
    return Iou(6, {1, 4}, {.sparse_y_true = false, .sparse_y_pred = false, .name = name});
  }
  if (name == "binary_io_u") return BinaryIou(0.4);
  if (name == "fbeta_score") return FBetaScore({.beta = 2});
  if (name == "f1_weighted") {
    return FBetaScore({.average = "weighted", .threshold = 0.15, .name = name});
  }
  if (name == "f1_micro") return FBetaScore({.average = "micro", .name = name});
  if (name == "pearson_correlation") return PearsonCorrelation();
  if (name == "sensitivity_at_specificity") return SensitivityAtSpecificity(0.6, 20);
  if (name == "specificity_at_sensitivity") return SpecificityAtSensitivity(0.6, 20);
  if (name == "precision_at_recall") return PrecisionAtRecall(0.6, 20);
  if (name == "recall_at_precision") return RecallAtPrecision(0.5, 20);
  return nullptr;
}

std::vector<Tensor> Numbered(const storage::Hdf5Group& group, const std::string& prefix) {
  std::vector<Tensor> tensors;
  while (const Tensor* found = group.FindDataset(absl::StrCat(prefix, tensors.size()))) {
    tensors.push_back(*found);
  }
  return tensors;
}

void Put(const std::string& prefix, const std::vector<Tensor>& tensors, storage::Hdf5Group* to) {
  for (size_t i = 0; i < tensors.size(); ++i) to->datasets[absl::StrCat(prefix, i)] = tensors[i];
}

Status PutWeights(Model& model, const std::string& group, storage::Hdf5Group* to) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<NamedWeight> weights, model.GetWeights());
  std::vector<Tensor> values;
  for (const NamedWeight& weight : weights) values.push_back(weight.value);
  Put("", values, &to->Make(group));
  std::vector<std::string> names;
  for (const NamedWeight& weight : weights) names.push_back(weight.name);
  to->Make(group).attributes["names"] = names;
  return absl::OkStatus();
}

Status SaveAll(Model& model, const std::string& base) {
  for (const int keras : {2, 3}) {
    WEFT_RETURN_IF_ERROR(
        SaveModel(model, absl::StrCat(base, ".weft", keras, ".keras"), {.keras = keras}));
    WEFT_RETURN_IF_ERROR(
        SaveModel(model, absl::StrCat(base, ".weft", keras, ".h5"), {.keras = keras}));
    WEFT_RETURN_IF_ERROR(
        SaveWeights(model, absl::StrCat(base, ".weft", keras, ".weights.h5"), {.keras = keras}));
  }
  return SaveWeights(model, base + ".weft.ckpt");
}

StatusOr<CompileOptions> ReadSettings(const Json& settings) {
  CompileOptions compile;
  WEFT_ASSIGN_OR_RETURN(const Json* losses, settings.At("loss"));
  for (const Json& loss : losses->items()) {
    if (loss.is_string()) {
      WEFT_ASSIGN_OR_RETURN(const std::string name, loss.AsString());
      compile.loss.emplace_back(name);
    } else {
      WEFT_ASSIGN_OR_RETURN(const Json* name, loss.At("class_name"));
      WEFT_ASSIGN_OR_RETURN(const std::string class_name, name->AsString());
      WEFT_ASSIGN_OR_RETURN(const Json* config, loss.At("config"));
      compile.loss.emplace_back(class_name, *config);
    }
  }
  WEFT_ASSIGN_OR_RETURN(const Json* metrics, settings.At("metrics"));
  for (const Json& metric : metrics->items()) {
    WEFT_ASSIGN_OR_RETURN(std::string name, metric.AsString());
    if (auto made = MetricOf(name)) {
      compile.output_metrics.emplace_back(0, std::move(made));
    } else {
      compile.metrics.push_back(std::move(name));
    }
  }
  WEFT_ASSIGN_OR_RETURN(const Json* named, settings.At("optimizer"));
  WEFT_ASSIGN_OR_RETURN(const std::string optimizer, named->AsString());
  const auto maker = Optimizers().find(optimizer);
  if (maker == Optimizers().end()) return NotFound("optimizer '", optimizer, "'");
  compile.optimizer = maker->second();
  return compile;
}

// Inputs that are texts stand in the settings: {"x0": [sizes, values]}.
Status AddTexts(const Json& settings, std::vector<Tensor>* x) {
  const Json* texts = settings.Find("texts");
  if (texts == nullptr) return absl::OkStatus();
  for (const auto& [name, text] : texts->members()) {
    if (text.items().size() != 2) return InvalidArgument("texts of '", name, "'");
    Shape shape;
    for (const Json& size : text.items()[0].items()) shape.AddDim(size.AsInt().value_or(0));
    std::vector<std::string> values;
    for (const Json& value : text.items()[1].items())
      values.push_back(value.AsString().value_or(""));
    x->push_back(Tensor::FromSpan<std::string>(shape, values));
  }
  return absl::OkStatus();
}

Status RunCase(const std::string& base) {
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(files, base + ".h5"));
  WEFT_ASSIGN_OR_RETURN(const auto data, storage::ReadHdf5(bytes));
  const std::string* text = data->FindText("settings");
  if (text == nullptr) return InvalidArgument("no settings");
  WEFT_ASSIGN_OR_RETURN(const Json settings, Json::Parse(*text));
  Examples examples;
  examples.x = Numbered(*data, "x");
  WEFT_RETURN_IF_ERROR(AddTexts(settings, &examples.x));
  examples.y = Numbered(*data, "y");
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, LoadModel(base + ".keras"));
  storage::Hdf5Group out;
  WEFT_ASSIGN_OR_RETURN(const Json* batch_json, settings.At("batch"));
  WEFT_ASSIGN_OR_RETURN(const int64_t batch, batch_json->AsInt());
  WEFT_ASSIGN_OR_RETURN(const std::vector<Tensor> before, model->Predict(examples.x, batch));
  Put("out", before, &out);
  if (!examples.y.empty()) {
    WEFT_ASSIGN_OR_RETURN(const CompileOptions compile, ReadSettings(settings));
    WEFT_RETURN_IF_ERROR(model->Compile(compile));
    WEFT_ASSIGN_OR_RETURN(const Logs logs, model->Evaluate(examples, batch));
    std::vector<std::string> names;
    std::vector<double> values;
    for (const auto& [name, value] : logs) {
      names.push_back(name);
      values.push_back(value);
    }
    out.attributes["logs"] = names;
    const auto count = static_cast<int64_t>(values.size());
    out.datasets["logs"] = Tensor::FromSpan<double>(Shape{count}, values);
    WEFT_ASSIGN_OR_RETURN(const Json* steps_json, settings.At("steps"));
    WEFT_ASSIGN_OR_RETURN(const int64_t steps, steps_json->AsInt());
    std::vector<double> losses;
    for (int64_t step = 0; step < steps; ++step) {
      WEFT_ASSIGN_OR_RETURN(const Logs now, model->TrainOnBatch(examples));
      losses.push_back(LogOf(now, "loss"));
      if (step == 0) WEFT_RETURN_IF_ERROR(PutWeights(*model, "first", &out));
    }
    out.datasets["losses"] = Tensor::FromSpan<double>(Shape{steps}, losses);
    if (steps > 0) WEFT_RETURN_IF_ERROR(PutWeights(*model, "last", &out));
    WEFT_RETURN_IF_ERROR(model->ResetStates());
    WEFT_ASSIGN_OR_RETURN(const std::vector<Tensor> after, model->Predict(examples.x));
    Put("trained", after, &out);
  }
  WEFT_ASSIGN_OR_RETURN(const std::string written, storage::WriteHdf5(out));
  WEFT_RETURN_IF_ERROR(WriteFile(files, base + ".weft.h5", written));
  const Json* saves = settings.Find("save");
  return saves != nullptr && *saves == Json(true) ? SaveAll(*model, base) : absl::OkStatus();
}

}  // namespace
}  // namespace weft::estimator

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: keras_tool FOLDER NAME...\n");
    return 2;
  }
  for (int i = 2; i < argc; ++i) {
    const weft::Status status = weft::estimator::RunCase(std::string(argv[1]) + "/" + argv[i]);
    std::printf("%s %s\n", argv[i], status.ok() ? "ok" : std::string(status.message()).c_str());
  }
  return 0;
}
