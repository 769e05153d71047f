// SPDX-License-Identifier: Apache-2.0
#include "weft/train/saver.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

#include "base/log.h"
#include "weft/storage/bundle_format.h"
#include "weft/storage/checkpoint_state.h"
#include "weft/storage/object_files.h"
#include "weft/storage/tensor_bundle.h"

namespace weft::train {

Saver::Saver(const Options& options)
    : options_(options),
      own_files_(std::make_unique<storage::ObjectFileSystem>(std::make_unique<RealFileSystem>())) {}

StatusOr<std::unique_ptr<Saver>> Saver::Create(Program& program, const Options& options) {
  std::unique_ptr<Saver> saver(new Saver(options));
  WEFT_RETURN_IF_ERROR(saver->Build(program));
  return saver;
}

StatusOr<std::string> Saver::Save(session::Session& session, const std::string& folder,
                                  int64_t step, const std::string& base) {
  return SaveBy(session, names_.save, folder, step, base);
}

StatusOr<std::string> Saver::SaveTaken(session::Session& session, const std::string& folder,
                                       int64_t step, const std::string& base) {
  StatusOr<std::string> saved = SaveBy(session, save_taken_, folder, step, base);
  const Status forgotten = session.Run({}, {}, {forget_taken_}, nullptr);
  if (saved.ok() && !forgotten.ok()) WEFT_LOG(WARNING) << forgotten.message();
  return saved;
}

Status Saver::Take(session::Session& session) {
  if (take_.empty()) {
    return FailedPrecondition("This saver takes no values: set Saver::Options::can_take");
  }
  return Annotate(session.Run({}, {}, {take_}, nullptr), "Cannot take the values to save");
}

StatusOr<std::string> Saver::SaveBy(session::Session& session, const std::string& fetch,
                                    const std::string& folder, int64_t step,
                                    const std::string& base) {
  WEFT_RETURN_IF_ERROR(files().MakeDirectories(folder));
  const std::string path = absl::StrCat(folder, "/", base, "-", step);
  Status written = WriteBy(session, fetch, path);
  if (absl::IsResourceExhausted(written) && MakeRoom(folder, path)) {
    written = WriteBy(session, fetch, path);
  }
  WEFT_RETURN_IF_ERROR(written);
  std::vector<std::string> paths = Listed(folder);
  paths.erase(std::remove(paths.begin(), paths.end(), path), paths.end());
  paths.push_back(path);
  std::vector<std::string> dropped;
  while (options_.max_to_keep > 0 && static_cast<int>(paths.size()) > options_.max_to_keep) {
    dropped.push_back(paths.front());
    paths.erase(paths.begin());
  }
  // The list no longer names what is deleted next, so a crash between the two leaves garbage, not
  // lies.
  WEFT_RETURN_IF_ERROR(WriteList(folder, std::move(paths)));
  for (const std::string& old : dropped) DeleteFiles(folder, old);
  return path;
}

Status Saver::Write(session::Session& session, const std::string& path) {
  return WriteBy(session, names_.save, path);
}

Status Saver::WriteBy(session::Session& session, const std::string& fetch,
                      const std::string& path) {
  std::vector<Tensor> written;
  return Annotate(
      session.Run({{names_.path, Tensor::Scalar<std::string>(path)}}, {fetch}, {}, &written),
      absl::StrCat("Cannot save checkpoint ", path));
}

Status Saver::WriteList(const std::string& folder, std::vector<std::string> paths) {
  storage::CheckpointState state;
  state.model_checkpoint_path = paths.back();
  state.all_model_checkpoint_paths = std::move(paths);
  return storage::WriteCheckpointState(files(), folder, state);
}

// The disk is full: deletes what the failed save left, and of the older checkpoints those that the
// new one would push out. The newest of them stays whatever happens.
bool Saver::MakeRoom(const std::string& folder, const std::string& path) {
  std::vector<std::string> paths = Listed(folder);
  const bool was_there = std::find(paths.begin(), paths.end(), path) != paths.end();
  if (!was_there) DeleteFiles(folder, path);
  std::vector<std::string> dropped;
  while (options_.max_to_keep > 0 && paths.size() > 1 &&
         static_cast<int>(paths.size()) >= options_.max_to_keep && paths.front() != path) {
    dropped.push_back(paths.front());
    paths.erase(paths.begin());
  }
  if (dropped.empty()) return false;
  WEFT_LOG(WARNING) << "The disk of " << folder << " is full: " << dropped.size()
                    << " older checkpoints are deleted to make room";
  // First the files: without room not even the list can be written. Until it is, it names what is
  // gone, which whoever reads it passes over.
  for (const std::string& old : dropped) DeleteFiles(folder, old);
  const Status listed = WriteList(folder, std::move(paths));
  if (!listed.ok()) WEFT_LOG(WARNING) << listed.message();
  return true;
}

void Saver::DeleteFiles(const std::string& folder, const std::string& path) {
  absl::string_view base = path;
  const StatusOr<std::vector<std::string>> names = files().List(folder);
  if (!absl::ConsumePrefix(&base, folder + "/") || !names.ok()) return;
  const auto drop = [this](const std::string& file) {
    const Status deleted = files().Delete(file);
    if (!deleted.ok()) WEFT_LOG(WARNING) << "An old checkpoint stays: " << deleted.message();
  };
  for (const std::string& name : *names) {
    const std::string file = absl::StrCat(folder, "/", name);
    if (name == absl::StrCat(base, ".index") || name == absl::StrCat(base, ".meta") ||
        absl::StartsWith(name, absl::StrCat(base, ".data-"))) {
      drop(file);
    } else if (name == absl::StrCat(base, "_temp")) {
      const StatusOr<std::vector<std::string>> parts = files().List(file);
      if (!parts.ok()) continue;
      for (const std::string& part : *parts) drop(absl::StrCat(file, "/", part));
      drop(file);
    }
  }
}

std::vector<std::string> Saver::Lying(const std::string& folder) {
  std::vector<std::pair<int64_t, std::string>> found;
  const StatusOr<std::vector<std::string>> names = files().List(folder);
  if (!names.ok()) return {};
  for (const std::string& name : *names) {
    absl::string_view base = name;
    int64_t step = 0;
    if (!absl::ConsumeSuffix(&base, ".index") || base.rfind('-') == base.npos) continue;
    if (!absl::SimpleAtoi(base.substr(base.rfind('-') + 1), &step)) continue;
    found.emplace_back(step, absl::StrCat(folder, "/", base));
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::vector<std::string> Saver::Listed(const std::string& folder) {
  StatusOr<storage::CheckpointState> state = storage::ReadCheckpointState(files(), folder);
  if (state.ok() && !state->all_model_checkpoint_paths.empty()) {
    return std::move(state->all_model_checkpoint_paths);
  }
  // Lost or torn, the list is made anew of what is there, so that nothing is forgotten.
  return absl::IsNotFound(state.status()) ? std::vector<std::string>() : Lying(folder);
}

StatusOr<std::vector<std::string>> Saver::Candidates(const std::string& folder) {
  const StatusOr<storage::CheckpointState> state = storage::ReadCheckpointState(files(), folder);
  std::vector<std::string> paths;
  const auto add = [&paths](const std::string& path) {
    if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(path);
  };
  if (state.ok()) {
    const std::vector<std::string>& all = state->all_model_checkpoint_paths;
    if (!state->model_checkpoint_path.empty()) add(state->model_checkpoint_path);
    for (auto path = all.rbegin(); path != all.rend(); ++path) add(*path);
  } else if (!absl::IsDataLoss(state.status())) {
    return state.status();
  }
  const std::vector<std::string> lying = Lying(folder);
  if (paths.empty() && !lying.empty()) {
    WEFT_LOG(WARNING) << "The file 'checkpoint' in " << folder
                      << " names none: those that lie there are taken";
  }
  for (auto path = lying.rbegin(); path != lying.rend(); ++path) add(*path);
  std::vector<std::string> there;
  for (const std::string& path : paths) {
    const Status index = files().Stat(storage::BundleIndexPath(path)).status();
    if (index.ok()) there.push_back(path);
    if (!index.ok() && !absl::IsNotFound(index)) return index;
  }
  return there;
}

// Whether another checkpoint may fare better: its files, not what the program asks of it.
bool Saver::IsDamaged(const std::string& path, const Status& why) {
  if (absl::IsDataLoss(why)) return true;
  if (!absl::IsNotFound(why)) return false;
  const StatusOr<std::unique_ptr<storage::BundleReader>> reader =
      storage::BundleReader::Open(files(), path);
  return !reader.ok() || !(*reader)->CheckDataFiles().ok();
}

StatusOr<std::string> Saver::RestoreNewest(session::Session& session, const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> paths, Candidates(folder));
  Status first = NotFound("There is no checkpoint in ", folder);
  for (size_t i = 0; i < paths.size(); ++i) {
    const Status restored = Restore(session, paths[i]);
    if (restored.ok()) return paths[i];
    if (!IsDamaged(paths[i], restored)) return restored;
    WEFT_LOG(ERROR) << restored.message()
                    << (i + 1 < paths.size() ? "; the one before it is tried" : "");
    if (i == 0) first = DataLoss(restored.message());
  }
  return first;
}

Status Saver::Restore(session::Session& session, const std::string& path) {
  WEFT_RETURN_IF_ERROR(Annotate(session.Run({{names_.path, Tensor::Scalar<std::string>(path)}}, {},
                                            {names_.restore}, nullptr),
                                absl::StrCat("Cannot restore checkpoint ", path)));
  return RestoreStates(session, path);
}

Status Saver::RestoreStates(session::Session& session, const std::string& path) {
  if (restore_states_.empty()) return absl::OkStatus();
  const Status restored = session.Run({{names_.path, Tensor::Scalar<std::string>(path)}}, {},
                                      {restore_states_}, nullptr);
  if (!absl::IsNotFound(restored)) {
    return Annotate(restored, absl::StrCat("Cannot restore iterators from checkpoint ", path));
  }
  WEFT_LOG(INFO) << "The checkpoint " << path
                 << " does not tell where iterators stood: they begin anew";
  return session.Run({}, {}, {init_states_}, nullptr);
}

StatusOr<std::string> Saver::Latest(const std::string& folder) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> paths, Candidates(folder));
  if (!paths.empty()) return paths.front();
  return NotFound("There is no checkpoint in ", folder);
}

}  // namespace weft::train
