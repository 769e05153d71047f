// SPDX-License-Identifier: Apache-2.0
// `weft suggestion`: weft's algorithms as a suggestion service of Katib.
#include "apps/suggestion.h"

#include <cstdio>
#include <memory>
#include <string>

#include <signal.h>

#include "platform/tuning/katib_calls.h"
#include "platform/tuning/katib_server.h"

namespace weft::apps {
namespace {

Status Serve(const std::string& address) {
  const sigset_t signals = HoldBackSignals();
  WEFT_ASSIGN_OR_RETURN(const auto server,
                        platform::KatibServer::Start(address, platform::KatibCalls(nullptr)));
  std::printf("suggestions at port %d\n", server->port());
  std::fflush(stdout);
  int signal = 0;
  ::sigwait(&signals, &signal);
  return absl::OkStatus();
}

}  // namespace

void AddSuggestion(CLI::App& app, Action* action) {
  CLI::App* const command = app.add_subcommand(
      "suggestion", "Answer Katib's controller over gRPC: what to try next, by weft's algorithms");
  const auto address = std::make_shared<std::string>("127.0.0.1:6789");  // shared with the action
  command->add_option("--address", *address, "Where to listen; port 0 is any free one")
      ->capture_default_str();
  SetAction(command, action, [address] { return Serve(*address); });
}

void AddKatibFlags(CLI::App* command, std::string* address, std::vector<std::string>* services) {
  command->add_option("--katib_address", *address,
                      "Answer Katib's calls here, as 127.0.0.1:6789: programs of trials report "
                      "their metrics (default: nowhere)");
  command
      ->add_option("--suggestion_service", *services,
                   "ALGORITHM=HOST:PORT: experiments with this algorithm ask that service, which "
                   "speaks Katib's interface, as Katib's images do; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace weft::apps
