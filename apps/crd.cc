// SPDX-License-Identifier: Apache-2.0
// `weft crd`: the CustomResourceDefinitions of our kinds, for `kubectl apply -f -`.
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

#include "apps/command.h"
#include "platform/object/definition.h"
#include "platform/store/resource.h"

namespace weft::apps {
namespace {

Status PrintDefinitions(const std::string& wanted) {
  std::string out;
  std::string known;
  for (const platform::ResourceType* const type : platform::KnownResources()) {
    if (!type->is_custom || type->schema == nullptr) continue;
    absl::StrAppend(&known, known.empty() ? "" : ", ", type->plural);
    if (!wanted.empty() && platform::FindResourceByWord(wanted) != type) continue;
    absl::StrAppend(&out, out.empty() ? "" : "---\n", platform::DefinitionFile(*type));
  }
  if (out.empty())
    return NotFound("There is no definition of '", wanted, "'; there are those of ", known);
  std::fwrite(out.data(), 1, out.size(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddCrd(CLI::App& app, Action* action) {
  CLI::App* const command = app.add_subcommand(
      "crd",
      "Print the definitions of weft's kinds that a cluster needs, for `kubectl apply -f -`");
  const auto kind = std::make_shared<std::string>();
  command->add_option("kind", *kind, "tfjobs or tensorflows; both when left out");
  SetAction(command, action, [kind] { return PrintDefinitions(*kind); });
}

}  // namespace weft::apps
