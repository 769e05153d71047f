// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a program's variables, in TensorFlow's format.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "weft/session/session.h"
#include "weft/train/program.h"

namespace weft::train {

// The nodes of a Saver, as they stand in a MetaGraph: the tensor that is fed with a checkpoint's
// path, the one that is fetched to save, and the node that is run to restore.
struct SaverNames {
  std::string path;     // "save/prefix:0"
  std::string save;     // "save/saved:0"
  std::string restore;  // "save/restore_all"
};

// Adds nodes that save and restore SavedVariables() and the states that are saved. Each task writes
// the variables it holds; with more than one the parts are merged at the end. The folder must be
// one that every such task sees.
class Saver {
 public:
  struct Options {
    int max_to_keep = 5;          // older ones are deleted; 0 keeps all
    FileSystem* files = nullptr;  // for the `checkpoint` file; null: the machine's own
    bool can_take = false;        // Take and SaveTaken work
  };
  // Make it after the last variable, the optimizer's slots too. The program must outlive it.
  static StatusOr<std::unique_ptr<Saver>> Create(Program& program, const Options& options);
  static StatusOr<std::unique_ptr<Saver>> Create(Program& program) {
    return Create(program, Options());
  }

  // Writes `<folder>/<base>-<step>` and then the file `checkpoint`; gives the path. When it fails,
  // the newest checkpoint there was is untouched; on a full disk those beyond max_to_keep, this one
  // counted, have made room first.
  StatusOr<std::string> Save(session::Session& session, const std::string& folder, int64_t step,
                             const std::string& base = "model.ckpt");
  // Keeps the values of this moment in the tasks that hold the variables, at the cost of an update
  // that copies what it changes; another Take forgets them.
  Status Take(session::Session& session);
  // As Save, of what was taken last: training may go on meanwhile, in other threads. Forgets it.
  // Waits for a Take where there was none.
  StatusOr<std::string> SaveTaken(session::Session& session, const std::string& folder,
                                  int64_t step, const std::string& base = "model.ckpt");
  // Writes the checkpoint `path` alone: the file `checkpoint` does not tell of it, and it stays.
  Status Write(session::Session& session, const std::string& path);
  // NotFound or DataLoss names the file or the variable. Then RestoreStates.
  Status Restore(session::Session& session, const std::string& path);
  // Lets states go on where they stood; those of a checkpoint that has none begin anew. Variables
  // stay as they are.
  Status RestoreStates(session::Session& session, const std::string& path);
  // Restores the newest checkpoint in `folder` that is intact, saying which others are not, and
  // gives its path. NotFound if there is none, DataLoss if all are damaged.
  StatusOr<std::string> RestoreNewest(session::Session& session, const std::string& folder);
  // The newest checkpoint in `folder`, intact or not; NotFound if there is none.
  StatusOr<std::string> Latest(const std::string& folder);
  const SaverNames& names() const { return names_; }

 private:
  explicit Saver(const Options& options);
  Status Build(Program& program);
  // Fetches `fetch` to write a checkpoint.
  Status WriteBy(session::Session& session, const std::string& fetch, const std::string& path);
  StatusOr<std::string> SaveBy(session::Session& session, const std::string& fetch,
                               const std::string& folder, int64_t step, const std::string& base);
  // Newest first: as the file `checkpoint` says, then others that lie there. NotFound if there is
  // no such file.
  StatusOr<std::vector<std::string>> Candidates(const std::string& folder);
  // Those that lie in the folder, by their files alone, oldest first.
  std::vector<std::string> Lying(const std::string& folder);
  // Oldest first.
  std::vector<std::string> Listed(const std::string& folder);
  bool IsDamaged(const std::string& path, const Status& why);
  bool MakeRoom(const std::string& folder, const std::string& path);
  Status WriteList(const std::string& folder, std::vector<std::string> paths);
  void DeleteFiles(const std::string& folder, const std::string& path);
  FileSystem& files() { return options_.files != nullptr ? *options_.files : *own_files_; }

  const Options options_;
  const std::unique_ptr<FileSystem> own_files_;  // object stores too
  SaverNames names_;
  std::string restore_states_;  // empty without states
  std::string init_states_;
  std::string save_taken_;  // empty unless it can take
  std::string take_;
  std::string forget_taken_;
};

}  // namespace weft::train
