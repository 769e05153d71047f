// SPDX-License-Identifier: Apache-2.0
// `weft serve`: models answered with, under the flags of TensorFlow Serving's own server.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <pthread.h>
#include <signal.h>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"

#include "apps/command.h"
#include "apps/op_libraries.h"
#include "base/files.h"
#include "base/log.h"
#include "net/job_identity.h"
#include "proto/tensorflow/config.pb.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/serving/model_server.h"
#include "weft/serving/settings_files.h"
#include "weft/tensor/pool_allocator.h"

namespace weft::apps {
namespace {

namespace proto = tensorflow::serving;

struct ServeFlags {
  int port = 8500;
  int rest_api_port = 0;
  int rest_api_num_threads = 0;
  int rest_api_timeout_ms = 30'000;
  bool cors = false;
  std::string grpc_socket_path;
  int grpc_max_threads = 0;
  bool health = false;
  std::string model_name = "default";
  std::string model_base_path;
  std::string model_config_file;
  std::string model_config;
  double config_poll_s = 0;
  double poll_s = 1;
  int load_threads = 0;
  int max_load_retries = 5;
  int64_t retry_micros = 60'000'000;
  bool labels_for_unavailable = false;
  bool batching = false;
  std::string batching_file;
  std::string batching_parameters;
  std::string tags = "serve";
  int64_t session_parallelism = 0;
  int64_t intra_op = 0, inter_op = 0;
  std::string session_config_file;
  bool warm_up = true;
  int warm_up_rounds = 0;
  std::string ssl_config_file;
  std::string monitoring_config_file;
  // Not TensorFlow Serving's.
  std::string bind = "127.0.0.1";
  std::string token_file;
  std::string tls_folder;
  int metrics_port = 0;
  double drain_s = 0;
  bool insecure = false;
  uint64_t memory_limit = 0;
  bool map_weights = false;
  uint64_t max_rest_body = uint64_t{64} << 20;
  double grace_s = 10;
  std::vector<std::string> op_libraries;
  // Of what there is no kind here.
  std::vector<std::string> ignored;
  bool alts = false;
  std::string platform_config_file;
};

// TensorFlow Serving wants absolute paths: from the working directory is what is meant else.
std::string Absolute(const std::string& path) {
  if (path.empty() || path.find("://") != std::string::npos) return path;
  return std::filesystem::absolute(path).lexically_normal().string();
}

Status ReadModels(FileSystem& files, const ServeFlags& flags,
                  serving::ModelServerOptions* options) {
  if (!flags.model_config_file.empty()) {
    WEFT_RETURN_IF_ERROR(
        serving::ReadTextMessage(files, flags.model_config_file, &options->config));
    options->config_file = flags.model_config_file;
    options->config_poll = absl::Seconds(flags.config_poll_s);
    return absl::OkStatus();
  }
  if (!flags.model_config.empty())
    return serving::ParseTextMessage(flags.model_config, "--model_config", &options->config);
  if (flags.model_base_path.empty())
    return InvalidArgument(
        "Which models? Give --model_base_path, --model_config_file or --model_config");
  proto::ModelConfig* const model = options->config.mutable_model_config_list()->add_config();
  model->set_name(flags.model_name);
  model->set_base_path(Absolute(flags.model_base_path));
  model->set_model_platform("tensorflow");
  return absl::OkStatus();
}

Status ReadSessionThreads(FileSystem& files, const ServeFlags& flags, int* threads) {
  *threads =
      static_cast<int>(std::max({flags.session_parallelism, flags.intra_op, flags.inter_op}));
  if (flags.session_config_file.empty()) return absl::OkStatus();
  tensorflow::ConfigProto config;
  WEFT_RETURN_IF_ERROR(serving::ReadTextMessage(files, flags.session_config_file, &config));
  *threads = std::max(config.intra_op_parallelism_threads(), config.inter_op_parallelism_threads());
  return absl::OkStatus();
}

Status ReadSecurity(FileSystem& files, const ServeFlags& flags, wire::PortSecurity* security) {
  if (flags.alts) return Unimplemented("--use_alts_credentials: give --ssl_config_file");
  if (!flags.ssl_config_file.empty()) {
    proto::SSLConfig config;
    WEFT_RETURN_IF_ERROR(serving::ReadTextMessage(files, flags.ssl_config_file, &config));
    StatusOr<wire::PortSecurity> read = serving::SecurityFrom(config);
    if (!read.ok()) return Annotate(read.status(), flags.ssl_config_file);
    *security = *std::move(read);
  }
  if (!flags.tls_folder.empty()) {
    if (!flags.ssl_config_file.empty())
      return InvalidArgument("--tls_folder and --ssl_config_file: expected one of them");
    constexpr uint64_t kMostPemBytes = 1 << 20;
    for (const auto& [name, pem] : {std::pair{kJobCertificateFile, &security->certificate_pem},
                                    std::pair{kJobKeyFile, &security->key_pem}}) {
      WEFT_ASSIGN_OR_RETURN(*pem, ReadFile(files, JoinPath(flags.tls_folder, name), kMostPemBytes));
    }
  }
  if (flags.token_file.empty()) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(security->tokens, serving::ReadTokens(files, flags.token_file));
  return absl::OkStatus();
}

Status ReadBatching(FileSystem& files, const ServeFlags& flags,
                    serving::ModelServerOptions* options) {
  options->batches = flags.batching;
  if (flags.batching_file.empty() && flags.batching_parameters.empty()) return absl::OkStatus();
  const bool is_file = !flags.batching_file.empty();
  const std::string from = is_file ? flags.batching_file : "--batching_parameters";
  if (!flags.batching)
    return InvalidArgument(is_file ? "--batching_parameters_file" : "--batching_parameters",
                           " is set without --enable_batching");
  proto::BatchingParameters parameters;
  WEFT_RETURN_IF_ERROR(
      is_file ? serving::ReadTextMessage(files, from, &parameters)
              : serving::ParseTextMessage(flags.batching_parameters, from, &parameters));
  StatusOr<serving::BatchingOptions> batching = serving::BatchingFrom(parameters);
  if (!batching.ok()) return Annotate(batching.status(), from);
  options->models.load.batching = *std::move(batching);
  return absl::OkStatus();
}

Status ReadMonitoring(FileSystem& files, const ServeFlags& flags, std::string* path) {
  *path = "/monitoring/prometheus/metrics";
  if (flags.monitoring_config_file.empty()) return absl::OkStatus();
  proto::MonitoringConfig config;
  WEFT_RETURN_IF_ERROR(serving::ReadTextMessage(files, flags.monitoring_config_file, &config));
  if (!config.prometheus_config().path().empty()) *path = config.prometheus_config().path();
  if (!config.prometheus_config().enable()) path->clear();
  return absl::OkStatus();
}

StatusOr<serving::ModelServerOptions> OptionsFrom(const ServeFlags& flags) {
  RealFileSystem files;
  if (!flags.platform_config_file.empty())
    return Unimplemented("--platform_config_file: models are TensorFlow's SavedModels");
  serving::ModelServerOptions options;
  WEFT_RETURN_IF_ERROR(ReadModels(files, flags, &options));
  WEFT_RETURN_IF_ERROR(ReadBatching(files, flags, &options));
  WEFT_RETURN_IF_ERROR(ReadSecurity(files, flags, &options.security));
  WEFT_RETURN_IF_ERROR(ReadMonitoring(files, flags, &options.rest.metrics_path));
  serving::ModelSetOptions& models = options.models;
  WEFT_RETURN_IF_ERROR(ReadSessionThreads(files, flags, &models.load.num_threads));
  models.load.tags = absl::StrSplit(flags.tags, ',', absl::SkipEmpty());
  WEFT_ASSIGN_OR_RETURN(models.load.catalogue, CatalogueWith(flags.op_libraries));
  models.load.devices = &StandardDevices();
  models.poll = absl::Seconds(std::max(0.0, flags.poll_s));
  models.load_threads = flags.load_threads;
  models.max_load_retries = flags.max_load_retries;
  models.retry_interval = absl::Microseconds(std::max<int64_t>(0, flags.retry_micros));
  models.warm_up = flags.warm_up;
  models.warm_up_rounds = std::max(1, flags.warm_up_rounds);
  models.allow_labels_for_unavailable = flags.labels_for_unavailable;
  options.maps_weights = flags.map_weights;
  options.bind = flags.bind;
  options.port = flags.port == 0 ? -1 : flags.port;
  options.rest_port = flags.rest_api_port == 0 ? -1 : flags.rest_api_port;
  options.metrics_port = flags.metrics_port == 0 ? -1 : flags.metrics_port;
  options.socket_path = flags.grpc_socket_path;
  options.grpc_threads = flags.grpc_max_threads;
  options.rest_threads = flags.rest_api_num_threads;
  options.max_rest_body = flags.max_rest_body;
  options.with_health = flags.health;
  options.insecure = flags.insecure;
  options.rest.timeout = absl::Milliseconds(flags.rest_api_timeout_ms);
  options.rest.cors = flags.cors;
  if (options.port < 0 && options.socket_path.empty())
    return InvalidArgument("Expected --port or --grpc_socket_path: there is no port of gRPC");
  return options;
}

int RunServe(const ServeFlags& flags) {
  const sigset_t signals = HoldBackServerSignals();
  StatusOr<serving::ModelServerOptions> options = OptionsFrom(flags);
  if (!options.ok()) {
    std::fprintf(stderr, "weft serve: %s\n", std::string(options.status().message()).c_str());
    return 2;
  }
  if (!flags.ignored.empty())
    WEFT_LOG(WARNING) << "These flags mean nothing here: " << absl::StrJoin(flags.ignored, ", ");
  if (flags.memory_limit > 0) SetHostMemoryLimit(flags.memory_limit);
  StatusOr<std::unique_ptr<serving::ModelServer>> server =
      serving::ModelServer::Start(*std::move(options));
  if (!server.ok()) {
    std::fprintf(stderr, "weft serve: %s\n", std::string(server.status().message()).c_str());
    return 1;
  }
  WaitForServerEnd(signals);
  (*server)->Drain();
  absl::SleepFor(absl::Seconds(flags.drain_s));
  (*server)->Shutdown(absl::Seconds(flags.grace_s));
  return 0;
}

void AddModelFlags(CLI::App* command, ServeFlags* flags) {
  command->add_option("--model_name", flags->model_name, "Name of the model of --model_base_path");
  command->add_option("--model_base_path", flags->model_base_path,
                      "Folder of the model: its versions are sub-folders with numbers for names");
  command->add_option("--model_config_file", flags->model_config_file,
                      "A ModelServerConfig as text: several models, policies, labels");
  command->add_option("--model_config", flags->model_config, "What such a file holds");
  command->add_option("--model_config_file_poll_wait_seconds", flags->config_poll_s,
                      "How often that file is read again; 0: never");
  command
      ->add_option("--file_system_poll_wait_seconds", flags->poll_s,
                   "How often the folders are looked at for new versions; 0: once")
      ->capture_default_str();
  command->add_option("--num_load_threads", flags->load_threads,
                      "Versions that are loaded beside each other");
  command->add_option("--max_num_load_retries", flags->max_load_retries,
                      "How often a version that failed to load is tried again");
  command->add_option("--load_retry_interval_micros", flags->retry_micros,
                      "How long between two tries; a folder that changed is tried at once");
  command->add_flag(
      "--allow_version_labels_for_unavailable_models,"
      "--force_allow_any_version_labels_for_unavailable_models",
      flags->labels_for_unavailable, "Labels may name versions that are not served yet");
  command->add_option("--saved_model_tags", flags->tags, "Tags of the graph to load, with commas")
      ->capture_default_str();
  command->add_flag("--enable_model_warmup", flags->warm_up,
                    "Run the requests of assets.extra/tf_serving_warmup_requests before serving");
  command->add_option("--num_request_iterations_for_warmup", flags->warm_up_rounds,
                      "How often each of them is run");
  AddOpLibraryFlag(command, &flags->op_libraries);
}

void AddPortFlags(CLI::App* command, ServeFlags* flags) {
  command->add_option("--port", flags->port, "Port of gRPC; 0: none")->capture_default_str();
  command->add_option("--rest_api_port", flags->rest_api_port, "Port of HTTP/REST; 0: none");
  command->add_option("--bind", flags->bind, "Host to listen at")->capture_default_str();
  command->add_option("--grpc_socket_path", flags->grpc_socket_path,
                      "Socket in the file system for gRPC as well");
  command->add_option("--rest_api_num_threads", flags->rest_api_num_threads,
                      "Threads of REST; 0: four times the cores");
  command->add_option("--rest_api_timeout_in_ms", flags->rest_api_timeout_ms,
                      "How long a request of REST may take");
  command->add_flag("--rest_api_enable_cors_support", flags->cors, "Pages of other hosts may ask");
  command
      ->add_option("--max_rest_body", flags->max_rest_body,
                   "Longest body of a request of REST, as 64MB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  command->add_option("--grpc_max_threads", flags->grpc_max_threads,
                      "Threads of gRPC; 0: four times the cores");
  command->add_flag("--enable_grpc_healthcheck_service", flags->health,
                    "Answer grpc.health.v1.Health");
  command->add_option("--ssl_config_file", flags->ssl_config_file,
                      "An SSLConfig as text: TLS on all ports");
  command->add_option("--token_file", flags->token_file,
                      "Tokens, one a line: clients send 'authorization: Bearer TOKEN'");
  command->add_option(
      "--tls_folder", flags->tls_folder,
      "TLS on all ports with tls.crt and tls.key of this folder, as a secret of type "
      "kubernetes.io/tls is mounted");
  command->add_option("--metrics_port", flags->metrics_port,
                      "Port of /healthz, /livez and /metrics alone, in the clear; 0: none");
  command->add_flag("--insecure", flags->insecure,
                    "Let whoever reaches the ports ask, also where they are not on loopback");
  command->add_option("--monitoring_config_file", flags->monitoring_config_file,
                      "A MonitoringConfig as text: where Prometheus's page is, if anywhere");
  command->add_option("--drain", flags->drain_s,
                      "Seconds after SIGTERM in which it answers on and says that it is not ready");
  command->add_option("--grace", flags->grace_s, "Seconds for running requests after that");
}

void AddRunFlags(CLI::App* command, ServeFlags* flags) {
  command->add_flag("--enable_batching", flags->batching, "Join requests to batches");
  command->add_option("--batching_parameters_file", flags->batching_file,
                      "BatchingParameters as text: sizes, ages, threads");
  command->add_option("--batching_parameters", flags->batching_parameters,
                      "What such a file holds");
  command->add_option("--tensorflow_session_parallelism", flags->session_parallelism,
                      "Threads of each model; 0: the cores");
  command->add_option("--tensorflow_intra_op_parallelism", flags->intra_op, "The same");
  command->add_option("--tensorflow_inter_op_parallelism", flags->inter_op, "The same");
  command->add_option("--tensorflow_session_config_file", flags->session_config_file,
                      "A ConfigProto as text, of which the numbers of threads are taken");
  command
      ->add_option("--memory_limit", flags->memory_limit,
                   "Host memory that tensors may take, as 800MB or 16GB; 0: what the control group "
                   "leaves")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  command->add_flag("--map_weights", flags->map_weights,
                    "Leave weights in their files, mapped, which costs no memory of its own and a "
                    "tenth of the start; files of a version must then never be changed in place");
  command->add_flag("--use_alts_credentials", flags->alts)->group("");
  command->add_option("--platform_config_file", flags->platform_config_file)->group("");
  for (const char* name :
       {"flush_filesystem_caches", "per_process_gpu_memory_fraction", "grpc_channel_arguments",
        "remove_unused_fields_from_bundle_metagraph", "prefer_tflite_model", "num_tflite_pools",
        "num_tflite_interpreters_per_pool", "xla_cpu_compilation_enabled",
        "xla_gpu_compilation_enabled", "enable_profiler", "thread_pool_factory_config_file",
        "mixed_precision", "skip_initialize_tpu", "enable_serialization_as_tensor_content",
        "enable_signature_method_name_check", "num_unload_threads", "enforce_session_run_timeout",
        "enable_per_model_batching_parameters"}) {
    command
        ->add_option_function<std::string>(
            absl::StrCat("--", name),
            [flags, name](const std::string&) { flags->ignored.push_back(name); })
        ->expected(0, 1)
        ->group("");
  }
}

}  // namespace

void AddServe(CLI::App& app, Action* action) {
  CLI::App* command = app.add_subcommand(
      "serve", "Answer with SavedModels over gRPC and REST, as TensorFlow Serving does");
  command->set_version_flag("--version", "weft " WEFT_VERSION);
  auto flags = std::make_shared<ServeFlags>();  // shared with the action, which outlives this call
  AddModelFlags(command, flags.get());
  AddPortFlags(command, flags.get());
  AddRunFlags(command, flags.get());
  command->callback([flags, action] { *action = [flags] { return RunServe(*flags); }; });
}

}  // namespace weft::apps
