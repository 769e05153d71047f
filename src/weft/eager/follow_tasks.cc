// SPDX-License-Identifier: Apache-2.0
// Sessions over the tasks that a program has, and what becomes of them when it has others.
#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"

#include "weft/eager/eager_context.h"
#include "weft/graph/function.h"

namespace weft::eager {
namespace {

bool IsAt(const cluster::TaskDirectory& program, const cluster::TaskId& task,
          const std::string& address) {
  const StatusOr<std::string> now = program.cluster().AddressOf(task);
  return now.ok() && *now == address;
}

}  // namespace

StatusOr<EagerContext::Session*> EagerContext::SessionOver(const std::set<std::string>& devices,
                                                           Cancellation* caller) {
  const DeviceName& own = environment_.worker->options().task;
  const cluster::TaskId here{own.job.value_or(""), own.task.value_or(0)};
  const std::shared_ptr<cluster::TaskDirectory> program = environment_.tasks->TasksOf(id_);
  Addresses others;
  for (const std::string& device : devices) {
    const StatusOr<DeviceName> name = DeviceName::Parse(device);
    if (!name.ok() || !name->job || !name->task || program == nullptr) continue;
    const cluster::TaskId task{*name->job, *name->task};
    const StatusOr<std::string> address = program->cluster().AddressOf(task);
    // What asks for a task that the program has not is refused when it is placed.
    if (task != here && address.ok()) others[task] = *address;
  }
  std::set<std::string> tasks = {here.ToString()};
  for (const auto& [task, address] : others) tasks.insert(task.ToString());
  Session& session = sessions_[absl::StrJoin(tasks, ",")];
  if (session.session != nullptr) return &session;
  tensorflow::ConfigProto config;
  config.set_allow_soft_placement(true);
  for (const std::string& task : tasks) config.add_device_filters(task);
  WEFT_ASSIGN_OR_RETURN(
      session.handle,
      environment_.master->CreateSession({}, config, caller, others.empty() ? nullptr : program));
  WEFT_ASSIGN_OR_RETURN(session.session, environment_.master->Find(session.handle));
  session.addresses = std::move(others);
  return &session;
}

std::set<std::string> EagerContext::DevicesOf(const Call& call, const NodeDef& node) const {
  std::set<std::string> devices(call.places.begin(), call.places.end());
  std::set<std::string> seen;
  std::vector<std::string> open;
  const auto add = [&](const std::string& op, const AttrMap& attrs) {
    const StatusOr<std::vector<FunctionRef>> called = FunctionsOf(library_, op, attrs);
    if (!called.ok()) return;
    for (const FunctionRef& function : *called) {
      if (seen.insert(function.name).second) open.push_back(function.name);
    }
  };
  add(node.op, node.attrs);
  while (!open.empty()) {
    const FunctionDef* const function = library_.FindFunction(open.back());
    open.pop_back();
    if (function == nullptr) continue;
    for (const NodeDef& inner : function->nodes) {
      devices.insert(inner.device);
      add(inner.op, inner.attrs);
    }
  }
  return devices;
}

Status EagerContext::WhyGone(const Compiled& compiled, const Status& error) const {
  // How calls end that were cut off; what an op says stands.
  if (!absl::IsCancelled(error) && !absl::IsUnavailable(error) && !absl::IsAborted(error) &&
      !absl::IsFailedPrecondition(error))
    return absl::OkStatus();
  const std::shared_ptr<cluster::TaskDirectory> program = environment_.tasks->TasksOf(id_);
  if (program == nullptr) return absl::OkStatus();
  for (const auto& [task, address] : compiled.addresses) {
    if (IsAt(*program, task, address)) continue;
    const StatusOr<std::string> now = program->cluster().AddressOf(task);
    return Aborted("The call ran over ", task.DeviceTask(), " at ", address, ", which is ",
                   now.ok() ? absl::StrCat("at ", *now) : "no task of the program's",
                   " since the program changed its cluster");
  }
  return absl::OkStatus();
}

void EagerContext::FollowTasks() {
  const std::shared_ptr<cluster::TaskDirectory> program = environment_.tasks->TasksOf(id_);
  if (program == nullptr) return;  // closed meanwhile
  const auto is_there = [&](const auto& task) { return IsAt(*program, task.first, task.second); };
  std::vector<std::string> closed;
  {
    absl::MutexLock lock(&mutex_);
    absl::erase_if(compiled_, [&](const auto& entry) {
      return !absl::c_all_of(entry.second->addresses, is_there);
    });
    std::erase_if(sessions_, [&](const auto& entry) {
      if (absl::c_all_of(entry.second.addresses, is_there)) return false;
      closed.push_back(entry.second.handle);
      return true;
    });
  }
  for (const std::string& handle : closed)
    environment_.master->CloseSession(handle, [] {}).IgnoreError();
}

}  // namespace weft::eager
