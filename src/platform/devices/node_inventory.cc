// SPDX-License-Identifier: Apache-2.0
#include "platform/devices/node_inventory.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "base/log.h"
#include "platform/object/fields.h"
#include "platform/resources/node_description.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

// Who is silent for so many heartbeats is gone.
constexpr int kBeatsOfSilence = 3;

// Labels that a node's own identity may not write, by the API server's NodeRestriction.
bool IsReserved(const std::string& label) {
  const std::string domain = label.substr(0, label.find('/'));
  return absl::EndsWith(domain, "kubernetes.io") || absl::EndsWith(domain, "k8s.io");
}

// What `told` had and `described` has not any more becomes null, which removes it.
Json Changes(const Json& told, const Json& described, const char* part) {
  Json changes = Json::MakeObject();
  const Json* const now = FindField(described, {"metadata", part});
  const Json* const before = FindField(told, {"metadata", part});
  if (before != nullptr) {
    for (const JsonMember& member : before->members()) {
      if (now == nullptr || now->Find(member.name) == nullptr) changes.Set(member.name, Json());
    }
  }
  if (now != nullptr) {
    for (const JsonMember& member : now->members()) changes.Set(member.name, member.value);
  }
  return changes;
}

}  // namespace

NodeInventory::NodeInventory(Options options) : options_(std::move(options)) {}

Json NodeInventory::Claim() {
  Json claim;
  claim.Set("machine", options_.machine);
  claim.Set("host", options_.host);
  claim.Set("beat", ++beat_);
  return claim;
}

// An agent that lives changes its claim: no clock is compared with another machine's.
StatusOr<bool> NodeInventory::MayTell(const Json& node) {
  const std::string claim = StringField(node, {"metadata", "annotations", kAgentAnnotation});
  const Json other = Json::Parse(claim).value_or(Json());
  if (claim.empty() || StringField(other, {"machine"}) == options_.machine) return true;
  if (is_ours_) {
    return FailedPrecondition("Node '", options_.node, "' is told of by an agent on ",
                              StringField(other, {"host"}), " now");
  }
  const absl::Duration now = options_.clock->Monotonic();
  if (others_claim_.empty()) {
    others_claim_ = claim;
    others_since_ = now;
    WEFT_LOG(INFO) << "Node '" << options_.node << "' was told of by an agent on "
                   << StringField(other, {"host"}) << ": is it alive?";
  }
  if (others_claim_ != claim) {
    return FailedPrecondition("Node '", options_.node, "' is told of by an agent on ",
                              StringField(other, {"host"}),
                              ", which is alive: each node has one agent, and this machine is "
                              "another node (--node)");
  }
  return now - others_since_ >= kBeatsOfSilence * options_.heartbeat;
}

Status NodeInventory::WriteMetadata(const Json& node, const Json& described) {
  Json patch;
  // Only what we have read: another agent may write at this moment.
  SetField(&patch, {"metadata", "resourceVersion"}, RevisionOf(node));
  Json labels = Changes(told_, described, "labels");
  if (is_without_reserved_labels_) {
    Json allowed = Json::MakeObject();
    for (const JsonMember& label : labels.members()) {
      if (!IsReserved(label.name)) allowed.Set(label.name, label.value);
    }
    labels = std::move(allowed);
  }
  SetField(&patch, {"metadata", "labels"}, std::move(labels));
  SetField(&patch, {"metadata", "annotations"}, Changes(told_, described, "annotations"));
  SetField(&patch, {"metadata", "annotations", kAgentAnnotation}, Claim().Dump());
  return options_.store
      ->Patch(Nodes(), {"", options_.node}, PatchKind::kMerge, patch, WriteOptions())
      .status();
}

Status NodeInventory::Write(const Json& node, const Machine& machine) {
  Json described = DescribeAsNode(machine, options_.node);
  Status written = WriteMetadata(node, described);
  if (HttpCodeOf(written) == 403 && !is_without_reserved_labels_) {
    is_without_reserved_labels_ = true;
    written = WriteMetadata(node, described);
    if (written.ok()) {
      WEFT_LOG(INFO) << "Labels in Kubernetes' own domains (alpha.kubernetes.io/infiniBand) are "
                     << "not ours to write on this cluster, the others are";
    }
  }
  WEFT_RETURN_IF_ERROR(written);
  const Json* const amounts = FindField(described, {"status", "allocatable"});
  if (options_.tells_amounts && amounts != nullptr) {
    Json patch;
    for (const char* kind : {"capacity", "allocatable"}) {
      for (const JsonMember& amount : amounts->members()) {
        // A kubelet knows these better.
        if (!absl::StartsWith(amount.name, "hugepages-"))
          SetField(&patch, {"status", kind, amount.name}, amount.value);
      }
    }
    WriteOptions options;
    options.subresource = "status";
    if (patch.size() > 0) {
      WEFT_RETURN_IF_ERROR(
          options_.store->Patch(Nodes(), {"", options_.node}, PatchKind::kMerge, patch, options)
              .status());
    }
  }
  told_ = std::move(described);
  return absl::OkStatus();
}

Status NodeInventory::Step(const Machine& machine) {
  const absl::Duration now = options_.clock->Monotonic();
  const bool is_same =
      is_ours_ && SameJson(told_, DescribeAsNode(machine, options_.node)) && now < next_beat_;
  if (is_same) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const ObjectPtr node, options_.store->Get(Nodes(), {"", options_.node}));
  WEFT_ASSIGN_OR_RETURN(const bool may_tell, MayTell(*node));
  if (!may_tell) return absl::OkStatus();
  const Status written = Write(*node, machine);
  // Somebody else has changed the node: the next call reads it again.
  if (IsConflict(written)) return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(written);
  if (!std::exchange(is_ours_, true))
    WEFT_LOG(INFO) << "Node '" << options_.node << "' says what this machine has";
  next_beat_ = now + options_.heartbeat;
  return absl::OkStatus();
}

void NodeInventory::Leave() {
  if (!is_ours_) return;
  is_ours_ = false;
  Json patch;
  SetField(&patch, {"metadata", "annotations", kAgentAnnotation}, Json());
  const Status left =
      options_.store->Patch(Nodes(), {"", options_.node}, PatchKind::kMerge, patch, WriteOptions())
          .status();
  if (!left.ok()) WEFT_LOG(WARNING) << "The node still names us: " << left.message();
}

}  // namespace weft::platform
