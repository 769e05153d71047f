// SPDX-License-Identifier: Apache-2.0
#include "platform/console/commands.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"

#include "base/threads.h"
#include "platform/console/manifests.h"
#include "platform/console/printing.h"
#include "platform/console/selection.h"
#include "platform/console/wait_condition.h"
#include "platform/object/fields.h"
#include "platform/object/pod_view.h"
#include "platform/reconcile/informer.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr char kJobLabel[] = "training.kubeflow.org/job-name";

// Calls `is_done` with the object (null when it is gone) each time it changes, until it says so.
Status AwaitObject(const Console& console, const Target& target, absl::Duration timeout,
                   const std::function<bool(const Json*)>& is_done, const std::string& what) {
  struct Seen {
    absl::Mutex mutex;
    bool is_done = false;
    Status error;
  };
  const auto seen = std::make_shared<Seen>();
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    seen->error = absl::OkStatus();
    WatchOptions options;
    options.namespace_name = target.name.namespace_name;
    options.field_selector = absl::StrCat("metadata.name=", target.name.name);
    options.marks_initial_end = true;
    const auto is_there = std::make_shared<bool>(false);
    StatusOr<std::unique_ptr<Watch>> watch = console.store->StartWatch(
        *target.type, options, [seen, is_there, &is_done](const WatchEvent& event) {
          absl::MutexLock lock(&seen->mutex);
          if (event.kind == WatchEvent::Kind::kError) seen->error = event.error;
          if (event.kind == WatchEvent::Kind::kAdded || event.kind == WatchEvent::Kind::kModified) {
            *is_there = true;
            seen->is_done = seen->is_done || is_done(event.object.get());
          }
          const bool is_missing = event.kind == WatchEvent::Kind::kBookmark && !*is_there;
          if (event.kind == WatchEvent::Kind::kDeleted || is_missing) {
            *is_there = false;
            seen->is_done = seen->is_done || is_done(nullptr);
          }
        });
    WEFT_RETURN_IF_ERROR(watch.status());
    {
      absl::MutexLock lock(&seen->mutex);
      const auto has_news = [&] { return seen->is_done || !seen->error.ok(); };
      seen->mutex.AwaitWithDeadline(absl::Condition(&has_news), deadline);
      if (seen->is_done) return absl::OkStatus();
    }
    if (absl::Now() >= deadline) {
      return DeadlineExceeded("timed out waiting for ", what, " of ",
                              DisplayName(*target.type, target.name.name));
    }
    watch->reset();
    absl::SleepFor(absl::Milliseconds(200));
  }
}

}  // namespace

Status ApplyFiles(const Console& console, const std::vector<std::string>& paths, bool is_dry_run) {
  Failures failures;
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    const StatusOr<std::vector<std::string>> found = ManifestFiles(path);
    failures.Add(found.status());
    if (found.ok()) files.insert(files.end(), found->begin(), found->end());
  }
  for (const std::string& file : files) {
    StatusOr<std::vector<Manifest>> manifests = ReadManifests(file, console.namespace_name);
    if (!failures.Add(manifests.status())) break;
    if (!manifests.ok()) continue;
    for (Manifest& manifest : *manifests) {
      const StatusOr<ApplyOutcome> outcome = ApplyManifest(console.store, &manifest, is_dry_run);
      if (!outcome.ok()) {
        // What was found in the file names it, with the line.
        const bool is_named = absl::StartsWith(outcome.status().message(), file);
        const bool goes_on =
            failures.Add(is_named ? outcome.status() : Annotate(outcome.status(), file));
        if (!goes_on) return failures.ToStatus();
        continue;
      }
      const char* const word = *outcome == ApplyOutcome::kCreated      ? " created"
                               : *outcome == ApplyOutcome::kConfigured ? " configured"
                                                                       : " unchanged";
      console.print(absl::StrCat(DisplayName(*manifest.type, manifest.name.name), word,
                                 is_dry_run ? " (server dry run)" : "", "\n"));
    }
  }
  return failures.ToStatus();
}

// What changes, until it is cancelled; whatever happens to the connection. `shown` are the
// revisions that were printed, by uid.
Status WatchObjects(const Console& console, const Selection& selection, const GetOptions& options,
                    const Group& group, std::map<std::string, std::string> shown) {
  Informer::Options informer_options;
  if (!selection.all_namespaces) informer_options.namespace_name = SpaceOf(console, *group.type);
  informer_options.label_selector = selection.label_selector;
  Informer informer(console.store, *group.type, informer_options, console.clock);
  informer.AddHandler([&](const ObjectPtr& previous, const ObjectPtr& object) {
    const Json& changed = object == nullptr ? *previous : *object;
    if (!group.names.empty() && absl::c_find(group.names, NameOf(changed)) == group.names.end())
      return;
    std::string& revision = shown[UidOf(changed)];
    if (object != nullptr && revision == RevisionOf(changed)) return;
    revision = RevisionOf(changed);
    console.print(PrintTable(*group.type, {object == nullptr ? previous : object},
                             console.clock->Now(), options.form == "wide", selection.all_namespaces,
                             /*with_head=*/false));
  });
  while (!options.cancellation->IsCancelled()) {
    informer.Maintain();
    absl::SleepFor(absl::Milliseconds(50));
  }
  return absl::IsCancelled(options.cancellation->status()) ? absl::OkStatus()
                                                           : options.cancellation->status();
}

Status GetObjects(const Console& console, const Selection& selection, const GetOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<Group> groups, GroupsOf(selection.words));
  const bool is_table = options.form.empty() || options.form == "wide";
  bool has_printed = false;
  Failures failures;
  std::map<std::string, std::string> shown;
  for (const Group& group : groups) {
    const std::vector<ObjectPtr> objects = Fetch(console, group, selection, &failures);
    for (const ObjectPtr& object : objects) shown[UidOf(*object)] = RevisionOf(*object);
    if (objects.empty() && (is_table || !failures.empty())) continue;
    if (is_table) {
      console.print(absl::StrCat(
          has_printed ? "\n" : "",
          PrintTable(*group.type, objects, console.clock->Now(), options.form == "wide",
                     selection.all_namespaces && group.type->is_namespaced)));
    } else {
      WEFT_ASSIGN_OR_RETURN(const std::string text, PrintObjects(options.form, *group.type, objects,
                                                                 group.names.size() == 1));
      console.print(text);
    }
    has_printed = true;
  }
  if (!failures.empty()) return failures.ToStatus();
  if (!has_printed && is_table && !options.watches) {
    console.print(selection.all_namespaces ? "No resources found\n"
                                           : absl::StrCat("No resources found in ",
                                                          console.namespace_name, " namespace.\n"));
  }
  if (!options.watches || groups.empty()) return absl::OkStatus();
  return WatchObjects(console, selection, options, groups[0], std::move(shown));
}

Status DescribeObjects(const Console& console, const Selection& selection) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<Group> groups, GroupsOf(selection.words));
  Failures failures;
  for (const Group& group : groups) {
    for (const ObjectPtr& object : Fetch(console, group, selection, &failures)) {
      ListOptions options;
      options.namespace_name = NamespaceOf(*object).empty() ? "default" : NamespaceOf(*object);
      options.field_selector = absl::StrCat("involvedObject.uid=", UidOf(*object));
      WEFT_ASSIGN_OR_RETURN(ObjectList events, console.store->List(Events(), options));
      std::stable_sort(
          events.items.begin(), events.items.end(), [](const ObjectPtr& a, const ObjectPtr& b) {
            return StringField(*a, {"lastTimestamp"}) < StringField(*b, {"lastTimestamp"});
          });
      console.print(DescribeObject(*object, events.items, console.clock->Now()));
    }
  }
  return failures.ToStatus();
}

Status DeleteObjects(const Console& console, const Selection& selection,
                     const DeleteRequest& request) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<Target> targets, TargetsOf(console, selection));
  std::vector<std::pair<Target, std::string>> waiting;
  Failures failures;
  for (const Target& target : targets) {
    DeleteOptions options;
    options.propagation = request.propagation;
    options.grace_seconds = request.grace_seconds;
    const StatusOr<ObjectPtr> last = console.store->Delete(*target.type, target.name, options);
    if (!last.ok()) {
      if (request.ignores_missing && IsObjectNotFound(last.status())) continue;
      if (!failures.Add(last.status())) return failures.ToStatus();
      continue;
    }
    console.print(absl::StrCat(target.type->singular, target.type->group.empty() ? "" : ".",
                               target.type->group, " \"", target.name.name, "\" deleted\n"));
    // The object itself, or what a server says of it.
    std::string uid = UidOf(**last);
    if (uid.empty()) uid = StringField(**last, {"details", "uid"});
    waiting.emplace_back(target, uid);
  }
  if (!request.waits) return failures.ToStatus();
  for (const auto& [target, uid] : waiting) {
    const std::string gone = uid;
    const Status status = AwaitObject(
        console, target, request.timeout,
        [gone](const Json* object) { return object == nullptr || UidOf(*object) != gone; },
        "the deletion");
    failures.Add(status);
    if (!status.ok()) break;
  }
  return failures.ToStatus();
}

Status WaitForObjects(const Console& console, const Selection& selection, const std::string& what,
                      absl::Duration timeout) {
  WEFT_ASSIGN_OR_RETURN(const WaitCondition condition, WaitCondition::Parse(what));
  WEFT_ASSIGN_OR_RETURN(const std::vector<Target> targets, TargetsOf(console, selection));
  if (targets.empty()) return NotFound("no matching resources found");
  const absl::Time deadline = absl::Now() + timeout;
  for (const Target& target : targets) {
    const auto is_done = [&](const Json* object) { return condition.IsMet(object); };
    WEFT_RETURN_IF_ERROR(AwaitObject(console, target, deadline - absl::Now(), is_done,
                                     absl::StrCat("'", what, "'")));
    console.print(absl::StrCat(DisplayName(*target.type, target.name.name), " condition met\n"));
  }
  return absl::OkStatus();
}

// The container whose logs are meant where none is named, as kubectl chooses it; of a job's pod the
// one that a job is about.
std::string DefaultContainer(const Json& pod) {
  const PodView view(pod);
  const std::string said = view.annotation("kubectl.kubernetes.io/default-container");
  if (!said.empty()) return said;
  if (view.containers().size() < 2) return "";
  if (view.FindContainer("tensorflow") != nullptr) return "tensorflow";
  return ContainerView(view.containers().front()).name();
}

Status ShowLogs(const Console& console, KubernetesStore* server, const std::string& word,
                const LogOptions& options, Cancellation* cancellation) {
  const std::vector<std::string> parts = absl::StrSplit(word, absl::MaxSplits('/', 1));
  const ResourceType* type = &Pods();
  if (parts.size() == 2) {
    WEFT_ASSIGN_OR_RETURN(type, TypeOfWord(parts[0]));
  }
  const std::string& name = parts.back();
  const auto print = [&](absl::string_view piece) {
    console.print(piece);
    return absl::OkStatus();
  };
  if (type == &Pods()) {
    LogOptions chosen = options;
    if (chosen.container.empty()) {
      WEFT_ASSIGN_OR_RETURN(const ObjectPtr pod,
                            console.store->Get(Pods(), {console.namespace_name, name}));
      chosen.container = DefaultContainer(*pod);
    }
    return server->StreamLog({console.namespace_name, name}, chosen, print, cancellation);
  }
  if (!IsJob(*type))
    return InvalidArgument("Logs are of pods and jobs (tfjobs, tensorflows), not of ",
                           type->plural);
  ListOptions list_options;
  list_options.namespace_name = console.namespace_name;
  list_options.label_selector = absl::StrCat(kJobLabel, "=", name);
  WEFT_ASSIGN_OR_RETURN(const ObjectList pods, console.store->List(Pods(), list_options));
  if (pods.items.empty()) return NotFound("There are no pods of the job '", name, "'");
  absl::Mutex mutex;
  Status first;
  {
    std::vector<std::unique_ptr<Thread>> readers;
    for (const ObjectPtr& pod : pods.items) {
      readers.push_back(std::make_unique<Thread>("logs", [&, pod] {
        std::string line;
        const auto print_lines = [&](absl::string_view piece) {
          line.append(piece.data(), piece.size());
          const size_t end = line.rfind('\n');
          if (end == std::string::npos) return absl::OkStatus();
          std::string text;
          for (const absl::string_view whole : absl::StrSplit(line.substr(0, end), '\n')) {
            absl::StrAppend(&text, "[", NameOf(*pod), "] ", whole, "\n");
          }
          line.erase(0, end + 1);
          absl::MutexLock lock(&mutex);
          console.print(text);
          return absl::OkStatus();
        };
        LogOptions chosen = options;
        if (chosen.container.empty()) chosen.container = DefaultContainer(*pod);
        const Status status =
            server->StreamLog({NamespaceOf(*pod), NameOf(*pod)}, chosen, print_lines, cancellation);
        absl::MutexLock lock(&mutex);
        if (first.ok()) first = status;
      }));
    }
  }
  absl::MutexLock lock(&mutex);
  return first;
}

}  // namespace weft::platform
