// SPDX-License-Identifier: Apache-2.0
// `weft server`: one task of a cluster.
#include "weft/server/server.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pthread.h>
#include <signal.h>

#include "absl/time/clock.h"

#include "apps/command.h"
#include "apps/op_libraries.h"
#include "apps/server_program.h"
#include "base/files.h"
#include "base/huge_pages.h"
#include "base/log.h"
#include "base/memory_limit.h"
#include "net/job_identity.h"
#include "supervisor/supervisor.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/device/cpu/math_mode.h"
#include "weft/device/plugin/plugin_devices.h"
#include "weft/server/kept_variables.h"

namespace weft::apps {
namespace {

struct ServerFlags {
  std::string cluster;
  std::string job_name;
  int task_index = 0;
  int data_port = 0;
  std::string data_address;
  std::string transport;
  bool shared_memory = true;
  std::string bind;
  std::string root;
  std::string cost_file;
  std::vector<std::string> op_libraries;
  std::string task_tls;
  bool insecure = false;
  std::string log_format = "text";
  int threads = 0;
  int devices = 1;
  bool soft_placement = false;
  std::string math = "fast";
  std::vector<std::string> device_plugins;
  uint64_t memory_limit = 0;
  int status_port = 0;
  double lost_after_s = 10;
  bool membership = false;
  bool supervised = false;
  std::string take_over;
  std::string take_over_from;
  double hand_over_s = 0;
  std::string collective_table;
  std::string lease_folder;
  double session_lease_s = 12 * 3600;
  double report_waits_s = 30;
  double grace_s = 10;
  std::string distribution;
  std::vector<std::string> program;
};

StatusOr<server::ServerOptions> OptionsFrom(const ServerFlags& flags) {
  server::ServerOptions options{.bind = flags.bind,
                                .take_over = flags.take_over,
                                .take_over_from = flags.take_over_from,
                                .hand_over_within = absl::Seconds(flags.hand_over_s),
                                .data_port = flags.data_port,
                                .data_address = flags.data_address,
                                .transport = flags.transport,
                                .share_memory = flags.shared_memory,
                                .insecure = flags.insecure,
                                .root = flags.root,
                                .num_threads = flags.threads,
                                .soft_placement = flags.soft_placement,
                                .memory_limit = flags.memory_limit,
                                .distribution = flags.distribution,
                                .cost_file = flags.cost_file,
                                .lost_after = flags.lost_after_s > 0
                                                  ? absl::Seconds(flags.lost_after_s)
                                                  : absl::InfiniteDuration(),
                                .membership = flags.membership,
                                .lease_folder = flags.lease_folder,
                                .collective_table = flags.collective_table,
                                .session_lease = absl::Seconds(flags.session_lease_s),
                                .report_waits_after = absl::Seconds(flags.report_waits_s),
                                .status_port = flags.status_port};
  if (flags.lost_after_s > 0 && flags.lost_after_s < 3) {
    return InvalidArgument("--lost_after is ", flags.lost_after_s,
                           ": tasks tell each other every second that they live, expected 3 at "
                           "least, or 0 for never");
  }
  SetExactMath(flags.math == "exact");
  if (!flags.task_tls.empty() && flags.insecure) {
    return InvalidArgument("Either --task_tls or --insecure: what shall others than the job be?");
  }
  if (!flags.task_tls.empty()) {
    RealFileSystem files;
    StatusOr<JobIdentity> identity = ReadJobIdentity(files, flags.task_tls, absl::Now());
    if (!identity.ok()) return Annotate(identity.status(), "--task_tls");
    options.identity = *std::move(identity);
  }
  WEFT_RETURN_IF_ERROR(server::CompleteFromEnvironment(&options));
  if (!flags.cluster.empty()) {
    StatusOr<cluster::ClusterSpec> spec = cluster::ClusterSpec::FromJson(flags.cluster);
    if (!spec.ok()) {
      return Annotate(
          spec.status(),
          "--cluster (JSON as in TF_CONFIG, such as {\"worker\": [\"localhost:2222\"]})");
    }
    options.cluster = *std::move(spec);
    if (flags.job_name.empty()) return InvalidArgument("--cluster needs --job_name");
    options.task = {flags.job_name, flags.task_index};
    return options;
  }
  const char* config = std::getenv("TF_CONFIG");
  if (config == nullptr || *config == '\0') {
    return InvalidArgument("Which cluster? Give --cluster and --job_name, or set TF_CONFIG");
  }
  WEFT_ASSIGN_OR_RETURN(cluster::TaskConfig task, cluster::ParseTfConfig(config));
  options.cluster = std::move(task.cluster);
  options.task = std::move(task.task);
  return options;
}

// What a task computes with: the catalogue and the devices, of weft and of the libraries that it
// was told to load. Outlives the server.
class Machine {
 public:
  explicit Machine(int num_cpus) : cpus_(num_cpus) {}

  Status Load(const std::vector<std::string>& op_libraries,
              const std::vector<std::string>& device_plugins) {
    WEFT_ASSIGN_OR_RETURN(catalogue_, CatalogueWith(op_libraries));
    std::vector<DeviceFactory*> factories = {&cpus_};
    for (const std::string& path : device_plugins) {
      WEFT_RETURN_IF_ERROR(Annotate(AddPlugin(path), "--device_plugin"));
      factories.push_back(plugins_.back().get());
    }
    devices_.emplace(std::move(factories));
    return absl::OkStatus();
  }

  const Catalogue* catalogue() const { return catalogue_; }
  DeviceFactory* devices() { return &*devices_; }

 private:
  Status AddPlugin(const std::string& path) {
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<PluginDevices> plugin, PluginDevices::Load(path));
    WEFT_ASSIGN_OR_RETURN(own_catalogue_, OwnCatalogue({}));  // with the op libraries, if any
    catalogue_ = own_catalogue_;
    WEFT_RETURN_IF_ERROR(plugin->AddKernels(own_catalogue_));
    plugins_.push_back(std::move(plugin));
    return absl::OkStatus();
  }

  CpuDevices cpus_;
  const Catalogue* catalogue_ = nullptr;
  Catalogue* own_catalogue_ = nullptr;  // the same, where kernels of devices are added to it
  std::vector<std::unique_ptr<PluginDevices>> plugins_;
  std::optional<JoinedDevices> devices_;
};

// This program again as the child of this process, with the words that it was called with.
int RunSupervised() {
  const StatusOr<int> code = supervisor::SuperviseThisProgram(MachineMemory());
  if (code.ok()) return *code;
  std::fprintf(stderr, "weft server: %s\n", std::string(code.status().message()).c_str());
  return 1;
}

// Of a supervised server. One whose memory is not as it should be goes on without it.
std::unique_ptr<server::KeptVariables> InheritVariables() {
  StatusOr<std::unique_ptr<server::KeptVariables>> kept = server::KeptVariables::Inherit();
  if (kept.ok()) return *std::move(kept);
  WEFT_LOG(ERROR) << "No variables are kept: " << kept.status().message();
  return nullptr;
}

int RunServer(const ServerFlags& flags) {
  if (flags.supervised && !supervisor::HasInheritance()) return RunSupervised();
  const sigset_t signals = HoldBackServerSignals();

  StatusOr<server::ServerOptions> options = OptionsFrom(flags);
  if (!options.ok()) {
    std::fprintf(stderr, "weft server: %s\n", std::string(options.status().message()).c_str());
    return 2;
  }
  Machine machine(flags.devices);
  if (const Status loaded = machine.Load(flags.op_libraries, flags.device_plugins); !loaded.ok()) {
    std::fprintf(stderr, "weft server: %s\n", std::string(loaded.message()).c_str());
    return 2;
  }
  // To the end of the process: what it holds must stay while anybody may kill it.
  options->kept = InheritVariables().release();
  options->catalogue = machine.catalogue();
  options->devices = machine.devices();
  if (flags.log_format == "json") {
    LogOptions log = LogOptionsFromEnvironment();
    log.form = LogForm::kJson;
    log.job = options->task.job;
    log.task = options->task.index;
    ConfigureLog(log);
  }
  WEFT_LOG(INFO) << Describe(HugePagesHere());
  StatusOr<std::unique_ptr<server::Server>> server = server::Server::Start(*options);
  if (!server.ok()) {
    std::fprintf(stderr, "weft server: %s\n", std::string(server.status().message()).c_str());
    return 1;
  }
  const absl::Duration grace = absl::Seconds(flags.grace_s);
  StatusOr<int> code = 0;
  if (!flags.program.empty() && LeadingTask(options->cluster, options->task) == options->task) {
    code = RunServersProgram(flags.program, (*server)->target(), signals, grace);
    if (!code.ok())
      std::fprintf(stderr, "weft server: %s\n", std::string(code.status().message()).c_str());
  } else {
    WaitForServerEnd(signals, [&server] { (*server)->HandOver(); });
  }
  (*server)->Shutdown(grace);
  return code.ok() ? *code : 1;
}

// A program for one device, and who distributes its steps.
void AddFlagsOfPrograms(CLI::App* command, const CommandLine& line, ServerFlags* flags) {
  flags->program = line.program;
  command
      ->add_option("--distribution", flags->distribution,
                   "auto: sessions of this task's master spread a training graph that names no "
                   "tasks over the workers and parameter servers, where results stay the same, "
                   "and the log says where not; required: that is an error; written: graphs say "
                   "themselves (or WEFT_DISTRIBUTION)")
      ->envname("WEFT_DISTRIBUTION")
      ->check(CLI::IsMember({"auto", "required", "written"}));
  command->footer(
      "A program after two dashes is run by the leading task (chief, else worker 0), with its\n"
      "sessions of no target at this server; the others serve it:\n"
      "  weft server --distribution auto -- python -m weft train.py");
}

// What it does about tasks that come, go and fall silent.
void AddFlagsOfOthers(CLI::App* command, ServerFlags* flags) {
  command
      ->add_flag("--membership", flags->membership,
                 "Tasks tell each other which of them live: one that stands still is lost in about "
                 "2 s, and groups of ranks may shrink and grow (or WEFT_MEMBERSHIP=1)")
      ->envname("WEFT_MEMBERSHIP");
  command
      ->add_flag("--supervised", flags->supervised,
                 "A small parent process holds the memory of the variables: when this server is "
                 "killed, it starts it again with them (or WEFT_SUPERVISED=1)")
      ->envname("WEFT_SUPERVISED");
  command
      ->add_option("--collective_table", flags->collective_table,
                   "Which algorithms all-reduces take, as `weft bench all-reduce` has "
                   "measured; else by a rule, as with TF_DETERMINISTIC_OPS=1 (or "
                   "WEFT_COLLECTIVE_TABLE)")
      ->envname("WEFT_COLLECTIVE_TABLE");
  command
      ->add_option("--take_over", flags->take_over,
                   "Take the task over from the process that has it now, with what its variables "
                   "hold and without an error in any step, and answer at this host:port instead of "
                   "the cluster's; port 0: any (or WEFT_TAKE_OVER)")
      ->envname("WEFT_TAKE_OVER");
  command
      ->add_option("--take_over_from", flags->take_over_from,
                   "host:port of that process, where the task's own name may lead elsewhere by "
                   "now; when nobody is there, the task begins here (or WEFT_TAKE_OVER_FROM)")
      ->envname("WEFT_TAKE_OVER_FROM");
  command
      ->add_option("--hand_over", flags->hand_over_s,
                   "Seconds after SIGTERM in which a task that others use waits for a process that "
                   "begins to take it over (or WEFT_HAND_OVER)")
      ->envname("WEFT_HAND_OVER");
  command
      ->add_option(
          "--lease_folder", flags->lease_folder,
          "Where the first parameter server (the first task, if there is none) keeps which "
          "ranges of data are done; else in memory (or WEFT_LEASE_FOLDER)")
      ->envname("WEFT_LEASE_FOLDER");
  command
      ->add_option("--lost_after", flags->lost_after_s,
                   "Seconds of silence after which another task counts as lost; 0: never while its "
                   "connection stands, as TensorFlow's servers wait (or WEFT_LOST_AFTER)")
      ->envname("WEFT_LOST_AFTER")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

// How tensors travel between tasks.
void AddFlagsOfTensors(CLI::App* command, ServerFlags* flags) {
  command
      ->add_option("--data_port", flags->data_port,
                   "Port for tensors between tasks; 0: any free one")
      ->check(CLI::Range(0, 65535));
  command->add_option("--data_address", flags->data_address,
                      "host:port where other tasks reach that port, if not at this task's host: "
                      "behind a proxy");
  command
      ->add_option(
          "--transport", flags->transport,
          "What carries tensors between tasks: tcp; ucx (InfiniBand and RoCE by RDMA, in "
          "the clear); auto: ucx where an RDMA adapter is here and the tasks speak no TLS. "
          "The same for all tasks (or WEFT_TRANSPORT)")
      ->envname("WEFT_TRANSPORT")
      ->check(CLI::IsMember({"auto", "tcp", "ucx"}));
  command
      ->add_option("--shared_memory", flags->shared_memory,
                   "Read tensors of tasks on the same host in place; false: copy them")
      ->capture_default_str();
}

}  // namespace

void AddServer(CLI::App& app, const CommandLine& line, Action* action) {
  CLI::App* command =
      app.add_subcommand("server", "Run one task of a cluster (or take it from TF_CONFIG)");
  auto flags = std::make_shared<ServerFlags>();  // shared with the action, which outlives this call
  command->add_option("--cluster", flags->cluster,
                      R"({"ps": ["host:port"], "worker": ["host:port"]})");
  command->add_option("--job_name", flags->job_name, "Which job of the cluster this task is of");
  command->add_option("--task_index", flags->task_index, "Which task of the job");
  command->add_option("--bind", flags->bind, "Host to listen at, instead of what the address says");
  AddFlagsOfTensors(command, flags.get());
  command->add_option(
      "--file_root,--root", flags->root,
      "Directory that file ops of graphs stay under, \"/\" for none; where the port "
      "is not on loopback it is the working directory if nothing is said");
  AddOpLibraryFlag(command, &flags->op_libraries);
  command->add_option(
      "--task_tls", flags->task_tls,
      "Folder with the secret of the job, which `weft secret` makes: tasks speak TLS "
      "with each other, and others reach only loopback (or WEFT_TASK_TLS)");
  command->add_flag("--insecure", flags->insecure,
                    "Let whoever reaches the port run graphs, without a secret, also where it is "
                    "not on loopback (or WEFT_INSECURE=1)");
  command->add_option("--threads", flags->threads, "Compute threads; 0: one a usable core");
  command->add_option("--cpu_devices", flags->devices, "CPU devices to offer")
      ->check(CLI::Range(1, 64));
  command->add_flag(
      "--soft_placement", flags->soft_placement,
      "Run nodes that ask for a device this cluster has not, such as /gpu:0, on a CPU: "
      "for programs that do not set allow_soft_placement and cannot be edited");
  command
      ->add_option(
          "--math", flags->math,
          "fast: convolutions may take algorithms that round more; exact: sums of products "
          "alone")
      ->check(CLI::IsMember({"fast", "exact"}));
  command->add_option(
      "--cost_file", flags->cost_file,
      "Write what the steps of this task's master cost to this file, for "
      "`weft plan`; with several tasks its name gets the task's (or WEFT_COST_FILE)");
  command->add_option("--device_plugin", flags->device_plugins,
                      "Library of devices to load (docs/write_a_device.md); may be given again");
  command
      ->add_option("--memory_limit", flags->memory_limit,
                   "Host memory that tensors may take, as 800MB or 16GB; 0: nine tenths of the "
                   "control group's limit, else the machine's memory")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  command
      ->add_option("--status_port", flags->status_port,
                   "Loopback port of /healthz, /metrics and /waits; 0: any free one, which the log "
                   "names; -1: none")
      ->capture_default_str()
      ->check(CLI::Range(-1, 65535));
  command->add_option("--log_format", flags->log_format, "text, or json: one object a line")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  AddFlagsOfOthers(command, flags.get());
  AddFlagsOfPrograms(command, line, flags.get());
  command->add_option("--session_lease", flags->session_lease_s,
                      "Seconds after which a session that nobody uses is closed");
  command
      ->add_option("--report_waits_after", flags->report_waits_s,
                   "Seconds after which the log says who waits for what on whom")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--grace", flags->grace_s, "Seconds for running calls after SIGTERM");
  command->callback([flags, action] { *action = [flags] { return RunServer(*flags); }; });
}

}  // namespace weft::apps
