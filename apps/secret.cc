// SPDX-License-Identifier: Apache-2.0
// `weft secret`: what the tasks of one job know each other by.
#include <cstdio>
#include <memory>
#include <string>

#include "absl/time/clock.h"

#include "apps/command.h"
#include "net/certificate.h"
#include "net/job_identity.h"

namespace weft::apps {
namespace {

struct SecretFlags {
  std::string folder;
  int days = 3650;
};

Status MakeSecret(const SecretFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const JobIdentity identity,
                        MakeJobIdentity(absl::StrCat(RandomHex(8), ".weft-job"), absl::Now(),
                                        absl::Hours(24) * flags.days));
  WEFT_RETURN_IF_ERROR(WriteJobIdentity(identity, flags.folder));
  std::printf(
      "%s holds the secret of one job, for %d days. Copy it to the machine of each task and start "
      "them with\n  weft server --task_tls %s ...\nOn Kubernetes weft operator makes one for each "
      "TFJob by itself.\n",
      flags.folder.c_str(), flags.days, flags.folder.c_str());
  return absl::OkStatus();
}

}  // namespace

void AddSecret(CLI::App& app, Action* action) {
  CLI::App* const command = app.add_subcommand(
      "secret", "Make the secret of a job, with which its tasks on several machines speak TLS");
  const auto flags = std::make_shared<SecretFlags>();  // shared with the action
  command->add_option("folder", flags->folder, "Where: a new folder, or one without a secret")
      ->required();
  command->add_option("--days", flags->days, "How long it is good for")
      ->capture_default_str()
      ->check(CLI::Range(1, 36500));
  SetAction(command, action, [flags] { return MakeSecret(*flags); });
}

}  // namespace weft::apps
