// SPDX-License-Identifier: Apache-2.0
#include "supervisor/kept_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft::supervisor {
namespace {

constexpr uint64_t kMagic = 0x3154504b54464557;  // "WEFTKPT1"
constexpr uint64_t kPage = 4096;
constexpr uint64_t kMostNotes = uint64_t{4} << 30;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

using Word = std::atomic<uint64_t>;
static_assert(Word::is_always_lock_free);

StatusOr<OwnedFd> MakeFile(const char* name, uint64_t bytes) {
  OwnedFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.is_open()) return ErrnoStatus(errno, "make memory to keep", name);
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return ErrnoStatus(errno, "size memory to keep", name);
  }
  return fd;
}

}  // namespace

// Both processes are of one program, or at least the magic number says that they agree.
struct KeptMemory::Header {
  Word magic;
  Word committed;   // the number of the last commit
  Word notes_used;  // bytes of notes that may matter
};

struct KeptMemory::Place {
  Word commit;  // that made it valid; 0: none
  uint64_t offset;
  uint64_t bytes;
  uint32_t present;
  uint32_t num_description;
  int64_t description[kMostDescription];
};

struct KeptMemory::Entry {
  char name[kMostName + 1];  // empty: the entry is free
  Place places[2];
};

// Followed by the bytes, then by room up to a multiple of 8.
struct KeptMemory::Note {
  Word commit;  // the one that makes it void; 0 until it is whole
  uint64_t offset;
  uint64_t bytes;
};

StatusOr<KeptFiles> MakeKeptFiles(uint64_t data_bytes) {
  KeptFiles files;
  WEFT_ASSIGN_OR_RETURN(files.data, MakeFile("weft-kept", data_bytes));
  const uint64_t directory = kPage + KeptMemory::kMostEntries * uint64_t{512};
  WEFT_ASSIGN_OR_RETURN(
      files.control,
      MakeFile("weft-kept-directory", directory + std::min(kMostNotes, data_bytes / 4) + kPage));
  return files;
}

KeptMemory::Header& KeptMemory::header() const { return *reinterpret_cast<Header*>(control_); }
KeptMemory::Entry& KeptMemory::entry(uint32_t number) const {
  static_assert(sizeof(Entry) <= 512);
  return *reinterpret_cast<Entry*>(control_ + kPage + uint64_t{512} * number);
}
std::byte* KeptMemory::notes() const { return control_ + kPage + uint64_t{512} * kMostEntries; }
uint64_t KeptMemory::most_notes() const {
  return control_bytes_ - static_cast<uint64_t>(notes() - control_);
}

StatusOr<std::unique_ptr<KeptMemory>> KeptMemory::Open(int control_fd, std::byte* data,
                                                       uint64_t data_bytes) {
  struct stat stat = {};
  if (fstat(control_fd, &stat) != 0) return ErrnoStatus(errno, "look at", "the kept directory");
  const auto bytes = static_cast<uint64_t>(stat.st_size);
  if (bytes < kPage + uint64_t{512} * kMostEntries + kPage) {
    return DataLoss("The kept directory has ", bytes, " bytes, expected more");
  }
  void* const control = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, control_fd, 0);
  if (control == MAP_FAILED) return ErrnoStatus(errno, "map", "the kept directory");
  madvise(control, bytes, MADV_DONTFORK);
  std::unique_ptr<KeptMemory> memory(
      new KeptMemory(static_cast<std::byte*>(control), bytes, data, data_bytes));
  WEFT_RETURN_IF_ERROR(memory->Recover());
  return memory;
}

KeptMemory::~KeptMemory() { munmap(control_, control_bytes_); }

// Killed at any point of this, the next process does it again with the same outcome: the header's
// number does not change here.
Status KeptMemory::Recover() {
  if (header().magic.load() == 0) {
    header().committed.store(1);
    header().notes_used.store(0);
    header().magic.store(kMagic);
    return absl::OkStatus();
  }
  WEFT_RETURN_IF_ERROR(CheckHeader());
  WEFT_RETURN_IF_ERROR(PutBack());
  return ReadDirectory();
}

Status KeptMemory::CheckHeader() const {
  if (header().magic.load() != kMagic) {
    return DataLoss("The kept directory is of another program: it begins with ",
                    header().magic.load());
  }
  if (header().notes_used.load() > most_notes()) {
    return DataLoss("The kept directory has ", header().notes_used.load(),
                    " bytes of notes, expected at most ", most_notes());
  }
  return absl::OkStatus();
}

Status KeptMemory::PutBack() {
  const uint64_t committed = header().committed.load();
  const uint64_t used = header().notes_used.load();
  std::vector<const Note*> valid;
  for (uint64_t at = 0; at < used;) {
    if (used - at < sizeof(Note)) return DataLoss("A note of old bytes is cut off");
    const auto* const note = reinterpret_cast<const Note*>(notes() + at);
    const uint64_t room = used - at - sizeof(Note);
    if (note->bytes > room || !Lies(note->offset, note->bytes)) {
      return DataLoss("A note of old bytes is of ", note->bytes, " bytes at ", note->offset,
                      ", which is not in the kept memory");
    }
    if (note->commit.load(std::memory_order_acquire) > committed) valid.push_back(note);
    at += sizeof(Note) + (note->bytes + 7) / 8 * 8;
  }
  // The first note of a byte has what was committed: it is put back last.
  for (auto it = valid.rbegin(); it != valid.rend(); ++it) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(*it + 1);
    std::memcpy(data_ + (*it)->offset, bytes, (*it)->bytes);
  }
  rows_put_back_ = static_cast<int64_t>(valid.size());
  header().notes_used.store(0, std::memory_order_release);
  return absl::OkStatus();
}

Status KeptMemory::ReadDirectory() {
  const uint64_t committed = header().committed.load();
  absl::MutexLock lock(&mutex_);
  for (uint32_t number = 0; number < kMostEntries; ++number) {
    Entry& here = entry(number);
    if (here.name[0] == '\0') break;
    const size_t length = strnlen(here.name, sizeof(here.name));
    if (length == sizeof(here.name)) return DataLoss("A name in the kept directory has no end");
    const std::string name(here.name, length);
    numbers_[name] = number;
    const Place* current = nullptr;
    for (Place& place : here.places) {
      const uint64_t commit = place.commit.load();
      // Of a commit that did not come.
      if (commit > committed) place.commit.store(0);
      if (commit == 0 || commit > committed) continue;
      if (current == nullptr || commit > current->commit.load()) current = &place;
    }
    if (current == nullptr || current->present == 0) continue;
    if (!Lies(current->offset, current->bytes) || current->num_description > kMostDescription) {
      return DataLoss("'", name, "' is kept at ", current->offset, " in ", current->bytes,
                      " bytes, which is not in the kept memory");
    }
    found_[name] = {
        .offset = current->offset,
        .bytes = current->bytes,
        .description = {current->description, current->description + current->num_description}};
  }
  return absl::OkStatus();
}

StatusOr<uint32_t> KeptMemory::EntryOf(absl::string_view name) {
  if (name.empty() || name.size() > kMostName || name.find('\0') != absl::string_view::npos) {
    return InvalidArgument("Not a name that can be kept, of 1 to ", kMostName, " bytes: '", name,
                           "'");
  }
  absl::MutexLock lock(&mutex_);
  if (const auto known = numbers_.find(name); known != numbers_.end()) return known->second;
  const auto number = static_cast<uint32_t>(numbers_.size());
  if (number == kMostEntries) return ResourceExhausted("No more than ", kMostEntries, " are kept");
  Entry& here = entry(number);
  // From the back: the first byte is what makes the entry one.
  std::memcpy(here.name + 1, name.data() + 1, name.size() - 1);
  std::atomic_ref<char>(here.name[0]).store(name[0], std::memory_order_release);
  numbers_.emplace(name, number);
  return number;
}

void KeptMemory::Commit(absl::Span<const Change> changes) {
  absl::MutexLock lock(&mutex_);
  const uint64_t next = header().committed.load() + 1;
  for (const Change& change : changes) {
    Place* const places = entry(change.entry).places;
    // The older one: the newer is what holds until the header's word says otherwise.
    Place& place = places[places[0].commit.load() <= places[1].commit.load() ? 0 : 1];
    // Void while it is written.
    place.commit.store(0);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    place.offset = change.place.offset;
    place.bytes = change.place.bytes;
    place.present = change.present ? 1 : 0;
    const size_t count = std::min(change.place.description.size(), kMostDescription);
    place.num_description = static_cast<uint32_t>(count);
    std::copy_n(change.place.description.begin(), count, place.description);
    place.commit.store(next, std::memory_order_release);
  }
  header().committed.store(next);
  // Notes up to here are void already; their room is free.
  header().notes_used.store(0);
}

bool KeptMemory::NoteOldBytes(absl::Span<const std::pair<uint64_t, uint64_t>> ranges) {
  const uint64_t next = header().committed.load() + 1;
  uint64_t total = 0;
  for (const auto& [offset, bytes] : ranges) {
    if (!Lies(offset, bytes)) return false;
    total += sizeof(Note) + (bytes + 7) / 8 * 8;
  }
  std::byte* at = nullptr;
  {
    absl::MutexLock lock(&notes_mutex_);
    const uint64_t used = header().notes_used.load();
    if (total > most_notes() - used) return false;
    at = notes() + used;
    // Their sizes first, so that whoever reads them finds the next; void until they are whole.
    std::byte* here = at;
    for (const auto& [offset, bytes] : ranges) {
      auto* const note = reinterpret_cast<Note*>(here);
      note->commit.store(0);
      note->offset = offset;
      note->bytes = bytes;
      here += sizeof(Note) + (bytes + 7) / 8 * 8;
    }
    header().notes_used.store(used + total, std::memory_order_release);
  }
  for (const auto& [offset, bytes] : ranges) {
    auto* const note = reinterpret_cast<Note*>(at);
    std::memcpy(static_cast<void*>(note + 1), data_ + offset, bytes);
    note->commit.store(next, std::memory_order_release);
    at += sizeof(Note) + (bytes + 7) / 8 * 8;
  }
  // What the caller writes now comes after the notes, also as the compiler sees it.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return true;
}

}  // namespace weft::supervisor
