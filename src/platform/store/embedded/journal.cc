// SPDX-License-Identifier: Apache-2.0
#include "platform/store/embedded/journal.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "base/files.h"
#include "net/deflate.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

// 1 had no table of its own for large specs.
constexpr int64_t kFormat = 2;
constexpr off_t kMostReserveBytes = 4 << 20;
// A spec of so many bytes has a row of its own: a status changes often and a spec hardly ever. A
// task's of a large job names all other tasks.
constexpr size_t kLargeSpec = 4096;
constexpr size_t kMostSpecBytes = 16 << 20;

StatusOr<OwnedFd> LockFolder(const std::string& folder) {
  const std::string path = JoinPath(folder, "lock");
  OwnedFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.is_open()) return ErrnoStatus(errno, "open", path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, "lock", path);
    char owner[32] = {};
    const ssize_t count = ::pread(fd.get(), owner, sizeof(owner) - 1, 0);
    const std::string process(absl::StripAsciiWhitespace(
        absl::string_view(owner, count > 0 ? static_cast<size_t>(count) : 0)));
    return AlreadyExists("The state folder is in use by process ",
                         process.empty() ? "unknown" : process, ": ", folder,
                         ". Stop that one first, or give another folder with --state");
  }
  const std::string self = absl::StrCat(::getpid(), "\n");
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), self.data(), self.size(), 0) != static_cast<ssize_t>(self.size())) {
    return ErrnoStatus(errno, "write", path);
  }
  return fd;
}

// What its texts take.
size_t TextBytes(const Json& value) {
  size_t bytes = value.text() == nullptr ? 0 : value.text()->size();
  for (const Json& item : value.items()) bytes += TextBytes(item);
  for (const JsonMember& member : value.members())
    bytes += member.name.size() + TextBytes(member.value);
  return bytes;
}

// Null: it stands in the object's row.
const Json* LargeSpecOf(const Json& object) {
  const Json* const spec = object.Find("spec");
  return spec != nullptr && TextBytes(*spec) >= kLargeSpec ? spec : nullptr;
}

// A large spec as null.
std::string BodyOf(const Json& object) {
  const Json* const spec = LargeSpecOf(object);
  std::string body = "{";
  for (const JsonMember& member : object.members()) {
    absl::StrAppend(&body, body.size() == 1 ? "" : ",", Json(member.name).Dump(), ":",
                    &member.value == spec ? "null" : member.value.Dump());
  }
  return body + "}";
}

StatusOr<Json> ReadObject(const std::string& body, const std::string& deflated_spec) {
  WEFT_ASSIGN_OR_RETURN(Json object, Json::Parse(body));
  if (deflated_spec.empty()) return object;
  WEFT_ASSIGN_OR_RETURN(const std::string text, Inflate(deflated_spec, kMostSpecBytes));
  WEFT_ASSIGN_OR_RETURN(Json spec, Json::Parse(text));
  object.Set("spec", std::move(spec));
  return object;
}

}  // namespace

// A prepared statement, finalized with it.
class SqliteJournal::Statement {
 public:
  Statement(sqlite3* database, const char* sql) {
    code_ = ::sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr);
  }
  ~Statement() { ::sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  bool ok() const { return code_ == SQLITE_OK; }
  void Bind(int index, absl::string_view text) {
    ::sqlite3_bind_text64(statement_, index, text.data(), text.size(), SQLITE_TRANSIENT,
                          SQLITE_UTF8);
  }
  void BindBytes(int index, absl::string_view bytes) {
    ::sqlite3_bind_blob64(statement_, index, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  }
  void Bind(int index, const ObjectKey& key) {
    Bind(index, key.resource);
    Bind(index + 1, key.namespace_name);
    Bind(index + 2, key.name);
  }
  void Bind(int index, int64_t value) { ::sqlite3_bind_int64(statement_, index, value); }
  int Step() { return ::sqlite3_step(statement_); }
  void Reset() { ::sqlite3_reset(statement_); }
  std::string Text(int column) const {
    const auto* const text =
        reinterpret_cast<const char*>(::sqlite3_column_text(statement_, column));
    return text == nullptr
               ? ""
               : std::string(text, static_cast<size_t>(::sqlite3_column_bytes(statement_, column)));
  }
  std::string Bytes(int column) const {
    const auto* const bytes = static_cast<const char*>(::sqlite3_column_blob(statement_, column));
    return bytes == nullptr
               ? ""
               : std::string(bytes,
                             static_cast<size_t>(::sqlite3_column_bytes(statement_, column)));
  }
  int64_t Int(int column) const { return ::sqlite3_column_int64(statement_, column); }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int code_ = SQLITE_OK;
};

SqliteJournal::SqliteJournal(std::string folder, OwnedFd lock, sqlite3* database)
    : folder_(std::move(folder)), lock_(std::move(lock)), database_(database) {}

SqliteJournal::~SqliteJournal() { ::sqlite3_close(database_); }

Status SqliteJournal::FullDisk() const {
  return ResourceExhausted("The disk of the state folder is full, so nothing was written: ",
                           folder_);
}

Status SqliteJournal::Failure(absl::string_view what) const {
  const int code = ::sqlite3_errcode(database_);
  const std::string says = ::sqlite3_errmsg(database_);
  // A quota, or a limit of the size of files, is a failed write to SQLite.
  if (code == SQLITE_FULL || ::sqlite3_extended_errcode(database_) == SQLITE_IOERR_WRITE) {
    return FullDisk();
  }
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
    return DataLoss("The state folder's file is damaged (", says, "): ", folder_,
                    "/objects.db. Move it away to start anew");
  }
  return Unavailable(what, " failed in the state folder ", folder_, ": ", says);
}

Status SqliteJournal::Execute(const char* sql) {
  if (::sqlite3_exec(database_, sql, nullptr, nullptr, nullptr) == SQLITE_OK)
    return absl::OkStatus();
  return Failure(sql);
}

StatusOr<std::unique_ptr<SqliteJournal>> SqliteJournal::Open(const std::string& folder,
                                                             int64_t max_pages) {
  RealFileSystem files;
  WEFT_RETURN_IF_ERROR(files.MakeDirectories(folder));
  // It holds secrets.
  if (::chmod(folder.c_str(), 0700) != 0) return ErrnoStatus(errno, "protect", folder);
  WEFT_ASSIGN_OR_RETURN(OwnedFd lock, LockFolder(folder));
  sqlite3* database = nullptr;
  const std::string path = JoinPath(folder, "objects.db");
  const int code = ::sqlite3_open_v2(
      path.c_str(), &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX,
      nullptr);
  std::unique_ptr<SqliteJournal> journal(new SqliteJournal(folder, std::move(lock), database));
  if (code != SQLITE_OK) return journal->Failure("Opening objects.db");
  // Full: a commit is on the disk when it returns. What was written goes early from the file that
  // grows to where freed pages are used again, so that a full disk has little left to move.
  WEFT_RETURN_IF_ERROR(
      journal->Execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA busy_timeout=5000;"
                       "PRAGMA wal_autocheckpoint=64; PRAGMA journal_size_limit=262144;"));
  WEFT_RETURN_IF_ERROR(journal->Execute(
      "CREATE TABLE IF NOT EXISTS facts(name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;"
      "CREATE TABLE IF NOT EXISTS objects(resource TEXT, namespace TEXT, name TEXT, body TEXT,"
      " PRIMARY KEY(resource, namespace, name)) WITHOUT ROWID;"
      "CREATE TABLE IF NOT EXISTS specs(resource TEXT, namespace TEXT, name TEXT, deflated BLOB,"
      " PRIMARY KEY(resource, namespace, name)) WITHOUT ROWID;"));
  journal->TakeReserve();
  if (max_pages > 0) {
    WEFT_RETURN_IF_ERROR(
        journal->Execute(absl::StrCat("PRAGMA max_page_count=", max_pages).c_str()));
  }
  return journal;
}

StatusOr<int64_t> SqliteJournal::Load(
    const std::function<void(const ObjectKey& key, Json object)>& take) {
  int64_t revision = 0;
  int64_t format = kFormat;
  Statement facts(database_, "SELECT name, value FROM facts");
  if (!facts.ok()) return Failure("Reading");
  int code = 0;
  while ((code = facts.Step()) == SQLITE_ROW) {
    if (facts.Text(0) == "revision") revision = facts.Int(1);
    if (facts.Text(0) == "format") format = facts.Int(1);
  }
  if (code != SQLITE_DONE) return Failure("Reading");
  if (format < 1 || format > kFormat) {
    return FailedPrecondition("The state folder is of another version of weft: ", folder_,
                              " has format ", format, ", this program reads up to ", kFormat);
  }
  Statement rows(database_,
                 "SELECT resource, namespace, name, body, deflated FROM objects"
                 " LEFT JOIN specs USING (resource, namespace, name)");
  if (!rows.ok()) return Failure("Reading");
  while ((code = rows.Step()) == SQLITE_ROW) {
    const ObjectKey key{rows.Text(0), rows.Text(1), rows.Text(2)};
    StatusOr<Json> object = ReadObject(rows.Text(3), rows.Bytes(4));
    if (!object.ok()) {
      return DataLoss("The state folder holds a damaged object, ", key.resource, " '",
                      key.namespace_name, "/", key.name, "': ", object.status().message());
    }
    take(key, *std::move(object));
  }
  if (code != SQLITE_DONE) return Failure("Reading");
  return revision;
}

std::string SqliteJournal::ReservePath() const { return JoinPath(folder_, "reserve"); }

bool SqliteJournal::TakeReserve() {
  struct statvfs space = {};
  if (::statvfs(folder_.c_str(), &space) != 0) return false;
  const auto whole = static_cast<off_t>(space.f_blocks) * static_cast<off_t>(space.f_frsize);
  const off_t size = std::min(kMostReserveBytes, whole / 8);
  const OwnedFd file(::open(ReservePath().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  has_reserve_ = file.is_open() && size > 0 && ::posix_fallocate(file.get(), 0, size) == 0;
  if (has_reserve_) {
    lacks_reserve_ = false;
  } else {
    ::unlink(ReservePath().c_str());
  }
  return has_reserve_;
}

void SqliteJournal::GiveReserve() {
  ::unlink(ReservePath().c_str());
  has_reserve_ = false;
  lacks_reserve_ = true;
}

Status SqliteJournal::Write(int64_t revision, absl::Span<const Change> changes) {
  const bool makes_room = std::all_of(changes.begin(), changes.end(), [](const Change& change) {
    return change.is_removal || IsTerminating(*change.object);
  });
  if (lacks_reserve_ && !makes_room && !TakeReserve()) return FullDisk();
  Status status = WriteOnce(revision, changes);
  if (!absl::IsResourceExhausted(status) || !makes_room || !has_reserve_) return status;
  GiveReserve();
  status = WriteOnce(revision, changes);
  // What was written meanwhile lies in two files: now in one, so that there is room again.
  ::sqlite3_exec(database_, "PRAGMA wal_checkpoint(TRUNCATE)", nullptr, nullptr, nullptr);
  TakeReserve();
  return status;
}

Status SqliteJournal::WriteOnce(int64_t revision, absl::Span<const Change> changes) {
  WEFT_RETURN_IF_ERROR(Execute("BEGIN IMMEDIATE"));
  Status status = WriteChanges(revision, changes);
  if (status.ok()) status = Execute("COMMIT");
  // SQLite may have rolled back by itself, so its complaint then means nothing.
  if (!status.ok()) ::sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
  return status;
}

Status SqliteJournal::WriteSpecs(absl::Span<const Change> changes) {
  Statement put(
      database_,
      "INSERT OR REPLACE INTO specs(resource, namespace, name, deflated) VALUES(?,?,?,?)");
  Statement erase(database_, "DELETE FROM specs WHERE resource=? AND namespace=? AND name=?");
  if (!put.ok() || !erase.ok()) return Failure("Writing");
  for (const Change& change : changes) {
    const Json* const held = change.previous == nullptr ? nullptr : LargeSpecOf(*change.previous);
    const Json* const next = change.is_removal ? nullptr : LargeSpecOf(*change.object);
    if (held == next || (held != nullptr && next != nullptr && SameJson(*held, *next))) continue;
    Statement& statement = next == nullptr ? erase : put;
    statement.Reset();
    statement.Bind(1, change.key);
    if (next != nullptr) statement.BindBytes(4, Deflate(next->Dump()));
    if (statement.Step() != SQLITE_DONE) return Failure("Writing");
  }
  return absl::OkStatus();
}

Status SqliteJournal::WriteChanges(int64_t revision, absl::Span<const Change> changes) {
  WEFT_RETURN_IF_ERROR(WriteSpecs(changes));
  Statement put(database_,
                "INSERT OR REPLACE INTO objects(resource, namespace, name, body) VALUES(?,?,?,?)");
  Statement erase(database_, "DELETE FROM objects WHERE resource=? AND namespace=? AND name=?");
  Statement fact(database_, "INSERT OR REPLACE INTO facts(name, value) VALUES(?,?)");
  if (!put.ok() || !erase.ok() || !fact.ok()) return Failure("Writing");
  for (const Change& change : changes) {
    Statement& statement = change.is_removal ? erase : put;
    statement.Reset();
    statement.Bind(1, change.key);
    if (!change.is_removal) statement.Bind(4, BodyOf(*change.object));
    if (statement.Step() != SQLITE_DONE) return Failure("Writing");
  }
  for (const auto& [name, value] : {std::pair<const char*, int64_t>{"revision", revision},
                                    std::pair<const char*, int64_t>{"format", kFormat}}) {
    fact.Reset();
    fact.Bind(1, name);
    fact.Bind(2, value);
    if (fact.Step() != SQLITE_DONE) return Failure("Writing");
  }
  return absl::OkStatus();
}

}  // namespace weft::platform
