// SPDX-License-Identifier: Apache-2.0
// `weft check`: what of a graph would not run.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/command.h"
#include "apps/op_libraries.h"
#include "base/files.h"
#include "base/threads.h"
#include "net/json.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/inspect/check_graph.h"
#include "weft/inspect/graph_file.h"

namespace weft::apps {
namespace {

int CannotCheck(const Status& status) {
  std::fprintf(stderr, "weft check: %s\n", std::string(status.message()).c_str());
  return 2;
}

struct CheckFlags {
  std::string path;
  bool as_json = false;
  std::vector<std::string> op_libraries;
};

int CheckFile(const CheckFlags& flags) {
  const std::string& path = flags.path;
  const bool as_json = flags.as_json;
  const StatusOr<const Catalogue*> found = CatalogueWith(flags.op_libraries);
  if (!found.ok()) return CannotCheck(found.status());
  const Catalogue& catalogue = **found;
  RealFileSystem files;
  const StatusOr<inspect::GraphFile> file = inspect::ReadGraphFile(files, path);
  if (absl::IsInvalidArgument(file.status())) {
    return CannotCheck(
        InvalidArgument(file.status().message(), ". What else it may be: weft inspect ", path));
  }
  if (!file.ok()) return CannotCheck(file.status());
  ThreadPool threads("check", 1);
  const std::unique_ptr<Device> device =
      MakeCpuDevice({.job = "localhost", .replica = 0, .task = 0}, 0, &threads);
  bool all_run = true;
  Json reports = Json::MakeArray();
  for (const tensorflow::MetaGraphDef& meta : file->graphs) {
    const inspect::CheckReport report =
        inspect::CheckGraph(meta.graph_def(), catalogue, device.get());
    all_run = all_run && report.ok();
    if (as_json) {
      reports.Append(report.AsJson());
      continue;
    }
    std::printf("%s: %s, %lld nodes of %lld ops, %lld functions\n%s%s\n", file->path.c_str(),
                file->form.c_str(), static_cast<long long>(report.num_nodes),
                static_cast<long long>(report.num_ops),
                static_cast<long long>(report.num_functions), report.Text().c_str(),
                report.ok() ? "It would run." : "It would not run yet.");
  }
  if (as_json) {
    Json json = Json::MakeObject();
    json.Set("path", file->path);
    json.Set("form", file->form);
    json.Set("runs", all_run);
    json.Set("graphs", std::move(reports));
    std::printf("%s\n", json.Dump(1).c_str());
  }
  return all_run ? 0 : 1;
}

}  // namespace

void AddCheck(CLI::App& app, Action* action) {
  CLI::App* command = app.add_subcommand("check",
                                         "Say what of a graph would not run yet: exit code 0 if "
                                         "all would, 1 if not, 2 if it cannot be read");
  auto flags = std::make_shared<CheckFlags>();  // shared with the action, which outlives this call
  command
      ->add_option(
          "file", flags->path,
          "GraphDef, MetaGraphDef or SavedModel, binary or text; its folder; a checkpoint's")
      ->required();
  command->add_flag("--json", flags->as_json, "As JSON");
  AddOpLibraryFlag(command, &flags->op_libraries);
  command->callback([flags, action] { *action = [flags] { return CheckFile(*flags); }; });
}

}  // namespace weft::apps
