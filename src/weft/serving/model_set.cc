// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/model_set.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"

#include "base/log.h"
#include "weft/serving/warm_up.h"

namespace weft::serving {
namespace {

namespace proto = tensorflow::serving;
using Version = proto::ModelVersionStatus;

constexpr int kMostEarlier = 8;    // tries of versions before those that failed, at a start
constexpr size_t kMostEnded = 16;  // versions of a model that are remembered when they have gone

Status CheckConfig(const proto::ModelServerConfig& config) {
  if (config.config_case() == proto::ModelServerConfig::kCustomModelConfig)
    return InvalidArgument(
        "ServerModelConfig type not supported: only model_config_list is, not custom_model_config");
  std::set<std::string> names;
  for (const proto::ModelConfig& model : config.model_config_list().config()) {
    if (model.name().empty()) return InvalidArgument("A model of the config list has no name");
    if (model.base_path().empty())
      return InvalidArgument("Expected model ", model.name(), " to have a base_path");
    if (!names.insert(model.name()).second)
      return InvalidArgument("Illegal to list model ", model.name(),
                             " multiple times in config list");
    if (!model.model_platform().empty() && model.model_platform() != "tensorflow")
      return InvalidArgument("The platform of model ", model.name(), " is '",
                             model.model_platform(), "', expected 'tensorflow'");
  }
  return absl::OkStatus();
}

// What to say of a model that has no versions: what keeps them from being seen.
std::string WhyNone(FileSystem& files, const std::string& base_path, const Status& listed) {
  if (!listed.ok()) return absl::StrCat(": ", listed.message());
  const StatusOr<FolderState> state = LookAt(files, base_path);
  if (!state.ok() || !state->has_graph) return "";
  return ": it is a version itself, expected the folder of the model, in which versions are "
         "folders "
         "named by numbers";
}

}  // namespace

ModelSet::ModelSet(const ModelSetOptions& options)
    : options_(options), load_pool_("weft-load", std::max(1, options.load_threads)) {}

ModelSet::~ModelSet() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.reset();
}

Status ModelSet::Configure(const proto::ModelServerConfig& config) {
  WEFT_RETURN_IF_ERROR(CheckConfig(config));
  absl::MutexLock polling(&poll_mutex_);
  std::vector<std::string> added;
  {
    absl::MutexLock lock(&mutex_);
    std::set<std::string> names;
    for (const proto::ModelConfig& wanted : config.model_config_list().config()) {
      names.insert(wanted.name());
      const auto [found, is_new] = models_.try_emplace(wanted.name());
      Model& model = found->second;
      if (is_new) added.push_back(wanted.name());
      // Versions of another folder are others, also under the same numbers.
      if (!is_new && model.config.base_path() != wanted.base_path()) {
        for (auto& [version, entry] : model.versions) RetireEntry(wanted.name(), version, &entry);
        model.versions.clear();
      }
      model.config = wanted;
    }
    for (auto& [name, model] : models_) {
      if (names.contains(name)) continue;
      for (auto& [version, entry] : model.versions) RetireEntry(name, version, &entry);
      labels_.erase(name);
    }
    std::erase_if(models_, [&](const auto& entry) { return !names.contains(entry.first); });
  }
  Poll(/*is_first=*/true);
  WEFT_RETURN_IF_ERROR(SetLabels(config.model_config_list()));
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> failed;
  for (const std::string& name : added) {
    for (const auto& [version, entry] : models_[name].versions) {
      if (entry.state == Version::AVAILABLE || entry.status.ok()) continue;
      failed.push_back(absl::StrCat("{name: ", name, " version: ", version,
                                    " due to error: ", entry.status.ToString(), "}"));
    }
  }
  if (failed.empty()) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat(failed.size(), " model(s) did not become available: {",
                                         absl::StrJoin(failed, ", "), "}"));
}

Status ModelSet::SetLabels(const proto::ModelConfigList& list) {
  absl::MutexLock lock(&mutex_);
  std::map<std::string, std::map<std::string, int64_t>> labels;
  for (const proto::ModelConfig& model : list.config()) {
    const auto& versions = models_[model.name()].versions;
    for (const auto& [label, version] : model.version_labels()) {
      const auto found = versions.find(version);
      const bool is_served = found != versions.end() && found->second.state == Version::AVAILABLE;
      const auto known = labels_.find(model.name());
      const bool moves = known != labels_.end() && known->second.contains(label) &&
                         known->second.at(label) != version;
      if (!is_served && (moves || !options_.allow_labels_for_unavailable)) {
        return FailedPrecondition("Request to assign label to version ", version, " of model ",
                                  model.name(), ", which is not currently available for inference");
      }
      labels[model.name()][label] = version;
    }
  }
  labels_ = std::move(labels);
  return absl::OkStatus();
}

void ModelSet::Start() {
  thread_ = std::make_unique<Thread>("weft-models", [this] { Watch(); });
}

void ModelSet::Watch() {
  absl::Time next_poll =
      options_.poll > absl::ZeroDuration() ? absl::Now() + options_.poll : absl::InfiniteFuture();
  while (true) {
    const bool has_more = FreeRetired();
    {
      absl::MutexLock lock(&mutex_);
      const absl::Time until =
          std::min(next_poll, absl::Now() + (has_more ? absl::Milliseconds(50) : absl::Seconds(1)));
      mutex_.AwaitWithDeadline(absl::Condition(&stopping_), until);
      if (stopping_) return;
    }
    if (absl::Now() < next_poll) continue;
    absl::MutexLock polling(&poll_mutex_);
    Poll(/*is_first=*/false);
    next_poll = absl::Now() + options_.poll;
  }
}

void ModelSet::Poll(bool is_first) {
  // What is being written settles soon: a start waits for it once. Where a version fails to load,
  // one before it may be taken.
  int earlier = 0, waits = 0;
  while (true) {
    std::vector<Load> loads;
    bool is_young = false, has_failed = false;
    {
      absl::MutexLock lock(&mutex_);
      for (auto& [name, model] : models_) Look(&model, &loads, &is_young);
      for (const Load& load : loads)
        models_[load.model].versions[load.version].state = Version::LOADING;
    }
    load_pool_.ParallelFor(static_cast<int64_t>(loads.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) LoadOne(loads[static_cast<size_t>(i)]);
    });
    {
      absl::MutexLock lock(&mutex_);
      Retire();
      for (const Load& load : loads)
        has_failed |= !models_[load.model].versions[load.version].status.ok();
      if (!is_first || stopping_) return;
      if (has_failed && earlier++ < kMostEarlier) continue;
      if (!is_young || waits++ > 0) return;
      mutex_.AwaitWithTimeout(absl::Condition(&stopping_), options_.settle);
      if (stopping_) return;
    }
  }
}

void ModelSet::Look(Model* model, std::vector<Load>* loads, bool* is_young) {
  const std::string& name = model->config.name();
  StatusOr<std::map<int64_t, std::string>> wanted = WantedVersions(
      *options_.load.files, model->config.base_path(), model->config.model_version_policy());
  if (!wanted.ok() || wanted->empty()) {
    if (model->is_listed)
      WEFT_LOG(WARNING) << "No versions of servable " << name << " found under base path "
                        << model->config.base_path()
                        << WhyNone(*options_.load.files, model->config.base_path(),
                                   wanted.status());
    model->is_listed = false;
    // A file system that does not answer takes nothing away.
    if (!wanted.ok()) return;
  } else {
    model->is_listed = true;
    AddEarlier(*model, &*wanted);
  }
  for (auto& [version, entry] : model->versions) entry.wanted = wanted->contains(version);
  for (const auto& [version, folder] : *wanted) {
    Entry& entry = model->versions[version];
    // One that had ended and is wanted again starts anew.
    if (entry.state == Version::UNLOADING) continue;
    if (entry.state == Version::END && entry.status.ok()) entry = Entry();
    entry.folder = folder;
    if (entry.state != Version::AVAILABLE && IsDue(&entry, is_young))
      loads->push_back({name, version, folder});
  }
}

void ModelSet::AddEarlier(const Model& model, std::map<int64_t, std::string>* wanted) {
  const VersionPolicy& policy = model.config.model_version_policy();
  if (policy.has_all() || policy.has_specific()) return;
  const auto serves = [](const auto& entry) { return entry.second.state == Version::AVAILABLE; };
  if (std::any_of(model.versions.begin(), model.versions.end(), serves)) return;
  for (const auto& [version, folder] : *wanted) {
    if (!IsHopeless(model, version, folder)) return;
  }
  VersionPolicy everything;
  everything.mutable_all();
  const StatusOr<std::map<int64_t, std::string>> all =
      WantedVersions(*options_.load.files, model.config.base_path(), everything);
  if (!all.ok()) return;
  for (auto one = all->rbegin(); one != all->rend(); ++one) {
    if (wanted->contains(one->first) || IsHopeless(model, one->first, one->second)) continue;
    wanted->insert(*one);
    return;
  }
}

bool ModelSet::IsHopeless(const Model& model, int64_t version, const std::string& folder) const {
  const auto known = model.versions.find(version);
  if (known != model.versions.end() && known->second.attempts > 0)
    return !known->second.status.ok();
  const StatusOr<FolderState> state = LookAt(*options_.load.files, folder);
  return !state.ok() || !state->has_graph;
}

bool ModelSet::IsDue(Entry* entry, bool* is_young) {
  const StatusOr<FolderState> state = LookAt(*options_.load.files, entry->folder);
  if (!state.ok()) return false;  // it changes under our hands
  const bool stands_still = state->fingerprint == entry->seen.fingerprint;
  entry->seen = *state;
  if (!state->has_graph) return false;
  if (!stands_still && absl::Now() - state->newest < options_.settle) {
    *is_young = true;
    return false;
  }
  if (entry->attempts == 0) return true;
  if (!(entry->attempted == *state)) {
    entry->attempts = 0;
    return true;
  }
  return entry->attempts <= options_.max_load_retries && absl::Now() >= entry->next_attempt;
}

void ModelSet::LoadOne(const Load& load) {
  const absl::Time begin = absl::Now();
  WEFT_LOG(INFO) << "Loading version " << load.version << " of " << load.model << " from "
                 << load.folder;
  StatusOr<std::unique_ptr<ModelVersion>> made =
      ModelVersion::Load(options_.load, load.model, load.version, load.folder);
  StatusOr<std::shared_ptr<const ModelVersion>> loaded = Internal("Not loaded");
  if (!made.ok()) {
    loaded = made.status();
  } else {
    // Shared by the requests that it answers.
    std::shared_ptr<const ModelVersion> version = *std::move(made);
    Status warm;
    if (options_.warm_up)
      warm = WarmUp(*options_.load.files, load.folder, options_.warm_up_rounds, version);
    if (warm.ok()) {
      loaded = std::move(version);
    } else {
      loaded = warm;
      // A thread of its batches may still hold it.
      absl::MutexLock lock(&mutex_);
      retiring_.push_back({load.model, load.version, std::move(version)});
    }
  }
  options_.load.metrics->CountLoad(load.folder, loaded.status(), absl::Now() - begin);
  if (loaded.ok()) {
    WEFT_LOG(INFO) << "Serving version " << load.version << " of " << load.model << ", loaded in "
                   << absl::FormatDuration(absl::Now() - begin);
  } else {
    WEFT_LOG(ERROR) << "Cannot load version " << load.version << " of " << load.model << ": "
                    << loaded.status().message();
  }
  Finish(load, std::move(loaded));
}

void ModelSet::Finish(const Load& load, StatusOr<std::shared_ptr<const ModelVersion>> loaded) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = models_[load.model].versions[load.version];
  entry.attempted = entry.seen;
  ++entry.attempts;
  entry.status = loaded.status();
  if (loaded.ok()) {
    options_.load.metrics->Know(load.model);
    entry.loaded = *std::move(loaded);
    entry.state = Version::AVAILABLE;
    return;
  }
  entry.next_attempt = absl::Now() + options_.retry_interval;
  if (entry.attempts > options_.max_load_retries) entry.state = Version::END;
}

void ModelSet::Retire() {
  for (auto& [name, model] : models_) {
    bool serves_wanted = false, wants = false;
    for (const auto& [version, entry] : model.versions) {
      wants |= entry.wanted;
      serves_wanted |= entry.wanted && entry.state == Version::AVAILABLE;
    }
    // The last that answers stays until another does.
    for (auto& [version, entry] : model.versions) {
      if (!entry.wanted && (serves_wanted || !wants)) RetireEntry(name, version, &entry);
    }
    size_t ended = 0;
    for (auto entry = model.versions.rbegin(); entry != model.versions.rend(); ++entry)
      ended += entry->second.state == Version::END && !entry->second.wanted;
    std::erase_if(model.versions, [&](const auto& entry) {
      const bool has_ended = entry.second.state == Version::END && !entry.second.wanted;
      return has_ended && ended > kMostEnded && ended-- > 0;
    });
  }
}

void ModelSet::RetireEntry(const std::string& model, int64_t version, Entry* entry) {
  if (entry->state == Version::AVAILABLE) {
    WEFT_LOG(INFO) << "Version " << version << " of " << model << " is served no more";
    retiring_.push_back({model, version, std::move(entry->loaded)});
    entry->loaded = nullptr;
    entry->state = Version::UNLOADING;
  } else if (entry->state != Version::UNLOADING) {
    entry->state = Version::END;
  }
}

bool ModelSet::FreeRetired() {
  std::vector<Retiring> free;
  bool has_more = false;
  {
    absl::MutexLock lock(&mutex_);
    // Nobody finds it any more, so that the count only falls.
    const auto is_free = [](const Retiring& one) { return one.loaded.use_count() == 1; };
    const auto first = std::stable_partition(retiring_.begin(), retiring_.end(),
                                             [&](const Retiring& one) { return !is_free(one); });
    free.assign(std::make_move_iterator(first), std::make_move_iterator(retiring_.end()));
    retiring_.erase(first, retiring_.end());
    has_more = !retiring_.empty();
  }
  for (Retiring& one : free) {
    one.loaded.reset();
    absl::MutexLock lock(&mutex_);
    const auto model = models_.find(one.model);
    if (model == models_.end()) continue;
    const auto entry = model->second.versions.find(one.version);
    if (entry != model->second.versions.end() && entry->second.state == Version::UNLOADING)
      entry->second.state = Version::END;
  }
  return has_more;
}

StatusOr<std::shared_ptr<const ModelVersion>> ModelSet::Find(const proto::ModelSpec& spec) const {
  if (spec.name().empty()) return InvalidArgument("ModelSpec has no name specified.");
  absl::ReaderMutexLock lock(&mutex_);
  int64_t version = -1;
  const google::protobuf::Int64Value& number = spec.version();
  if (spec.has_version()) version = number.value();
  if (spec.version_choice_case() == proto::ModelSpec::kVersionLabel) {
    const auto of_model = labels_.find(spec.name());
    if (of_model == labels_.end() || !of_model->second.contains(spec.version_label()))
      return InvalidArgument("Unrecognized servable version label: ", spec.version_label());
    version = of_model->second.at(spec.version_label());
  }
  const bool is_latest = spec.version_choice_case() == proto::ModelSpec::VERSION_CHOICE_NOT_SET;
  const auto model = models_.find(spec.name());
  if (model != models_.end()) {
    const auto& versions = model->second.versions;
    for (auto entry = versions.rbegin(); entry != versions.rend(); ++entry) {
      if (entry->second.state == Version::AVAILABLE && (is_latest || entry->first == version))
        return entry->second.loaded;
    }
  }
  if (is_latest) return NotFound("Servable not found for request: Latest(", spec.name(), ")");
  return NotFound("Servable not found for request: Specific(", spec.name(), ", ", version, ")");
}

Status ModelSet::Describe(const proto::ModelSpec& spec,
                          proto::GetModelStatusResponse* response) const {
  absl::ReaderMutexLock lock(&mutex_);
  const auto model = models_.find(spec.name());
  const google::protobuf::Int64Value& number = spec.version();
  int64_t asked = number.value();
  const bool is_one = spec.version_choice_case() != proto::ModelSpec::VERSION_CHOICE_NOT_SET;
  if (spec.version_choice_case() == proto::ModelSpec::kVersionLabel) {
    const auto of_model = labels_.find(spec.name());
    if (of_model == labels_.end() || !of_model->second.contains(spec.version_label()))
      return InvalidArgument("Unrecognized servable version label: ", spec.version_label());
    asked = of_model->second.at(spec.version_label());
  }
  if (model != models_.end()) {
    const auto& versions = model->second.versions;
    for (auto entry = versions.rbegin(); entry != versions.rend(); ++entry) {
      if (is_one && entry->first != asked) continue;
      Version* const one = response->add_model_version_status();
      one->set_version(entry->first);
      one->set_state(entry->second.state);
      one->mutable_status()->set_error_code(
          static_cast<tensorflow::error::Code>(entry->second.status.code()));
      one->mutable_status()->set_error_message(std::string(entry->second.status.message()));
    }
  }
  if (response->model_version_status_size() > 0) return absl::OkStatus();
  if (is_one) return NotFound("Could not find version ", asked, " of model ", spec.name());
  return NotFound("Could not find any versions of model ", spec.name());
}

bool ModelSet::IsReady() const {
  absl::ReaderMutexLock lock(&mutex_);
  return std::all_of(models_.begin(), models_.end(), [](const auto& model) {
    return std::any_of(model.second.versions.begin(), model.second.versions.end(),
                       [](const auto& entry) { return entry.second.state == Version::AVAILABLE; });
  });
}

}  // namespace weft::serving
