// SPDX-License-Identifier: Apache-2.0
#include "platform/store/embedded/embedded_store.h"

#include <algorithm>
#include <utility>

#include <sys/random.h>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

#include "platform/object/definition.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/object/selector.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/custom_resources.h"
#include "platform/store/embedded/rules.h"
#include "platform/store/server_side_apply.h"

namespace weft::platform {
namespace {

constexpr size_t kMostObjectBytes = 1536 << 10;  // as much as etcd takes
constexpr int kNameTries = 8;

uint64_t SystemRandom() {
  uint64_t value = 0;
  while (::getrandom(&value, sizeof(value), 0) != sizeof(value)) {
  }
  return value;
}

ObjectKey KeyOf(const ResourceType& type, const ObjectName& name) {
  return {type.Id(), type.is_namespaced ? name.namespace_name : "", name.name};
}

StatusOr<Scope> MakeScope(const ResourceType& type, const std::string& namespace_name,
                          const std::string& labels, const std::string& fields) {
  Scope scope;
  scope.resource = type.Id();
  scope.namespace_name = type.is_namespaced ? namespace_name : "";
  WEFT_ASSIGN_OR_RETURN(scope.labels, Selector::ParseLabels(labels));
  WEFT_ASSIGN_OR_RETURN(scope.fields, Selector::ParseFields(fields));
  WEFT_RETURN_IF_ERROR(CheckSelectableFields(type, scope.fields));
  return scope;
}

StatusOr<int64_t> ParseRevision(const std::string& text) {
  int64_t revision = 0;
  if (text.empty()) return revision;
  if (!absl::SimpleAtoi(text, &revision) || revision < 0) {
    return ApiError(
        400, "BadRequest",
        absl::StrCat("Invalid value: \"", text, "\": a resourceVersion is a whole number"));
  }
  return revision;
}

// Where a list goes on: the revision of its first page, and the last key that it gave.
std::string EncodeContinue(int64_t revision, const ObjectKey& last) {
  std::string token;
  absl::WebSafeBase64Escape(absl::StrCat(revision, "\n", last.namespace_name, "\n", last.name),
                            &token);
  return token;
}

struct ContinueToken {
  int64_t revision = 0;
  ObjectKey last;
};

StatusOr<ContinueToken> DecodeContinue(const std::string& resource, const std::string& token) {
  std::string text;
  ContinueToken decoded;
  if (absl::WebSafeBase64Unescape(token, &text)) {
    const std::vector<std::string> parts = absl::StrSplit(text, '\n');
    if (parts.size() == 3 && absl::SimpleAtoi(parts[0], &decoded.revision)) {
      decoded.last = {resource, parts[1], parts[2]};
      return decoded;
    }
  }
  return ApiError(400, "BadRequest",
                  "continue key is not valid: it does not come from a list of this server");
}

// No less than its text takes, without writing it.
size_t MostBytes(const Json& value) {
  constexpr size_t kOfNumber = 32;
  constexpr size_t kOfEscape = 6;  // \u0000
  constexpr size_t kOfMember = 4;  // quotes, colon, comma
  if (value.is_string()) return kOfMember + kOfEscape * value.AsString().value_or("").size();
  size_t bytes = kOfNumber;
  for (const Json& item : value.items()) bytes += 1 + MostBytes(item);
  for (const JsonMember& member : value.members()) {
    bytes += kOfMember + kOfEscape * member.name.size() + MostBytes(member.value);
  }
  return bytes;
}

Status CheckSize(const ResourceType& type, const Json& object) {
  if (HasTooMany(object)) {
    return ApiError(
        413, "RequestEntityTooLarge",
        absl::StrCat(type.Id(), " \"", NameOf(object), "\" has a mapping with more than ",
                     kMostMembers, " fields, or a list with more than ", kMostItems,
                     " items: spread them over several objects"));
  }
  if (MostBytes(object) <= kMostObjectBytes) return absl::OkStatus();
  const size_t bytes = object.Dump().size();
  if (bytes <= kMostObjectBytes) return absl::OkStatus();
  return ApiError(413, "RequestEntityTooLarge",
                  absl::StrCat(type.Id(), " \"", NameOf(object), "\" is too large: ", bytes,
                               " bytes, at most ", kMostObjectBytes, " are kept"));
}

FieldManager ManagerOf(const ResourceType& type, const WriteOptions& options, absl::Time now) {
  return {options.field_manager.empty() ? "unknown" : options.field_manager, type.ApiVersion(),
          options.subresource, now};
}

// As a cluster keeps them: what is empty is not there.
void DropEmptyMetadata(Json* metadata) {
  for (const char* name : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    const Json* const held = metadata->Find(name);
    const bool is_empty =
        held != nullptr &&
        (held->is_null() || ((held->is_object() || held->is_array()) && held->size() == 0));
    if (is_empty) metadata->Erase(name);
  }
}

// What is not metadata or status.
bool SameDesire(const Json& a, const Json& b) {
  const auto is_desire = [](const JsonMember& member) {
    return member.name != "metadata" && member.name != "status" && member.name != "apiVersion";
  };
  const auto contains = [&](const Json& whole, const Json& part) {
    return std::all_of(part.members().begin(), part.members().end(), [&](const JsonMember& member) {
      if (!is_desire(member)) return true;
      const Json* const other = whole.Find(member.name);
      return other != nullptr && SameJson(*other, member.value);
    });
  };
  return contains(a, b) && contains(b, a);
}

}  // namespace

// Borrows the store, which must outlive it.
class EmbeddedStore::TableWatch : public Watch {
 public:
  TableWatch(EmbeddedStore* store, ObjectTable::WatcherId id) : store_(store), id_(id) {}
  ~TableWatch() override {
    absl::MutexLock lock(&store_->mutex_);
    store_->table_.RemoveWatcher(id_);
  }

 private:
  EmbeddedStore* const store_;
  const ObjectTable::WatcherId id_;
};

EmbeddedStore::EmbeddedStore(Options options)
    : options_(std::move(options)), table_(options_.history_window, options_.ready_objects) {}

EmbeddedStore::~EmbeddedStore() = default;

StatusOr<std::unique_ptr<EmbeddedStore>> EmbeddedStore::Open(Options options) {
  if (options.random == nullptr) options.random = SystemRandom;
  std::unique_ptr<EmbeddedStore> store(new EmbeddedStore(std::move(options)));
  if (store->options_.journal != nullptr) {
    absl::MutexLock lock(&store->mutex_);
    ObjectTable* const table = &store->table_;
    WEFT_ASSIGN_OR_RETURN(const int64_t revision,
                          store->options_.journal->Load([table](const ObjectKey& key, Json object) {
                            table->Restore(key, std::move(object));
                          }));
    table->RestoreRevision(revision);
    store->ServeDefinitions();
  }
  WEFT_RETURN_IF_ERROR(store->MakeSystemObjects());
  return store;
}

// What a cluster has from its beginning.
Status EmbeddedStore::MakeSystemObjects() {
  const auto make = [this](const ResourceType& type, const char* name, Json object) {
    object.Set("apiVersion", type.ApiVersion());
    object.Set("kind", type.kind);
    SetField(&object, {"metadata", "name"}, name);
    const Status status = Create(type, "", std::move(object), {}).status();
    return IsObjectExists(status) ? absl::OkStatus() : status;
  };
  for (const char* name : {"default", "kube-system"})
    WEFT_RETURN_IF_ERROR(make(Namespaces(), name, Json::MakeObject()));
  for (const auto& [name, value] : {std::pair{"system-cluster-critical", int64_t{2000000000}},
                                    {"system-node-critical", int64_t{2000001000}}}) {
    Json priority;
    priority.Set("value", value);
    WEFT_RETURN_IF_ERROR(make(PriorityClasses(), name, std::move(priority)));
  }
  return absl::OkStatus();
}

void EmbeddedStore::Serve(const Json& definition) {
  Problems problems("");
  ResourceType type = ReadDefinition(definition, &problems);
  if (problems.empty()) RegisterResource(std::move(type));
}

void EmbeddedStore::ServeDefinitions() {
  table_.ForEach(Definitions().Id(), "",
                 [this](const ObjectKey&, const ObjectPtr& one) { Serve(*one); });
}

StatusOr<ObjectPtr> EmbeddedStore::ServeAnew(const ResourceType& type,
                                             StatusOr<ObjectPtr> written) {
  if (!written.ok() || !IsDefinition(type)) return written;
  const std::string name = NameOf(**written);
  absl::MutexLock lock(&mutex_);
  const ObjectPtr definition = table_.Find(KeyOf(type, {"", name}));
  definition != nullptr ? Serve(*definition) : WithdrawResource(name);
  return written;
}

std::string EmbeddedStore::MakeUid() {
  const uint64_t high = options_.random();
  const uint64_t low = options_.random();
  return absl::StrFormat("%08x-%04x-4%03x-%04x-%012x", high >> 32, (high >> 16) & 0xffff,
                         high & 0xfff, 0x8000 | ((low >> 48) & 0x3fff), low & 0xffffffffffffull);
}

std::string EmbeddedStore::MakeNameSuffix() {
  static constexpr char kLetters[] = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  uint64_t random = options_.random();
  for (int i = 0; i < 5; ++i, random /= sizeof(kLetters) - 1) {
    suffix.push_back(kLetters[random % (sizeof(kLetters) - 1)]);
  }
  return suffix;
}

StatusOr<ObjectPtr> EmbeddedStore::FindLocked(const ResourceType& type, const ObjectName& name) {
  ObjectPtr object = table_.Find(KeyOf(type, name));
  if (object == nullptr) return ObjectNotFound(type, name.name);
  return object;
}

StatusOr<ObjectPtr> EmbeddedStore::Get(const ResourceType& type, const ObjectName& name) {
  absl::MutexLock lock(&mutex_);
  return FindLocked(type, name);
}

StatusOr<ObjectList> EmbeddedStore::List(const ResourceType& type, const ListOptions& options) {
  WEFT_ASSIGN_OR_RETURN(
      const Scope scope,
      MakeScope(type, options.namespace_name, options.label_selector, options.field_selector));
  absl::MutexLock lock(&mutex_);
  return ListPage(scope, options);
}

StatusOr<ObjectList> EmbeddedStore::ListPage(const Scope& scope, const ListOptions& options) {
  int64_t revision = table_.revision();
  ObjectKey after;
  if (!options.continue_token.empty()) {
    WEFT_ASSIGN_OR_RETURN(const ContinueToken token,
                          DecodeContinue(scope.resource, options.continue_token));
    revision = token.revision;
    after = token.last;
  } else if (!options.revision.empty()) {
    WEFT_ASSIGN_OR_RETURN(const int64_t wanted, ParseRevision(options.revision));
    // Too large a revision is refused either way; not older than it is what we have anyhow.
    if (options.is_exact || wanted > revision) revision = wanted;
  }
  ObjectList list;
  list.revision = absl::StrCat(revision);
  const bool selects = !scope.labels.empty() || !scope.fields.empty();
  ObjectKey last;
  const auto visit = [&](const ObjectKey& key, StoredObject& stored) {
    if (scope.fields.ExcludesName(key.name)) return true;
    const ObjectPtr object = selects ? stored.Read() : nullptr;
    if (selects && !scope.Matches(*object)) return true;
    if (options.limit > 0 && static_cast<int64_t>(list.items.size()) == options.limit) {
      if (list.remaining++ == 0) list.continue_token = EncodeContinue(revision, last);
      // Nobody counts what a selector would leave.
      return !selects;
    }
    list.items.push_back(selects ? object : stored.Read());
    if (options.limit > 0) last = key;
    return true;
  };
  WEFT_RETURN_IF_ERROR(
      table_.Walk(scope, revision, options.continue_token.empty() ? nullptr : &after, visit));
  if (selects) list.remaining = 0;
  return list;
}

StatusOr<std::unique_ptr<Watch>> EmbeddedStore::StartWatch(const ResourceType& type,
                                                           const WatchOptions& options,
                                                           WatchSink sink) {
  WEFT_ASSIGN_OR_RETURN(Scope scope, MakeScope(type, options.namespace_name, options.label_selector,
                                               options.field_selector));
  WEFT_ASSIGN_OR_RETURN(int64_t revision, ParseRevision(options.revision));
  if (revision == 0) revision = -1;
  absl::MutexLock lock(&mutex_);
  WEFT_ASSIGN_OR_RETURN(const ObjectTable::WatcherId id,
                        table_.AddWatcher(std::move(scope), revision, options.marks_initial_end,
                                          type.ApiVersion(), type.kind, std::move(sink)));
  return std::make_unique<TableWatch>(this, id);
}

Status EmbeddedStore::CheckNamespace(const std::string& name) {
  const ObjectPtr space = table_.Find({"namespaces", "", name});
  if (space == nullptr) return ObjectNotFound(Namespaces(), name);
  if (!IsTerminating(*space)) return absl::OkStatus();
  return ObjectForbidden(Namespaces(), name,
                         "nothing can be created in it because it is being terminated");
}

Status EmbeddedStore::FillMetadata(const ResourceType& type, const std::string& namespace_name,
                                   Json* object) {
  Json* meta = object->FindMutable("metadata");
  if (meta == nullptr || !meta->is_object()) {
    return ObjectInvalid(type, "", {{"metadata", "missing: an object needs a name"}});
  }
  // Of an object that is there already, whoever sends it means to update it.
  if (const std::string revision = RevisionOf(*object); !revision.empty() && revision != "0") {
    return ApiError(500, "", "resourceVersion should not be set on objects to be created");
  }
  for (const char* ours :
       {"resourceVersion", "uid", "creationTimestamp", "deletionTimestamp", "selfLink",
        "deletionGracePeriodSeconds", "managedFields", "generation"}) {
    meta->Erase(ours);
  }
  DropEmptyMetadata(meta);
  if (NameOf(*object).empty()) {
    const std::string prefix = StringField(*object, {"metadata", "generateName"});
    if (prefix.empty()) {
      return ObjectInvalid(type, "",
                           {{"metadata.name", "missing: name or generateName is required"}});
    }
    std::string name;
    for (int i = 0;
         i < kNameTries && (name.empty() || table_.Has(KeyOf(type, {namespace_name, name}))); ++i) {
      name = prefix + MakeNameSuffix();
    }
    meta->Set("name", name);
  }
  WEFT_RETURN_IF_ERROR(CheckObjectName(type, NameOf(*object)));
  if (type.is_namespaced) {
    meta->Set("namespace", namespace_name);
  } else {
    meta->Erase("namespace");
  }
  meta->Set("uid", MakeUid());
  meta->Set("creationTimestamp", FormatObjectTime(options_.clock->Now()));
  if (type.has_status && type.group != "") meta->Set("generation", 1);
  return absl::OkStatus();
}

bool EmbeddedStore::HasNoLivingOwner(const Json& object) {
  const Json* const owners = FindField(object, {"metadata", "ownerReferences"});
  if (owners == nullptr || owners->size() == 0) return false;
  const auto lives = [&](const Json& owner) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!table_.HasUid(StringField(owner, {"uid"}))) return false;
    const GroupVersion version = SplitApiVersion(StringField(owner, {"apiVersion"}));
    const ResourceType* const type = FindKind(version.group, StringField(owner, {"kind"}));
    if (type == nullptr) return true;
    const ObjectPtr held =
        table_.Find(KeyOf(*type, {NamespaceOf(object), StringField(owner, {"name"})}));
    // One that waits for its last dependent would wait for this one too.
    return held == nullptr || !WaitsForDependents(*held);
  };
  return std::none_of(owners->items().begin(), owners->items().end(), lives);
}

StatusOr<ObjectPtr> EmbeddedStore::Create(const ResourceType& type,
                                          const std::string& namespace_name, Json object,
                                          const WriteOptions& options) {
  StatusOr<ObjectPtr> created = Write([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return CreateLocked(type, namespace_name, object, Json(), options);
  });
  return ServeAnew(type, std::move(created));
}

StatusOr<ObjectPtr> EmbeddedStore::CreateLocked(const ResourceType& type,
                                                const std::string& namespace_name, Json object,
                                                const Json& managed, const WriteOptions& options) {
  const std::string version = SplitApiVersion(StringField(object, {"apiVersion"})).version;
  if (type.is_namespaced) WEFT_RETURN_IF_ERROR(CheckNamespace(namespace_name));
  object.Set("kind", type.kind);
  object.Set("apiVersion", type.ApiVersion());
  WEFT_RETURN_IF_ERROR(FillMetadata(type, namespace_name, &object));
  const std::string name = NameOf(object);
  const ObjectKey key = KeyOf(type, {namespace_name, name});
  const ObjectFinder finder = {
      [this](const ResourceType& of, const ObjectName& wanted)
          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return table_.Find(KeyOf(of, wanted)); },
      [this](const ResourceType& of) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        std::vector<ObjectPtr> all;
        table_.ForEach(of.Id(), "",
                       [&](const ObjectKey&, const ObjectPtr& one) { all.push_back(one); });
        return all;
      }};
  WEFT_RETURN_IF_ERROR(PrepareCreate(type, version, options, finder, &object));
  if (!managed.is_null()) SetField(&object, {"metadata", "managedFields"}, managed);
  WEFT_RETURN_IF_ERROR(CheckSize(type, object));
  if (table_.Has(key)) return ObjectExists(type, name);
  if (IsDefinition(type)) SetDefinitionStatus(options_.clock->Now(), &object);
  Batch batch(&table_, options_.clock->Now());
  ObjectPtr created = batch.Put(key, std::move(object));
  // Whoever made it did not know that its owner had gone meanwhile, or was about to.
  if (HasNoLivingOwner(*created)) batch.Delete(key, DeleteOptions());
  Commit(batch, options.is_dry_run);
  return created;
}

StatusOr<ObjectPtr> EmbeddedStore::UpdateLocked(const ResourceType& type, const ObjectPtr& old,
                                                Json object, const Json& managed,
                                                const WriteOptions& options) {
  const std::string name = NameOf(*old);
  const std::string revision = RevisionOf(object);
  if (!revision.empty() && revision != RevisionOf(*old)) {
    return ObjectConflict(type, name,
                          "the object has been modified; please apply your changes to the latest "
                          "version and try again");
  }
  if (const std::string uid = UidOf(object); !uid.empty() && uid != UidOf(*old)) {
    return ObjectConflict(type, name,
                          absl::StrCat("Precondition failed: UID in precondition: ", uid,
                                       ", UID in object meta: ", UidOf(*old)));
  }
  Json next = std::move(object);
  if (options.subresource == "status") {
    Json status = next.Find("status") == nullptr ? Json::MakeObject() : *next.Find("status");
    next = *old;
    next.Set("status", std::move(status));
  } else if (type.has_status && options.subresource != "binding") {
    next.Erase("status");
    if (const Json* const status = old->Find("status")) next.Set("status", *status);
  }
  next.Set("kind", type.kind);
  next.Set("apiVersion", type.ApiVersion());
  if (next.FindMutable("metadata") == nullptr) next.Set("metadata", Json::MakeObject());
  Json* const meta = next.FindMutable("metadata");
  meta->Erase("managedFields");
  for (const char* ours : {"name", "namespace", "uid", "resourceVersion", "creationTimestamp",
                           "deletionTimestamp", "deletionGracePeriodSeconds", "generation"}) {
    const Json* const held = FindField(*old, {"metadata", ours});
    held == nullptr ? (void)meta->Erase(ours) : meta->Set(ours, *held);
  }
  DropEmptyMetadata(meta);
  WEFT_RETURN_IF_ERROR(PrepareUpdate(type, options, *old, &next));
  WEFT_RETURN_IF_ERROR(CheckSize(type, next));
  // Only an object that somebody applies keeps an account.
  const Json* const held = FindField(*old, {"metadata", "managedFields"});
  const Json account =
      !managed.is_null() ? managed
      : held == nullptr
          ? Json()
          : FieldsAfterUpdate(*old, next, ManagerOf(type, options, options_.clock->Now()));
  if (!account.is_null()) SetField(&next, {"metadata", "managedFields"}, account);
  next.ShareLongTexts(*old);
  if (SameJson(next, *old)) return old;
  const int64_t generation = IntField(*old, {"metadata", "generation"}, -1);
  if (generation >= 0 && !SameDesire(next, *old))
    SetField(&next, {"metadata", "generation"}, generation + 1);
  const ObjectKey key = KeyOf(type, {NamespaceOf(*old), name});
  Batch batch(&table_, options_.clock->Now());
  ObjectPtr updated = batch.Put(key, std::move(next));
  batch.Settle(key);
  Commit(batch, options.is_dry_run);
  if (!options.is_dry_run) return updated;
  // Nothing is written: the version stays.
  auto dry = std::make_shared<Json>(*updated);
  SetField(dry.get(), {"metadata", "resourceVersion"}, RevisionOf(*old));
  return ObjectPtr(std::move(dry));
}

StatusOr<ObjectPtr> EmbeddedStore::Update(const ResourceType& type, Json object,
                                          const WriteOptions& options) {
  const auto act = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> StatusOr<ObjectPtr> {
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr old,
                          FindLocked(type, {NamespaceOf(object), NameOf(object)}));
    if (type.is_custom && RevisionOf(object).empty()) {
      return ObjectInvalid(
          type, NameOf(object),
          {{"metadata.resourceVersion", "Invalid value: 0x0: must be specified for an update"}});
    }
    return UpdateLocked(type, old, object, Json(), options);
  };
  return ServeAnew(type, Write(act));
}

// The object as it is kept has no version of its own: the patch need not name one.
StatusOr<ObjectPtr> EmbeddedStore::ApplyLocked(const ResourceType& type, const ObjectName& name,
                                               Json applied, const WriteOptions& options) {
  SetField(&applied, {"metadata", "name"}, name.name);
  const StatusOr<ObjectPtr> live = FindLocked(type, name);
  if (!live.ok() && (!IsObjectNotFound(live.status()) || !options.subresource.empty())) {
    return live.status();
  }
  WEFT_ASSIGN_OR_RETURN(
      Json merged, ApplyFields(type, live.ok() ? live->get() : nullptr, applied,
                               ManagerOf(type, options, options_.clock->Now()), options.is_forced));
  const Json managed = *FindField(merged, {"metadata", "managedFields"});
  if (!live.ok()) {
    return CreateLocked(type, name.namespace_name, std::move(merged), managed, options);
  }
  if (RevisionOf(applied).empty()) EraseField(&merged, {"metadata", "resourceVersion"});
  return UpdateLocked(type, *live, std::move(merged), managed, options);
}

StatusOr<ObjectPtr> EmbeddedStore::Patch(const ResourceType& type, const ObjectName& name,
                                         PatchKind kind, const Json& patch,
                                         const WriteOptions& options) {
  if (kind == PatchKind::kStrategic && type.is_custom) {
    return ApiError(
        415, "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json");
  }
  const auto act = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> StatusOr<ObjectPtr> {
    if (kind == PatchKind::kApply) return ApplyLocked(type, name, patch, options);
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr old, FindLocked(type, name));
    WEFT_ASSIGN_OR_RETURN(Json patched, ApplyPatch(kind, *old, patch));
    if (NameOf(patched) != name.name) {
      return ObjectInvalid(type, name.name,
                           {{"metadata.name", "Forbidden: a name does not change"}});
    }
    return UpdateLocked(type, old, std::move(patched), Json(), options);
  };
  return ServeAnew(type, Write(act));
}

StatusOr<ObjectPtr> EmbeddedStore::Delete(const ResourceType& type, const ObjectName& name,
                                          const DeleteOptions& options) {
  return ServeAnew(type, Write([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                     return DeleteLocked(type, name, options);
                   }));
}

StatusOr<ObjectPtr> EmbeddedStore::DeleteLocked(const ResourceType& type, const ObjectName& name,
                                                const DeleteOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const ObjectPtr object, FindLocked(type, name));
  if (!options.uid.empty() && options.uid != UidOf(*object)) {
    return ObjectConflict(type, name.name,
                          absl::StrCat("Precondition failed: UID in precondition: ", options.uid,
                                       ", UID in object meta: ", UidOf(*object)));
  }
  if (!options.revision.empty() && options.revision != RevisionOf(*object)) {
    return ObjectConflict(type, name.name, "Precondition failed: it has another resourceVersion");
  }
  if (type.plural == "namespaces" && (name.name == "default" || name.name == "kube-system")) {
    return ObjectForbidden(type, name.name, "this namespace may not be deleted");
  }
  Batch batch(&table_, options_.clock->Now());
  // With the definition go all objects of its kind.
  if (IsDefinition(type)) {
    std::vector<ObjectKey> contents;
    table_.ForEach(name.name, "",
                   [&](const ObjectKey& key, const ObjectPtr&) { contents.push_back(key); });
    for (const ObjectKey& key : contents) batch.Delete(key, DeleteOptions());
  }
  ObjectPtr last = batch.Delete(KeyOf(type, name), options);
  Commit(batch, options.is_dry_run);
  return last;
}

void EmbeddedStore::SendBookmarks() {
  absl::MutexLock lock(&mutex_);
  table_.SendBookmarks();
}

}  // namespace weft::platform
