// SPDX-License-Identifier: Apache-2.0
// Where the embedded store keeps its objects over restarts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"

#include "base/posix_file.h"
#include "base/status.h"
#include "platform/store/embedded/object_table.h"

struct sqlite3;

namespace weft::platform {

// Not thread-safe.
class Journal {
 public:
  virtual ~Journal() = default;
  // Hands over each object, and returns the revision.
  virtual StatusOr<int64_t> Load(
      const std::function<void(const ObjectKey& key, Json object)>& take) = 0;
  // All of the changes or, on an error, none. They survive the loss of power once this returns.
  // ResourceExhausted: the disk is full.
  virtual Status Write(int64_t revision, absl::Span<const Change> changes) = 0;
};

// A SQLite file in a folder that it locks: AlreadyExists while another process has it, naming that
// process. A second file keeps some room, which deletions get when the disk is full: whoever wants
// to make room by them could not, else.
class SqliteJournal : public Journal {
 public:
  // Makes the folder. `max_pages` bounds the file (0: not), as a full disk would.
  static StatusOr<std::unique_ptr<SqliteJournal>> Open(const std::string& folder,
                                                       int64_t max_pages = 0);
  ~SqliteJournal() override;
  SqliteJournal(const SqliteJournal&) = delete;
  SqliteJournal& operator=(const SqliteJournal&) = delete;

  StatusOr<int64_t> Load(
      const std::function<void(const ObjectKey& key, Json object)>& take) override;
  Status Write(int64_t revision, absl::Span<const Change> changes) override;

 private:
  class Statement;
  SqliteJournal(std::string folder, OwnedFd lock, sqlite3* database);
  Status Execute(const char* sql);
  Status WriteOnce(int64_t revision, absl::Span<const Change> changes);
  Status WriteChanges(int64_t revision, absl::Span<const Change> changes);
  Status WriteSpecs(absl::Span<const Change> changes);
  // Of the file that keeps room. Take: false where there is none.
  bool TakeReserve();
  void GiveReserve();
  // What SQLite says of its last error.
  Status Failure(absl::string_view what) const;
  Status FullDisk() const;
  std::string ReservePath() const;

  const std::string folder_;
  const OwnedFd lock_;
  sqlite3* const database_;
  bool has_reserve_ = false;
  bool lacks_reserve_ = false;  // it was given: nothing but deletions until there is room for it
};

}  // namespace weft::platform
