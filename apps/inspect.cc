// SPDX-License-Identifier: Apache-2.0
// `weft inspect`: what is in a file or a running server.
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "apps/command.h"
#include "net/json.h"
#include "weft/cluster/cluster_client.h"
#include "weft/graph/op_list.h"
#include "weft/ops/catalogue.h"

namespace weft::apps {
namespace {

// The types that CPU kernels take, by type attribute; an attribute left out takes all.
Json KernelTypesJson(const std::vector<KernelDef>* kernels) {
  std::map<std::string, std::set<std::string>> types;
  if (kernels != nullptr) {
    for (const KernelDef& kernel : *kernels) {
      for (const auto& [attr, dtypes] : kernel.types) {
        for (DType dtype : dtypes) types[attr].insert(std::string(DTypeName(dtype)));
      }
    }
  }
  Json all = Json::MakeObject();
  for (const auto& [attr, names] : types) {
    Json list = Json::MakeArray();
    for (const std::string& name : names) list.Append(name);
    all.Set(attr, std::move(list));
  }
  return all;
}

int Fail(const Status& status) {
  std::fprintf(stderr, "weft inspect: %s\n", std::string(status.message()).c_str());
  return 1;
}

StatusOr<Json> OpsJson() {
  const Catalogue& catalogue = StandardCatalogue();
  WEFT_RETURN_IF_ERROR(catalogue.status());
  WEFT_ASSIGN_OR_RETURN(const std::string text, OpListJson(catalogue.ops()));
  WEFT_ASSIGN_OR_RETURN(const Json ops, Json::Parse(text, {.max_bytes = text.size()}));
  Json list = Json::MakeArray();
  for (Json op : ops.items()) {
    WEFT_ASSIGN_OR_RETURN(const Json* name, op.At("name"));
    WEFT_ASSIGN_OR_RETURN(const std::string op_name, name->AsString());
    op.Set("types", KernelTypesJson(catalogue.kernels().KernelsOf(op_name)));
    op.Set("has_kernel", catalogue.kernels().HasKernel(op_name));
    list.Append(std::move(op));
  }
  return list;
}

int PrintOps() {
  const StatusOr<Json> ops = OpsJson();
  if (!ops.ok()) return Fail(ops.status());
  std::printf("%s\n", ops->Dump(1).c_str());
  return 0;
}

int PrintDevices(const std::string& address) {
  const StatusOr<std::vector<DeviceAttributes>> devices =
      cluster::ListClusterDevices(address, absl::Seconds(10));
  if (!devices.ok()) return Fail(devices.status());
  for (const DeviceAttributes& device : *devices) {
    std::printf("%-48s %-4s %6lld MB  incarnation %016llx  %s\n", device.name.c_str(),
                device.type.c_str(), static_cast<long long>(device.memory_limit_bytes >> 20),
                static_cast<unsigned long long>(device.incarnation), device.description.c_str());
  }
  return 0;
}

}  // namespace

void AddInspect(CLI::App& app, Action* action) {
  CLI::App* command = app.add_subcommand("inspect", "Show what is in a file or a running server");
  auto ops = std::make_shared<bool>(false);  // shared with the action, which outlives this call
  command->add_flag("--ops", *ops, "Every op with its signature and kernels, as JSON");
  command->callback([ops, action, command] {
    if (*ops) *action = PrintOps;
    if (*ops || !command->get_subcommands().empty()) return;
    *action = [command] {
      std::printf("%s", command->help().c_str());
      return 2;
    };
  });
  CLI::App* devices = command->add_subcommand("devices", "The devices of a running cluster");
  auto address = std::make_shared<std::string>();
  devices->add_option("address", *address, "host:port of one of its tasks")->required();
  devices->callback([address, action] { *action = [address] { return PrintDevices(*address); }; });
}

}  // namespace weft::apps
