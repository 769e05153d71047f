// SPDX-License-Identifier: Apache-2.0
// What others ask the executor of what runs, answered on its thread.
#include <algorithm>
#include <memory>
#include <utility>

#include <fcntl.h>

#include "absl/synchronization/notification.h"

#include "platform/object/fields.h"
#include "platform/object/own_address.h"
#include "platform/pods/pod_executor.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kLongestAnswer = absl::Seconds(10);

bool HasLabels(const Json& object, const Json& labels) {
  for (const JsonMember& label : labels.members()) {
    const Json* const found = FindField(object, {"metadata", "labels", label.name});
    if (found == nullptr || !SameJson(*found, label.value)) return false;
  }
  return true;
}

}  // namespace

Status PodExecutor::Ask(absl::AnyInvocable<void()> question) {
  const auto answered = std::make_shared<absl::Notification>();
  {
    absl::MutexLock lock(&mutex_);
    questions_.push_back([answered, question = std::move(question)]() mutable {
      question();
      answered->Notify();
    });
  }
  Wake();
  if (answered->WaitForNotificationWithTimeout(kLongestAnswer)) return absl::OkStatus();
  return Unavailable("What runs the pods is busy: try again");
}

void PodExecutor::AnswerQuestions() {
  std::vector<absl::AnyInvocable<void()>> questions;
  {
    absl::MutexLock lock(&mutex_);
    questions.swap(questions_);
  }
  for (absl::AnyInvocable<void()>& question : questions) question();
}

StatusOr<std::vector<PodExecutor::Running>> PodExecutor::ListRunning(const ObjectName* pod) {
  // Shared: the answer may come when nobody waits any more.
  const auto running = std::make_shared<std::vector<Running>>();
  const std::optional<ObjectName> name =
      pod == nullptr ? std::nullopt : std::optional<ObjectName>(*pod);
  WEFT_RETURN_IF_ERROR(
      Ask([this, running, name] { *running = FindRunning(name.has_value() ? &*name : nullptr); }));
  return std::move(*running);
}

std::vector<PodExecutor::Running> PodExecutor::FindRunning(const ObjectName* pod) const {
  std::vector<Running> found;
  for (const auto& [uid, run] : runs_) {
    if (pod != nullptr &&
        (NameOf(*run->pod()) != pod->name || NamespaceOf(*run->pod()) != pod->namespace_name))
      continue;
    for (const auto& container : run->containers()) {
      if (container->state() != ContainerRun::State::kRunning) continue;
      Running& running = found.emplace_back();
      running.pod = run->pod();
      running.container = container->name();
      running.pid = container->pid();
      if (pod == nullptr) continue;
      running.command = container->command();
      if (container->confinement() == nullptr) continue;
      running.processors = container->confinement()->processors();
      if (const int group = container->confinement()->control_group(); group >= 0)
        running.control_group = OwnedFd(::fcntl(group, F_DUPFD_CLOEXEC, 0));
    }
  }
  return found;
}

StatusOr<ContainerStreams> PodExecutor::Attach(const ObjectName& pod, const std::string& container,
                                               bool takes_input) {
  struct Answer {
    StatusOr<ContainerStreams> streams = ContainerStreams();
  };
  const auto answer = std::make_shared<Answer>();
  WEFT_RETURN_IF_ERROR(Ask([this, answer, pod, container, takes_input] {
    answer->streams = FailedPrecondition("container ", container, " does not run");
    for (const auto& [uid, run] : runs_) {
      if (NameOf(*run->pod()) != pod.name || NamespaceOf(*run->pod()) != pod.namespace_name)
        continue;
      for (const auto& each : run->containers()) {
        if (each->name() == container && each->state() == ContainerRun::State::kRunning)
          answer->streams = each->Attach(takes_input);
      }
    }
  }));
  return std::move(answer->streams);
}

bool PodExecutor::IsOwnNode(const std::string& node) const {
  if (options_.nodes.empty()) return node == options_.node_name;
  return std::any_of(options_.nodes.begin(), options_.nodes.end(),
                     [&](const Json& each) { return NameOf(each) == node; });
}

StatusOr<SocketAddress> PodExecutor::LocalPortOf(const ObjectName& name, int port) {
  WEFT_ASSIGN_OR_RETURN(const ObjectPtr pod, FindPod(name));
  if (const std::string own = OwnAddressOfPod(*pod); !own.empty()) return SocketAddress{own, port};
  const auto local = std::make_shared<int>(0);
  WEFT_RETURN_IF_ERROR(Ask([this, pod, port, local] { *local = FindLocalPort(*pod, port); }));
  return SocketAddress{"", *local};
}

int PodExecutor::FindLocalPort(const Json& pod, int port) const {
  ListOptions options;
  options.namespace_name = NamespaceOf(pod);
  const StatusOr<ObjectList> services = store_->List(Services(), options);
  if (!services.ok()) return port;
  for (const ObjectPtr& service : services->items) {
    const Json* const selector = FindField(*service, {"spec", "selector"});
    const Json* const ports = FindField(*service, {"spec", "ports"});
    if (selector == nullptr || selector->size() == 0 || ports == nullptr ||
        !HasLabels(pod, *selector))
      continue;
    for (const Json& entry : ports->items()) {
      const auto outside = static_cast<int>(IntField(entry, {"port"}));
      if (IntField(entry, {"targetPort"}, outside) != port) continue;
      const int local =
          services_.Find(absl::StrCat(NameOf(*service), ".", NamespaceOf(*service)), outside);
      if (local != 0) return local;
    }
  }
  return port;
}

}  // namespace weft::platform
