// SPDX-License-Identifier: Apache-2.0
// `weft operator`: the controllers on a cluster.
#include "platform/operator/operator.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include <signal.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "apps/command.h"
#include "apps/plan_inputs.h"
#include "apps/suggestion.h"
#include "net/certificate.h"

namespace weft::apps {
namespace {

struct OperatorFlags {
  ClusterFlags cluster;
  platform::OperatorOptions operates;
  bool is_dry_run = false;
  std::string prices;          // a file; empty: none are known
  std::string log_period;      // empty: logs are not read
  std::optional<bool> elects;  // default: inside a cluster
  std::string lease_duration = "15s";
  std::string renew_deadline = "10s";
  std::string retry_period = "2s";
  std::string webhook_validity = "2160h";
  std::string health_address = "127.0.0.1:0";  // else as that of metrics
};

Status ReadTime(const char* flag, const std::string& text, absl::Duration* time) {
  if (absl::ParseDuration(text, time) && *time > absl::ZeroDuration()) return absl::OkStatus();
  return InvalidArgument(flag, " holds '", text, "': a time such as 15s or 1m30s is needed");
}

Status ReadElection(const OperatorFlags& flags, platform::OperatorOptions* options) {
  platform::LeaderElector::Options* const election = &options->election;
  WEFT_RETURN_IF_ERROR(
      ReadTime("--leader-elect-lease-duration", flags.lease_duration, &election->lease_duration));
  WEFT_RETURN_IF_ERROR(
      ReadTime("--leader-elect-renew-deadline", flags.renew_deadline, &election->renew_deadline));
  WEFT_RETURN_IF_ERROR(
      ReadTime("--leader-elect-retry-period", flags.retry_period, &election->retry_period));
  if (election->namespace_name.empty()) election->namespace_name = options->access.namespace_name;
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  election->identity = absl::StrCat(host, "_", RandomHex(8));
  options->elects = flags.elects.value_or(options->access.is_in_cluster);
  return absl::OkStatus();
}

StatusOr<platform::OperatorOptions> ReadFlags(const OperatorFlags& flags) {
  platform::OperatorOptions options = flags.operates;
  WEFT_ASSIGN_OR_RETURN(options.access, FindCluster(flags.cluster));
  WEFT_RETURN_IF_ERROR(ReadElection(flags, &options));
  options.health = options.metrics;
  options.health.address = flags.health_address;
  WEFT_RETURN_IF_ERROR(
      ReadTime("--webhook_validity", flags.webhook_validity, &options.webhook.validity));
  if (!flags.log_period.empty())
    WEFT_RETURN_IF_ERROR(ReadTime("--progress_from_logs", flags.log_period, &options.log_period));
  if (!flags.prices.empty()) {
    WEFT_ASSIGN_OR_RETURN(options.prices, ReadPriceFile(flags.prices));
  }
  if (const char* const domain = std::getenv("CUSTOM_CLUSTER_DOMAIN"))
    options.cluster_domain = domain;
  return options;
}

Status ShowChanges(const platform::OperatorOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const int count,
                        platform::TellOperatorChanges(options, [](const auto& line) {
                          std::printf("would %s\n", line.c_str());
                        }));
  if (count == 0) std::printf("nothing would change\n");
  return absl::OkStatus();
}

Status Operate(const OperatorFlags& flags) {
  const sigset_t signals = HoldBackSignals();
  WEFT_ASSIGN_OR_RETURN(const platform::OperatorOptions options, ReadFlags(flags));
  if (flags.is_dry_run) return ShowChanges(options);
  return platform::RunOperator(options, [&signals] {
    int signal = 0;
    ::sigwait(&signals, &signal);
  });
}

void AddElection(CLI::App* command, const std::shared_ptr<OperatorFlags>& flags) {
  command->add_flag("--leader-elect,!--no-leader-elect", flags->elects,
                    "Of several operators let one act (default: inside a cluster)");
  command
      ->add_option("--leader-elect-lease-duration", flags->lease_duration,
                   "After this without a renewal another one leads")
      ->capture_default_str();
  command
      ->add_option("--leader-elect-renew-deadline", flags->renew_deadline,
                   "After this without a renewal the leader begins nothing new")
      ->capture_default_str();
  command->add_option("--leader-elect-retry-period", flags->retry_period, "Between two tries")
      ->capture_default_str();
  command
      ->add_option("--leader-elect-resource-name", flags->operates.election.name,
                   "Name of the Lease")
      ->capture_default_str();
  command->add_option("--leader-elect-resource-namespace", flags->operates.election.namespace_name,
                      "Namespace of the Lease (default: that of the account or context)");
}

void AddPorts(CLI::App* command, const std::shared_ptr<OperatorFlags>& flags) {
  flags->operates.metrics.address = "127.0.0.1:0";
  command
      ->add_option("--metrics-bind-address", flags->operates.metrics.address,
                   "Where /metrics is; port 0 is any free one, which the log names; '0': nowhere")
      ->capture_default_str();
  command
      ->add_option("--health-probe-bind-address", flags->health_address,
                   "The same for /healthz and /readyz")
      ->capture_default_str();
  command->add_option("--metrics-token-file", flags->operates.metrics.token_file,
                      "Who reads the metrics must say the token in this file");
  command->add_option("--tls-cert-file", flags->operates.metrics.certificate,
                      "Certificate of ports that others can reach (default: made anew)");
  command->add_option("--tls-private-key-file", flags->operates.metrics.key, "Its key");
  command->add_option("--allowed-host", flags->operates.metrics.hosts,
                      "A name by which those ports may be asked for");
}

}  // namespace

void AddOperator(CLI::App& app, Action* action) {
  CLI::App* const command =
      app.add_subcommand("operator", "Run the controllers of jobs on a cluster");
  const auto flags = std::make_shared<OperatorFlags>();  // shared with the action
  flags->operates.election.name = "weft-operator";
  flags->operates.webhook.address = {"0.0.0.0", 0};
  AddClusterFlags(command, &flags->cluster);
  command->add_option("-n,--namespace", flags->operates.namespace_name,
                      "Care for this namespace alone");
  command
      ->add_option("--controller_threads", flags->operates.threads,
                   "Jobs that are looked at together")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  command
      ->add_option("--parallel_calls", flags->operates.parallel_calls,
                   "Pods and services that are made together")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  command->add_option("--gang_scheduler_name", flags->operates.gang_scheduler,
                      "Admit the pods of a job together: volcano, or a scheduler with the "
                      "coscheduling plugin");
  command->add_option("--progress_from_logs", flags->log_period,
                      "Read the progress of jobs from the log of their first task, and how stale "
                      "updates are from those of parameter servers, this often (15s); needs "
                      "deploy/rbac/logs.yaml. Default: never");
  command->add_option(
      "--prices", flags->prices,
      "JSON file with an hour's price by kind of node, by which elastic jobs are "
      "counted; needs deploy/rbac/distribution.yaml. Default: all tasks cost alike");
  command->add_option("-l,--job_selector", flags->operates.job_selector,
                      "Care for the jobs with these labels alone (operator=weft,team!=vision); "
                      "others are somebody else's");
  command->add_flag("--experiments", flags->operates.has_experiments,
                    "Care for Experiments and their Trials too; needs deploy/rbac/tuning.yaml");
  command->add_flag("--model_servers", flags->operates.has_model_servers,
                    "Care for ModelServers too; needs deploy/rbac/serving.yaml");
  AddKatibFlags(command, &flags->operates.katib_address, &flags->operates.suggestion_services);
  command->add_flag("--adopt_orphans", flags->operates.adopts_orphans,
                    "Take over pods and services that belong to nobody and have the labels of a "
                    "job, as another operator leaves them behind; needs deploy/rbac/adoption.yaml");
  command->add_flag("--dry_run", flags->is_dry_run,
                    "Look at all jobs once, print what would change, change nothing");
  AddElection(command, flags);
  AddPorts(command, flags);
  command
      ->add_option("--webhook_port", flags->operates.webhook.address.port,
                   "Refuse wrong jobs before they are kept, as a validating webhook on this port")
      ->check(CLI::Range(0, 65535));
  command->add_option("--webhook_folder", flags->operates.webhook.folder,
                      "Its tls.crt and tls.key; made there when they are missing, with a "
                      "webhook.yaml for the cluster");
  command
      ->add_option("--webhook_host", flags->operates.webhook.host,
                   "By which the API server reaches it")
      ->capture_default_str();
  command->add_option("--webhook_service", flags->operates.webhook.service,
                      "NAMESPACE/NAME of the service that has this host name, on a cluster");
  command->add_option("--webhook_configuration", flags->operates.webhook.configuration,
                      "The ValidatingWebhookConfiguration of the cluster that shall trust its "
                      "certificate; it is kept up to date (default: DIR/webhook.yaml is written)");
  command
      ->add_option("--webhook_validity", flags->webhook_validity,
                   "Life of a certificate that is made; another takes its place in time")
      ->capture_default_str();
  SetAction(command, action, [flags] { return Operate(*flags); });
}

}  // namespace weft::apps
