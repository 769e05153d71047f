// SPDX-License-Identifier: Apache-2.0
// `weft doctor`: what this machine, or a cluster, lacks.
#include "platform/console/doctor.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "apps/command.h"
#include "base/clock.h"
#include "platform/object/fields.h"
#include "platform/store/kubernetes/kubernetes_store.h"

namespace weft::apps {
namespace {

struct DoctorFlags {
  std::string what = "machine";
  ClusterFlags cluster;
  std::string namespace_name;
  bool as_operator = false;
  bool is_quiet = false;
  bool as_json = false;
};

const platform::ResourceType& AccessReviews() {
  static const auto* const type = new platform::ResourceType(
      platform::MakeResourceType("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "",
                                 "SelfSubjectAccessReview", false));
  return *type;
}

std::vector<platform::Finding> CheckCluster(const DoctorFlags& flags) {
  const auto unreachable = [](const Status& status) {
    platform::Finding finding;
    finding.about = "server";
    finding.verdict = platform::Verdict::kBad;
    finding.found = std::string(status.message());
    finding.next = "weft up   (or name a cluster with --kubeconfig)";
    return std::vector<platform::Finding>{finding};
  };
  RealClock clock;
  const StatusOr<platform::ClusterAccess> access = FindCluster(flags.cluster);
  if (!access.ok()) return unreachable(access.status());
  const auto store = platform::KubernetesStore::Connect(*access, &clock);
  if (!store.ok()) return unreachable(store.status());
  platform::ClusterView view;
  view.server = access->server;
  view.namespace_name = flags.namespace_name;
  if (view.namespace_name.empty() && !flags.as_operator)
    view.namespace_name = access->namespace_name;
  view.lease_namespace = access->namespace_name;
  view.elects = access->is_in_cluster;
  view.get = [&](const std::string& path) { return (*store)->GetPage(path); };
  view.may = [&](const Json& attributes) -> StatusOr<bool> {
    Json review;
    review.Set("apiVersion", "authorization.k8s.io/v1");
    review.Set("kind", "SelfSubjectAccessReview");
    platform::SetField(&review, {"spec", "resourceAttributes"}, attributes);
    WEFT_ASSIGN_OR_RETURN(const platform::ObjectPtr answer,
                          (*store)->Create(AccessReviews(), "", std::move(review), {}));
    return platform::BoolField(*answer, {"status", "allowed"});
  };
  return platform::CheckCluster(view, flags.as_operator);
}

int RunDoctor(const DoctorFlags& flags) {
  const std::vector<platform::Finding> findings =
      flags.what == "cluster" ? CheckCluster(flags) : platform::CheckMachine();
  const std::string text = flags.as_json ? platform::FindingsAsJson(findings).Dump(2) + "\n"
                                         : platform::DescribeFindings(findings, flags.is_quiet);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return platform::IsAnyBad(findings) ? 1 : 0;
}

}  // namespace

void AddDoctor(CLI::App& app, Action* action) {
  CLI::App* const command = app.add_subcommand(
      "doctor", "Say what this machine or a cluster lacks, and what to type next");
  const auto flags = std::make_shared<DoctorFlags>();
  command->add_option("what", flags->what, "machine or cluster")
      ->capture_default_str()
      ->check(CLI::IsMember({"machine", "cluster"}));
  AddClusterFlags(command, &flags->cluster);
  command->add_option("-n,--namespace", flags->namespace_name,
                      "Where jobs shall run (default: the context's)");
  command->add_flag("--as_operator", flags->as_operator,
                    "Ask for the rights of the operator's account");
  command->add_flag("--quiet", flags->is_quiet, "Only what is not good");
  command->add_flag("--json", flags->as_json, "For programs");
  command->footer("The exit code is 1 when something does not work.");
  command->callback([flags, action] { *action = [flags] { return RunDoctor(*flags); }; });
}

}  // namespace weft::apps
