// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/mount_plan.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "base/files.h"

namespace weft::platform {
namespace {

using Kind = MountStep::Kind;

// Each is a mount of its own, and a system has some ten thousand.
constexpr size_t kMostEntries = 4096;

std::vector<std::string> Parts(const std::string& path) {
  return absl::StrSplit(path, '/', absl::SkipEmpty());
}

bool IsBelow(absl::string_view path, absl::string_view folder) {
  return path == folder || folder == "/" || absl::StartsWith(path, absl::StrCat(folder, "/"));
}

// Where a path leads on this machine: what of it is there, and what is missing below.
struct Place {
  std::string real;                  // without links
  std::vector<std::string> missing;  // below `real`
  bool is_folder = true;             // that which is there

  std::string Whole() const {
    std::string whole = real;
    for (const std::string& part : missing) whole = JoinPath(whole, part);
    return whole;
  }
};

StatusOr<Place> Find(const std::string& path) {
  Place place;
  place.real = "/";
  for (const std::string& part : Parts(path)) {
    if (!place.missing.empty()) {
      place.missing.push_back(part);
      continue;
    }
    if (!place.is_folder) {
      return FailedPrecondition("Nothing can be mounted at ", path, ": '", place.real,
                                "' is a file");
    }
    const std::string next = JoinPath(place.real, part);
    struct stat info = {};
    if (::lstat(next.c_str(), &info) != 0) {
      if (errno != ENOENT) return ErrnoStatus(errno, "look at", next);
      place.missing.push_back(part);
      continue;
    }
    char real[PATH_MAX];
    if (::realpath(next.c_str(), real) == nullptr) {
      return FailedPrecondition("Nothing can be mounted at ", path, ": '", next,
                                "' is a link to what is not there");
    }
    place.real = real;
    std::error_code error;
    place.is_folder = std::filesystem::is_directory(place.real, error);
  }
  return place;
}

class Planner {
 public:
  explicit Planner(std::string root) : root_(std::move(root)) {}

  StatusOr<std::vector<MountStep>> Plan(const std::vector<Placement>& placements) {
    for (const Placement& placement : placements) WEFT_RETURN_IF_ERROR(Settle(placement));
    if (hollows_.count("/") == 0) {
      steps_.push_back({Kind::kBind, root_, "/"});
      steps_.push_back({Kind::kHide, root_});
    }
    // A folder comes before those in it.
    for (const std::string& folder : hollows_) WEFT_RETURN_IF_ERROR(ShowHollow(folder));
    for (const Settled& settled : settled_) Show(settled);
    steps_.push_back({Kind::kRoot, root_});
    return std::move(steps_);
  }

 private:
  struct Settled {
    Placement placement;
    std::string place;                 // its target without links
    std::vector<std::string> folders;  // to make, in the new root, before it
  };

  std::string InRoot(const std::string& path) const {
    return path == "/" ? root_ : absl::StrCat(root_, path);
  }

  Status Settle(const Placement& placement) {
    WEFT_ASSIGN_OR_RETURN(const Place place, Find(placement.target));
    Settled settled = {placement, place.Whole(), {}};
    if (settled.place == "/") {
      return FailedPrecondition(
          "Nothing can be mounted at /, where the programs of this machine lie: choose a folder");
    }
    const Settled* around = nullptr;
    for (const Settled& other : settled_) {
      if (IsBelow(settled.place, other.place)) around = &other;
    }
    if (around != nullptr && around->place != settled.place) {
      WEFT_RETURN_IF_ERROR(MakeWithin(*around, settled));
    } else if (!place.missing.empty()) {
      for (const char* system : {"/proc", "/sys"}) {
        if (!IsBelow(place.real, system)) continue;
        return FailedPrecondition("Nothing can be mounted at ", placement.target,
                                  ", which is not there: the system alone makes folders in ",
                                  system);
      }
      hollows_.insert(place.real);
      std::string folder = place.real;
      for (const std::string& part : place.missing) {
        folder = JoinPath(folder, part);
        settled.folders.push_back(folder);
      }
    } else if (place.is_folder == placement.is_file) {
      return Mismatch(placement, settled.place, place.is_folder);
    }
    settled_.push_back(std::move(settled));
    return absl::OkStatus();
  }

  static Status Mismatch(const Placement& placement, const std::string& at, bool is_folder) {
    return FailedPrecondition("Nothing can be mounted at ", placement.target, ": '", at, "' is a ",
                              is_folder ? "folder" : "file", " and '", placement.source, "' is a ",
                              placement.is_file ? "file" : "folder");
  }

  // In another volume.
  Status MakeWithin(const Settled& around, const Settled& settled) {
    const Placement& outer = around.placement;
    const std::string rest = settled.place.substr(around.place.size() + 1);
    if (outer.is_in_memory) {
      std::string path = outer.source;
      for (const std::string& part : Parts(rest)) {
        path = JoinPath(path, part);
        steps_.push_back({Kind::kFolder, path, "", 0777});
      }
      if (settled.placement.is_file) steps_.back().kind = Kind::kFile;
      return absl::OkStatus();
    }
    const std::string path = JoinPath(outer.source, rest);
    std::error_code error;
    if (std::filesystem::exists(path, error)) {
      const bool is_folder = std::filesystem::is_directory(path, error);
      if (is_folder == settled.placement.is_file)
        return Mismatch(settled.placement, path, is_folder);
      return absl::OkStatus();
    }
    if (outer.is_ours || outer.is_read_only) {
      return FailedPrecondition("Nothing can be mounted at ", settled.placement.target,
                                ": it is not there in the volume at ", outer.target,
                                ", which is read-only");
    }
    std::filesystem::create_directories(settled.placement.is_file ? ParentPath(path) : path, error);
    if (error) return ErrnoStatus(error.value(), "make", path);
    if (!settled.placement.is_file) return absl::OkStatus();
    RealFileSystem files;
    return WriteFile(files, path, "");
  }

  // A folder in memory with all that the real one holds.
  Status ShowHollow(const std::string& folder) {
    struct stat info = {};
    if (::stat(folder.c_str(), &info) != 0) return ErrnoStatus(errno, "look at", folder);
    const std::string shown = InRoot(folder);
    steps_.push_back({Kind::kMemory, shown, "", info.st_mode & 07777});
    if (folder == "/") steps_.push_back({Kind::kHide, shown});
    std::error_code error;
    std::filesystem::directory_iterator entries(folder, error);
    if (error) return ErrnoStatus(error.value(), "list", folder);
    size_t count = 0;
    for (const std::filesystem::directory_entry& entry : entries) {
      if (++count > kMostEntries) {
        return FailedPrecondition("Nothing can be mounted in ", folder, ", which has more than ",
                                  kMostEntries, " entries, unless the place is there: mkdir it");
      }
      ShowEntry(entry, JoinPath(shown, entry.path().filename().string()));
    }
    return absl::OkStatus();
  }

  void ShowEntry(const std::filesystem::directory_entry& entry, const std::string& shown) {
    const std::string path = entry.path().string();
    std::error_code error;
    if (entry.is_symlink(error)) {
      const std::string to = std::filesystem::read_symlink(entry.path(), error).string();
      if (!error) steps_.push_back({Kind::kLink, shown, to});
      return;
    }
    const bool is_folder = entry.is_directory(error);
    steps_.push_back({is_folder ? Kind::kFolder : Kind::kFile, shown, "", 0755});
    steps_.push_back({Kind::kBind, shown, path});
  }

  void Show(const Settled& settled) {
    const Placement& placement = settled.placement;
    for (const std::string& folder : settled.folders) {
      // Several may be in it.
      if (!made_.insert(folder).second) continue;
      const bool is_file = placement.is_file && folder == settled.place;
      steps_.push_back({is_file ? Kind::kFile : Kind::kFolder, InRoot(folder), "", 0755});
    }
    steps_.push_back({Kind::kBind, InRoot(settled.place), placement.source});
    if (placement.is_read_only) steps_.push_back({Kind::kSeal, InRoot(settled.place)});
  }

  const std::string root_;
  std::set<std::string> hollows_;  // folders in which places are missing
  std::vector<Settled> settled_;
  std::set<std::string> made_;
  std::vector<MountStep> steps_;
};

}  // namespace

StatusOr<std::vector<MountStep>> PlanMounts(std::vector<Placement> placements,
                                            const std::string& root) {
  std::stable_sort(placements.begin(), placements.end(),
                   [](const Placement& a, const Placement& b) {
                     return Parts(a.target).size() < Parts(b.target).size();
                   });
  return Planner(root).Plan(placements);
}

}  // namespace weft::platform
