// SPDX-License-Identifier: Apache-2.0
// `weft ui`: the page of jobs, nodes and experiments of a cluster.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>

#include "apps/command.h"
#include "apps/page_port.h"
#include "base/clock.h"
#include "base/files.h"
#include "net/certificate.h"

namespace weft::apps {
namespace {

struct UiFlags {
  ClusterFlags cluster;
  std::string address;
  std::vector<std::string> hosts;
  std::string certificate;
  std::string key;
  std::string namespace_name;
  bool is_read_only = false;
  bool for_users = false;
};

Status ReadTls(const UiFlags& flags, platform::PageServer::Options* options) {
  if (flags.certificate.empty()) return absl::OkStatus();
  constexpr uint64_t kMostFileBytes = 1 << 20;
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string certificate,
                        ReadFile(files, flags.certificate, kMostFileBytes));
  WEFT_ASSIGN_OR_RETURN(const std::string key, ReadFile(files, flags.key, kMostFileBytes));
  WEFT_ASSIGN_OR_RETURN(options->tls, TlsConfig::Server(certificate, key));
  return absl::OkStatus();
}

Status ServePage(const UiFlags& flags) {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  RealClock clock;
  WEFT_ASSIGN_OR_RETURN(const platform::ClusterAccess access, FindCluster(flags.cluster));
  platform::PageServer::Options options;
  options.hosts = flags.hosts;
  options.namespace_name = flags.namespace_name;
  options.is_read_only = flags.is_read_only;
  if (!flags.address.empty()) {
    WEFT_ASSIGN_OR_RETURN(options.address, ParseSocketAddress(flags.address));
  }
  WEFT_RETURN_IF_ERROR(ReadTls(flags, &options));
  if (!IsLoopbackHost(options.address.host) && options.tls == nullptr) {
    return InvalidArgument("--address ", flags.address,
                           " can be reached from other machines, and keys would travel in plain "
                           "text: give --tls_certificate and --tls_key, or 127.0.0.1 and forward "
                           "the port (kubectl port-forward, ssh -L)");
  }
  const std::string key = RandomHex(16);
  if (flags.for_users) options.open = platform::OpenWithToken(access, &clock);
  const bool is_tls = options.tls != nullptr;
  WEFT_ASSIGN_OR_RETURN(const auto page, StartPage(access, key, &clock, std::move(options)));
  std::printf("The page of %s is at %s://127.0.0.1:%d\n", access.server.c_str(),
              is_tls ? "https" : "http", page->port());
  if (flags.for_users) {
    std::printf("It asks for a token of the cluster, as `kubectl create token NAME` prints one\n");
  } else {
    std::printf("It asks for this key: %s\n", key.c_str());
  }
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&signals, &signal);
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<platform::PageServer>> StartPage(const platform::ClusterAccess& access,
                                                          const std::string& key,
                                                          const Clock* clock,
                                                          platform::PageServer::Options options) {
  if (options.open == nullptr) {
    WEFT_ASSIGN_OR_RETURN(std::shared_ptr<platform::KubernetesStore> store,
                          platform::KubernetesStore::Connect(access, clock));
    options.open = platform::OpenWithKey(key, std::move(store));
  }
  if (options.address.port != 0) return platform::PageServer::Start(std::move(options));
  platform::PageServer::Options usual = options;
  usual.address.port = kPagePort;
  StatusOr<std::unique_ptr<platform::PageServer>> page =
      platform::PageServer::Start(std::move(usual));
  if (page.ok()) return page;
  return platform::PageServer::Start(std::move(options));
}

void AddUi(CLI::App& app, Action* action) {
  CLI::App* const command =
      app.add_subcommand("ui", "Serve the page of a cluster's jobs, nodes and experiments");
  const auto flags = std::make_shared<UiFlags>();
  AddClusterFlags(command, &flags->cluster);
  command->add_option("--address", flags->address,
                      "HOST:PORT to listen on (default: 127.0.0.1:8087, or any port)");
  command
      ->add_option("--host", flags->hosts,
                   "A name that browsers call it by, beside localhost; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  CLI::Option* const certificate = command->add_option("--tls_certificate", flags->certificate,
                                                       "File with its certificate, for https");
  CLI::Option* const key =
      command->add_option("--tls_key", flags->key, "File with the key of that");
  certificate->needs(key);
  key->needs(certificate);
  command->add_option("-n,--namespace", flags->namespace_name,
                      "What is shown first (default: all namespaces)");
  command->add_flag("--read_only", flags->is_read_only, "Show, and change nothing");
  command->add_flag("--for_users", flags->for_users,
                    "Everybody types a token of the cluster and has its rights; those of this "
                    "program do not count");
  SetAction(command, action, [flags] { return ServePage(*flags); });
}

}  // namespace weft::apps
