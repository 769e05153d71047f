// SPDX-License-Identifier: Apache-2.0
// What a server process leaves to the next one that its supervisor starts: where in a file that
// both map the value of each variable lies, as of the last commit.
//
// Two files in memory. The data file is the memory of tensors (base/shared_memory.h hands it out).
// The control file is the directory: for each name two places, the committed one and the one that
// the next commit makes the committed one, each with the number of its commit. A commit writes the
// places of all that changed, then the header's number: that one word is the commit. Who finds the
// files takes of each name the place with the highest number that is not above the header's.
//
// Bytes that are committed are not written, but for rows that were noted (NoteOldBytes): the
// control file holds what was there, and who finds a note of a commit that did not come puts that
// back. So whenever the process is killed, what the next one finds is one commit, whole.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

#include "base/posix_file.h"
#include "base/status.h"

namespace weft::supervisor {

struct KeptFiles {
  OwnedFd data;
  OwnedFd control;
};

// Two empty ones. They take memory as it is written; `data_bytes` is the most that tensors may
// take. Unavailable where the system has no files in memory.
StatusOr<KeptFiles> MakeKeptFiles(uint64_t data_bytes);

// Where a value lies in the data file, and what it is as its owner describes it.
struct KeptPlace {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  std::vector<int64_t> description;  // at most kMostDescription
};

// Thread-safe, but for NoteOldBytes as it says.
class KeptMemory {
 public:
  static constexpr size_t kMostName = 255;
  static constexpr size_t kMostDescription = 10;
  static constexpr uint32_t kMostEntries = 65536;

  // Of the files that this process inherited; what it found there stays as it is until the first
  // commit. `data` is where the data file is mapped, of `data_bytes`. DataLoss if the files are not
  // what they should be.
  static StatusOr<std::unique_ptr<KeptMemory>> Open(int control_fd, std::byte* data,
                                                    uint64_t data_bytes);
  ~KeptMemory();
  KeptMemory(const KeptMemory&) = delete;
  KeptMemory& operator=(const KeptMemory&) = delete;

  // What was committed when it was opened, by name.
  const std::map<std::string, KeptPlace>& found() const { return found_; }
  // How many rows an earlier process had noted and did not come to commit: put back.
  int64_t rows_put_back() const { return rows_put_back_; }

  // The number under which `name` is known from now on. ResourceExhausted when there are too many;
  // InvalidArgument for a name that is too long.
  StatusOr<uint32_t> EntryOf(absl::string_view name);

  struct Change {
    uint32_t entry = 0;
    bool present = true;  // false: there is no value any more
    KeptPlace place;
  };
  // All of them, or none. What was noted before it is forgotten. No NoteOldBytes may go on beside
  // it, nor any writing to what was noted.
  void Commit(absl::Span<const Change> changes);

  // Before bytes of the data file that are committed are written: puts down what they are. False
  // when there is no room, and then the caller must not write. May run beside others of itself.
  bool NoteOldBytes(absl::Span<const std::pair<uint64_t, uint64_t>> ranges);

 private:
  struct Header;
  struct Entry;
  struct Place;
  struct Note;

  KeptMemory(std::byte* control, uint64_t control_bytes, std::byte* data, uint64_t data_bytes)
      : control_(control), control_bytes_(control_bytes), data_(data), data_bytes_(data_bytes) {}
  Status Recover();
  Status CheckHeader() const;
  Status PutBack();
  Status ReadDirectory();
  Header& header() const;
  Entry& entry(uint32_t number) const;
  std::byte* notes() const;
  uint64_t most_notes() const;
  bool Lies(uint64_t offset, uint64_t bytes) const {
    return offset <= data_bytes_ && bytes <= data_bytes_ - offset;
  }

  std::byte* const control_;
  const uint64_t control_bytes_;
  std::byte* const data_;
  const uint64_t data_bytes_;
  std::map<std::string, KeptPlace> found_;
  int64_t rows_put_back_ = 0;
  absl::Mutex mutex_;
  std::map<std::string, uint32_t, std::less<>> numbers_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex notes_mutex_;
};

}  // namespace weft::supervisor
