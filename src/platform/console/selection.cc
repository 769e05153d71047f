// SPDX-License-Identifier: Apache-2.0
#include "platform/console/selection.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/nearest_name.h"
#include "platform/console/manifests.h"
#include "platform/object/fields.h"

namespace weft::platform {

StatusOr<const ResourceType*> TypeOfWord(const std::string& word) {
  const ResourceType* const type = FindResourceByWord(word);
  if (type != nullptr) return type;
  std::vector<std::string> names;
  for (const ResourceType* const known : KnownResources()) names.push_back(known->singular);
  const std::string nearest = NearestName(word, names);
  return InvalidArgument("There is no type of objects named '", word, "'",
                         nearest.empty() ? "" : absl::StrCat(". Did you mean '", nearest, "'?"));
}

StatusOr<std::vector<Group>> GroupsOf(const std::vector<std::string>& words) {
  std::vector<Group> groups;
  if (words.empty())
    return InvalidArgument("Say which objects: a type and a name, as in `tfjob digits`");
  if (absl::StrContains(words[0], '/')) {
    for (const std::string& word : words) {
      const std::vector<std::string> parts = absl::StrSplit(word, absl::MaxSplits('/', 1));
      if (parts.size() != 2)
        return InvalidArgument("Either all words are like type/name, or none: '", word, "'");
      WEFT_ASSIGN_OR_RETURN(const ResourceType* const type, TypeOfWord(parts[0]));
      groups.push_back({type, {parts[1]}});
    }
    return groups;
  }
  for (const absl::string_view word : absl::StrSplit(words[0], ',')) {
    if (word == "all") {
      for (const ResourceType* const type : KnownResources()) {
        if (!type->categories.empty()) groups.push_back({type, {}});
      }
      continue;
    }
    WEFT_ASSIGN_OR_RETURN(const ResourceType* const type, TypeOfWord(std::string(word)));
    groups.push_back({type, {words.begin() + 1, words.end()}});
  }
  return groups;
}

std::string SpaceOf(const Console& console, const ResourceType& type) {
  return type.is_namespaced ? console.namespace_name : "";
}

std::vector<ObjectPtr> Fetch(const Console& console, const Group& group, const Selection& selection,
                             Failures* failures) {
  std::vector<ObjectPtr> objects;
  for (const std::string& name : group.names) {
    StatusOr<ObjectPtr> object =
        console.store->Get(*group.type, {SpaceOf(console, *group.type), name});
    if (object.ok()) objects.push_back(*std::move(object));
    if (!failures->Add(object.status())) break;
  }
  if (!group.names.empty()) return objects;
  ListOptions options;
  if (!selection.all_namespaces) options.namespace_name = SpaceOf(console, *group.type);
  options.label_selector = selection.label_selector;
  StatusOr<ObjectList> list = console.store->List(*group.type, options);
  failures->Add(list.status());
  return list.ok() ? std::move(list->items) : objects;
}

StatusOr<std::vector<Target>> TargetsOf(const Console& console, const Selection& selection) {
  std::vector<Target> targets;
  for (const std::string& path : selection.files) {
    WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> files, ManifestFiles(path));
    for (const std::string& file : files) {
      WEFT_ASSIGN_OR_RETURN(const std::vector<Manifest> manifests,
                            ReadManifests(file, console.namespace_name));
      for (const Manifest& manifest : manifests) targets.push_back({manifest.type, manifest.name});
    }
  }
  if (!selection.files.empty()) return targets;
  WEFT_ASSIGN_OR_RETURN(const std::vector<Group> groups, GroupsOf(selection.words));
  for (const Group& group : groups) {
    for (const std::string& name : group.names)
      targets.push_back({group.type, {SpaceOf(console, *group.type), name}});
    if (!group.names.empty()) continue;
    if (!selection.is_all && selection.label_selector.empty()) {
      return InvalidArgument("Say which ", group.type->plural, ": names, -l labels, or --all");
    }
    Failures failures;
    const std::vector<ObjectPtr> objects = Fetch(console, group, selection, &failures);
    WEFT_RETURN_IF_ERROR(failures.ToStatus());
    for (const ObjectPtr& object : objects)
      targets.push_back({group.type, {NamespaceOf(*object), NameOf(*object)}});
  }
  return targets;
}

}  // namespace weft::platform
