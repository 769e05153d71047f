// SPDX-License-Identifier: Apache-2.0
// `weft render`: the plain objects that jobs and model servers become, for clusters without an
// operator.
#include "platform/jobs/render.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "apps/command.h"
#include "base/files.h"
#include "net/yaml.h"
#include "platform/console/manifests.h"
#include "platform/model_servers/server_objects.h"
#include "platform/object/tfjob.h"

namespace weft::apps {
namespace {

Status Render(const std::string& file, const std::string& namespace_name,
              platform::RenderForm form) {
  WEFT_ASSIGN_OR_RETURN(const std::string text, platform::ReadManifestText(file));
  WEFT_ASSIGN_OR_RETURN(const std::vector<Json> written, ParseYamlOrJson(text, file));
  const std::vector<Json> documents = platform::UnrollLists(written);
  std::string out;
  for (const Json& document : documents) {
    // What is no job goes on as it is.
    std::vector<Json> objects = {document};
    const Json* const kind = document.Find("kind");
    if (kind != nullptr && *kind == Json("ModelServer")) {
      WEFT_ASSIGN_OR_RETURN(objects, platform::RenderModelServer(document, file, namespace_name));
    } else if (documents.size() == 1 || (kind != nullptr && platform::IsJobKind(*kind))) {
      WEFT_ASSIGN_OR_RETURN(objects, platform::RenderJob(document, file, namespace_name, form));
    }
    for (const Json& object : objects)
      absl::StrAppend(&out, out.empty() ? "" : "---\n", DumpYaml(object));
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddRender(CLI::App& app, Action* action) {
  CLI::App* const command = app.add_subcommand(
      "render", "Print the objects that a job or a model server becomes, for `kubectl apply -f -`");
  const auto file = std::make_shared<std::string>();
  const auto space = std::make_shared<std::string>("default");
  command
      ->add_option("file", *file,
                   "The TFJob, Tensorflow or ModelServer, in YAML or JSON; - for stdin")
      ->required();
  command->add_option("-n,--namespace", *space, "Namespace, when the file names none")
      ->capture_default_str();
  const auto form = std::make_shared<std::string>("pods");
  command
      ->add_option("--form", *form,
                   "pods: as the operator makes them; seeds: a Service and a ReplicaSet for each "
                   "task, told by flags")
      ->check(CLI::IsMember({"pods", "seeds"}))
      ->capture_default_str();
  SetAction(command, action, [file, space, form] {
    return Render(*file, *space,
                  *form == "seeds" ? platform::RenderForm::kSeeds : platform::RenderForm::kPods);
  });
}

}  // namespace weft::apps
