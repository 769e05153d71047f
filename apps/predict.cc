// SPDX-License-Identifier: Apache-2.0
// `weft predict`: predictions of a SavedModel for files of records, by one process or a job's
// tasks.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <signal.h>

#include "absl/strings/str_split.h"

#include "apps/command.h"
#include "apps/op_libraries.h"
#include "base/files.h"
#include "base/log.h"
#include "base/metrics.h"
#include "weft/cluster/cluster_spec.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/serving/batch_predict.h"

namespace weft::apps {
namespace {

// Another try is worth it: above 128, as job controllers read exit codes.
constexpr int kTryAgain = 138;

struct PredictFlags {
  std::string model, output, signature, outputs;
  std::string tags = "serve";
  std::vector<std::string> inputs;
  int batch_size = 32;
  int threads = 0;
  int64_t lease_seconds = 600;
  double patience_s = 600;
  bool insecure = false;
  std::vector<std::string> op_libraries;
};

StatusOr<serving::BatchPredictCounts> Run(const PredictFlags& flags, Cancellation* cancellation) {
  RealFileSystem files;
  MetricRegistry registry;
  serving::ServingMetrics metrics(&registry);
  serving::BatchPredictOptions options{
      .model = flags.model,
      .inputs = flags.inputs,
      .output = flags.output,
      .signature = flags.signature,
      .output_filter = absl::StrSplit(flags.outputs, ',', absl::SkipEmpty()),
      .batch_size = flags.batch_size,
      .leases = {.lease_seconds = flags.lease_seconds,
                 .patience = absl::Seconds(flags.patience_s),
                 .insecure = flags.insecure}};
  WEFT_ASSIGN_OR_RETURN(options.load.catalogue, CatalogueWith(flags.op_libraries));
  options.load.devices = &StandardDevices();
  options.load.files = &files;
  options.load.tags = absl::StrSplit(flags.tags, ',', absl::SkipEmpty());
  options.load.num_threads = flags.threads;
  options.load.metrics = &metrics;
  if (const char* const config = std::getenv("TF_CONFIG"); config != nullptr && *config != '\0') {
    WEFT_ASSIGN_OR_RETURN(options.leases.task, cluster::ParseTfConfig(config));
  }
  return serving::BatchPredict(options, cancellation);
}

int RunPredict(const PredictFlags& flags) {
  Cancellation cancellation;
  // Other signals may end the process at any time: a part that is half made is not kept.
  ::signal(SIGPIPE, SIG_IGN);
  const StatusOr<serving::BatchPredictCounts> counts = Run(flags, &cancellation);
  if (!counts.ok()) {
    std::fprintf(stderr, "weft predict: %s\n", std::string(counts.status().message()).c_str());
    return absl::IsUnavailable(counts.status()) ? kTryAgain : 1;
  }
  std::printf("%lld parts, %lld of them made here, of %lld records\n",
              static_cast<long long>(counts->shards), static_cast<long long>(counts->made),
              static_cast<long long>(counts->records));
  return 0;
}

}  // namespace

void AddPredict(CLI::App& app, Action* action) {
  CLI::App* command = app.add_subcommand(
      "predict",
      "Predictions of a SavedModel for files of records, in parts that are written once");
  auto flags =
      std::make_shared<PredictFlags>();  // shared with the action, which outlives this call
  command->add_option("--model", flags->model, "Folder of a SavedModel, or of numbered versions")
      ->required();
  command
      ->add_option("--input", flags->inputs,
                   "Files x.jsonl or x.tfrecord, or patterns of them; each is a shard")
      ->required();
  command->add_option("--output", flags->output, "Folder for the parts, which all tasks see")
      ->required();
  command->add_option("--signature", flags->signature, "Signature of the model");
  command->add_option("--outputs", flags->outputs, "Names of outputs to keep, with commas");
  command->add_option("--batch_size", flags->batch_size, "Records of one call")
      ->capture_default_str();
  command->add_option("--threads", flags->threads, "Threads of the model; 0: the cores");
  command->add_option("--saved_model_tags", flags->tags, "Tags of the graph to load, with commas")
      ->capture_default_str();
  command
      ->add_option("--lease_seconds", flags->lease_seconds,
                   "After which another task may take a shard that is not done")
      ->capture_default_str();
  command
      ->add_option("--patience", flags->patience_s,
                   "Seconds to wait for the first task, which keeps the leases")
      ->capture_default_str();
  command->add_flag("--insecure", flags->insecure,
                    "Whoever reaches the first task's port may take shards");
  AddOpLibraryFlag(command, &flags->op_libraries);
  command->callback([flags, action] { *action = [flags] { return RunPredict(*flags); }; });
}

}  // namespace weft::apps
