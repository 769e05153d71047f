// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/console/doctor.h"
#include "platform/object/fields.h"
#include "platform/object/node_view.h"
#include "platform/object/pod_view.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr int kLeastMinor = 25;  // validation rules of custom resources
constexpr char kApply[] = "kubectl apply -k deploy/cluster";

struct Right {
  const char* group;
  const char* resource;
  const char* subresource;
  std::vector<const char*> verbs;
};

const std::vector<Right>& RightsOfTheOperator() {
  static const auto* const rights = new std::vector<Right>{
      {"kubeflow.org", "tfjobs", "", {"get", "list", "watch", "delete"}},
      {"kubeflow.org", "tfjobs", "status", {"update"}},
      {"kubeflow.org", "tfjobs", "finalizers", {"update"}},
      {"krallistic.github.com", "tensorflows", "", {"get", "list", "watch", "delete"}},
      {"krallistic.github.com", "tensorflows", "status", {"update"}},
      {"krallistic.github.com", "tensorflows", "finalizers", {"update"}},
      {"", "pods", "", {"get", "list", "watch", "create", "delete"}},
      {"", "services", "", {"get", "list", "watch", "create", "delete"}},
      {"", "events", "", {"create", "patch"}}};
  return *rights;
}

const std::vector<Right>& RightsOfALeader() {
  static const auto* const rights =
      new std::vector<Right>{{"coordination.k8s.io", "leases", "", {"get", "create", "update"}}};
  return *rights;
}

const std::vector<Right>& RightsOfAUser() {
  static const auto* const rights = new std::vector<Right>{
      {"kubeflow.org", "tfjobs", "", {"get", "list", "watch", "create", "patch", "delete"}},
      {"", "pods", "", {"get", "list", "watch"}},
      {"", "pods", "log", {"get"}},
      {"", "events", "", {"list"}}};
  return *rights;
}

class Cluster {
 public:
  Cluster(const ClusterView& view, bool as_operator) : view_(view), as_operator_(as_operator) {}

  std::vector<Finding> Check() {
    if (!Server()) return std::move(findings_);
    Kinds("kubeflow.org", "TFJob", "tfjobs", Verdict::kBad);
    Kinds("krallistic.github.com", "Tensorflow", "tensorflows",
          as_operator_ ? Verdict::kBad : Verdict::kWorse);
    Rights();
    if (as_operator_) {
      LeaseRights();
      return std::move(findings_);
    }
    Operator();
    NodesAndCards();
    Storage();
    return std::move(findings_);
  }

 private:
  void Add(std::string about, Verdict verdict, std::string found, std::string next = "") {
    findings_.push_back({std::move(about), verdict, std::move(found), std::move(next)});
  }

  bool Server() {
    const StatusOr<Json> version = view_.get("/version");
    if (!version.ok()) {
      const int code = HttpCodeOf(version.status());
      const bool is_refused = code == 401 || code == 403;
      Add("server", Verdict::kBad,
          absl::StrCat(view_.server,
                       is_refused ? " refuses these credentials: " : " does not answer: ",
                       version.status().message()),
          is_refused ? "kubectl config view --minify   (renew its token or certificate)"
                     : "kubectl cluster-info   (or `weft up` for one on this machine)");
      return false;
    }
    const std::string text = StringField(*version, {"gitVersion"});
    int minor = 0;
    const std::string digits = StringField(*version, {"minor"});
    (void)absl::SimpleAtoi(digits.substr(0, digits.find('+')), &minor);
    const bool is_new = StringField(*version, {"major"}) != "1" || minor >= kLeastMinor;
    Add("server", is_new ? Verdict::kGood : Verdict::kBad,
        absl::StrCat(view_.server, " is ", text,
                     is_new ? "" : absl::StrCat(", 1.", kLeastMinor, " or later is needed")),
        is_new ? "" : "kubectl version   (then update the cluster)");
    return true;
  }

  // By discovery, which every account may read.
  void Kinds(const char* group, const char* kind, const char* plural, Verdict missing) {
    const std::string next = absl::StrCat("kubectl apply -f deploy/crds/", plural, ".yaml");
    const StatusOr<Json> page = view_.get(absl::StrCat("/apis/", group, "/v1"));
    if (!page.ok()) {
      const bool is_absent = HttpCodeOf(page.status()) == 404;
      return Add(kind, missing,
                 is_absent ? absl::StrCat("the cluster does not know ", plural, ".", group, "/v1")
                           : std::string(page.status().message()),
                 next);
    }
    bool is_there = false;
    bool has_status = false;
    if (const Json* const resources = FindField(*page, {"resources"})) {
      for (const Json& resource : resources->items()) {
        const std::string name = StringField(resource, {"name"});
        is_there = is_there || name == plural;
        has_status = has_status || name == absl::StrCat(plural, "/status");
      }
    }
    if (is_there && has_status)
      return Add(kind, Verdict::kGood, absl::StrCat(plural, ".", group, "/v1"));
    Add(kind, missing,
        is_there
            ? absl::StrCat(
                  plural, ".", group,
                  " has no status of its own: its definition is of another operator, or too old")
            : absl::StrCat(group, "/v1 has no ", plural),
        next);
  }

  // What of them this account lacks: "create/delete pods". None when that was reported.
  std::optional<std::vector<std::string>> Lacking(const std::string& about,
                                                  const std::vector<Right>& rights,
                                                  const std::string& namespace_name) {
    std::vector<std::string> missing;
    for (const Right& right : rights) {
      std::vector<std::string> verbs;
      for (const char* verb : right.verbs) {
        Json attributes;
        attributes.Set("verb", verb);
        attributes.Set("group", right.group);
        attributes.Set("resource", right.resource);
        if (*right.subresource != '\0') attributes.Set("subresource", right.subresource);
        if (!namespace_name.empty()) attributes.Set("namespace", namespace_name);
        const StatusOr<bool> may = view_.may(attributes);
        if (!may.ok()) {
          const bool has_none = HttpCodeOf(may.status()) == 404;
          Add(about, has_none ? Verdict::kGood : Verdict::kWorse,
              has_none ? "everything: this server asks nobody"
                       : absl::StrCat("cannot be asked for: ", may.status().message()));
          return std::nullopt;
        }
        if (!*may) verbs.push_back(verb);
      }
      if (verbs.empty()) continue;
      missing.push_back(absl::StrCat(absl::StrJoin(verbs, "/"), " ", right.resource,
                                     *right.subresource == '\0' ? "" : "/", right.subresource,
                                     *right.group == '\0' ? "" : ".", right.group));
    }
    return missing;
  }

  std::string NextForTheOperator() const {
    return view_.namespace_name.empty() ? "kubectl apply -f deploy/rbac/operator.yaml"
                                        : "kubectl apply -k deploy/namespaced";
  }

  void Rights() {
    const std::vector<Right>& needed = as_operator_ ? RightsOfTheOperator() : RightsOfAUser();
    const auto missing = Lacking("rights", needed, view_.namespace_name);
    if (!missing.has_value()) return;
    size_t count = 0;
    for (const Right& right : needed) count += right.verbs.size();
    if (missing->empty())
      return Add("rights", Verdict::kGood, absl::StrCat("all ", count, " that are needed"));
    Add("rights", Verdict::kBad,
        absl::StrCat("this account may not ", absl::StrJoin(*missing, ", ")),
        as_operator_
            ? NextForTheOperator()
            : absl::StrCat("kubectl auth can-i --list", view_.namespace_name.empty() ? "" : " -n ",
                           view_.namespace_name, "   (ask your administrator)"));
  }

  // Without it an operator that asks who leads never does; one that is alone need not ask.
  void LeaseRights() {
    const auto missing = Lacking("lease", RightsOfALeader(), view_.lease_namespace);
    if (!missing.has_value()) return;
    if (missing->empty()) {
      return Add("lease", Verdict::kGood,
                 absl::StrCat("may lead by a Lease in namespace ", view_.lease_namespace));
    }
    Add("lease", view_.elects ? Verdict::kBad : Verdict::kWorse,
        absl::StrCat(
            "this account may not ", absl::StrJoin(*missing, ", "), " in namespace ",
            view_.lease_namespace, ": ",
            view_.elects ? "it can never lead" : "with --leader-elect it could never lead"),
        NextForTheOperator());
  }

  // Null when it was reported.
  const Json* List(const std::string& about, const std::string& path) {
    StatusOr<Json> page = view_.get(path);
    if (!page.ok()) {
      const int code = HttpCodeOf(page.status());
      Add(about, Verdict::kWorse,
          code == 403   ? "this account may not look"
          : code == 404 ? "the cluster has none"
                        : std::string(page.status().message()));
      return nullptr;
    }
    pages_[path] = *std::move(page);
    return FindField(pages_[path], {"items"});
  }

  // Controllers and volumes are parts of it.
  bool IsWeftUp() const {
    const StatusOr<Json> version = view_.get("/version");
    return version.ok() && StringField(*version, {"gitVersion"}).find("weft") != std::string::npos;
  }

  void Operator() {
    if (IsWeftUp()) return Add("operator", Verdict::kGood, "part of weft up");
    const Json* const pods =
        List("operator", "/api/v1/pods?labelSelector=app.kubernetes.io/name%3Dweft-operator");
    if (pods == nullptr) return;
    size_t running = 0;
    for (const Json& pod : pods->items()) {
      if (PodView(pod).is_running()) ++running;
    }
    if (running == 0) {
      return Add("operator", Verdict::kBad,
                 pods->size() == 0
                     ? "no pod of weft-operator: nobody acts on jobs, unless a `weft operator` "
                       "outside of the cluster does"
                     : absl::StrCat("none of ", pods->size(), " pods of weft-operator runs"),
                 pods->size() == 0 ? kApply : "kubectl -n weft-system describe pods");
    }
    std::string leader;
    const StatusOr<Json> leases = view_.get("/apis/coordination.k8s.io/v1/leases");
    if (leases.ok() && FindField(*leases, {"items"}) != nullptr) {
      for (const Json& lease : FindField(*leases, {"items"})->items()) {
        if (NameOf(lease) == "weft-operator")
          leader = StringField(lease, {"spec", "holderIdentity"});
      }
    }
    Add("operator", Verdict::kGood,
        absl::StrCat(running, " running", leader.empty() ? "" : absl::StrCat(", led by ", leader)));
  }

  void NodesAndCards() {
    const Json* const nodes = List("nodes", "/api/v1/nodes");
    if (nodes == nullptr) return;
    size_t ready = 0;
    int64_t cards = 0;
    for (const Json& node : nodes->items()) {
      ready += NodeView(node).is_ready() ? 1 : 0;
      int64_t of_node = 0;
      if (absl::SimpleAtoi(NodeView(node).allocatable("nvidia.com/gpu"), &of_node))
        cards += of_node;
    }
    const std::string found =
        absl::StrCat(ready, " of ", nodes->size(), " ready, ", cards, " GPUs (nvidia.com/gpu)");
    Add("nodes", ready > 0 ? Verdict::kGood : Verdict::kBad, found,
        ready > 0 ? "" : "kubectl describe nodes");
  }

  void Storage() {
    if (IsWeftUp()) return Add("storage", Verdict::kGood, "claims are folders of this machine");
    const Json* const classes = List("storage", "/apis/storage.k8s.io/v1/storageclasses");
    if (classes == nullptr) return;
    for (const Json& item : classes->items()) {
      const std::string is_default = StringField(
          item, {"metadata", "annotations", "storageclass.kubernetes.io/is-default-class"});
      if (is_default == "true")
        return Add("storage", Verdict::kGood, absl::StrCat("default class ", NameOf(item)));
    }
    Add("storage", Verdict::kWorse, "no default class: claims for checkpoints have to name one",
        "kubectl get storageclass");
  }

  const ClusterView& view_;
  const bool as_operator_;
  std::map<std::string, Json> pages_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> CheckCluster(const ClusterView& cluster, bool as_operator) {
  return Cluster(cluster, as_operator).Check();
}

}  // namespace weft::platform
