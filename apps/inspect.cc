// SPDX-License-Identifier: Apache-2.0
// `weft inspect`: what is in a file or a running server.
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"

#include "apps/command.h"
#include "apps/op_libraries.h"
#include "base/files.h"
#include "net/json.h"
#include "net/socket_address.h"
#include "weft/client/cluster_client.h"
#include "weft/graph/op_list.h"
#include "weft/inspect/describe.h"

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

int CannotInspect(const Status& status) {
  std::fprintf(stderr, "weft inspect: %s\n", std::string(status.message()).c_str());
  return 1;
}

StatusOr<Json> OpsJson(const std::vector<std::string>& op_libraries) {
  WEFT_ASSIGN_OR_RETURN(const Catalogue* found, CatalogueWith(op_libraries));
  const Catalogue& catalogue = *found;
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

int PrintOps(const std::vector<std::string>& op_libraries) {
  const StatusOr<Json> ops = OpsJson(op_libraries);
  if (!ops.ok()) return CannotInspect(ops.status());
  std::printf("%s\n", ops->Dump(1).c_str());
  return 0;
}

int PrintDevices(const std::string& address, bool as_json) {
  const StatusOr<std::vector<DeviceAttributes>> devices =
      client::ListClusterDevices(address, absl::Seconds(10));
  if (!devices.ok()) return CannotInspect(devices.status());
  Json list = Json::MakeArray();
  for (const DeviceAttributes& device : *devices) {
    Json item = Json::MakeObject();
    item.Set("name", device.name);
    item.Set("type", device.type);
    item.Set("memory_bytes", device.memory_limit_bytes);
    item.Set("incarnation", absl::StrCat(absl::Hex(device.incarnation, absl::kZeroPad16)));
    list.Append(std::move(item));
    if (as_json) continue;
    std::printf("%-48s %-4s %6lld MB  incarnation %016llx  %s\n", device.name.c_str(),
                device.type.c_str(), static_cast<long long>(device.memory_limit_bytes >> 20),
                static_cast<unsigned long long>(device.incarnation), device.description.c_str());
  }
  if (as_json) std::printf("%s\n", list.Dump(1).c_str());
  return 0;
}

int PrintFile(const std::string& path, const inspect::DescribeOptions& options, bool as_json) {
  RealFileSystem files;
  const StatusOr<inspect::Description> found = inspect::DescribeFile(files, path, options);
  if (absl::IsNotFound(found.status()) && ParseSocketAddress(path).ok()) {
    return CannotInspect(NotFound(found.status().message(), "; a server is named grpc://", path));
  }
  if (!found.ok()) return CannotInspect(found.status());
  std::printf("%s", as_json ? (found->json.Dump(1) + "\n").c_str() : found->text.c_str());
  return found->status.ok() ? 0 : CannotInspect(found->status);
}

struct InspectFlags {
  std::string target;
  inspect::DescribeOptions describe;
  bool ops = false;
  std::vector<std::string> op_libraries;
  bool as_json = false;
};

int Inspect(const InspectFlags& flags, const CLI::App& command) {
  constexpr absl::string_view kScheme = "grpc://";
  if (flags.ops) return PrintOps(flags.op_libraries);
  if (absl::StartsWith(flags.target, kScheme)) {
    return PrintDevices(flags.target.substr(kScheme.size()), flags.as_json);
  }
  if (!flags.target.empty()) return PrintFile(flags.target, flags.describe, flags.as_json);
  std::printf("%s", command.help().c_str());
  return 2;
}

}  // namespace

void AddInspect(CLI::App& app, Action* action) {
  CLI::App* command = app.add_subcommand("inspect", "Show what is in a file or a running server");
  auto flags =
      std::make_shared<InspectFlags>();  // shared with the action, which outlives this call
  command->add_option(
      "target", flags->target,
      "A graph, SavedModel, checkpoint, event file or TFRecord; or grpc://host:port of a running "
      "server, for the devices of its cluster");
  command->add_option("--tensor", flags->describe.tensor,
                      "Print the values of this tensor of a checkpoint, or constant");
  command->add_option("--max_values", flags->describe.max_values, "At most so many")
      ->capture_default_str();
  command->add_flag("--json", flags->as_json, "As JSON");
  command->add_flag("--ops", flags->ops, "Every op with its signature and kernels, as JSON");
  AddOpLibraryFlag(command, &flags->op_libraries);
  command->callback([flags, action, command] {
    *action = [flags, command] { return Inspect(*flags, *command); };
  });
}

}  // namespace weft::apps
