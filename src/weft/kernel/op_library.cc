// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/op_library.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <set>
#include <utility>

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/strip.h"

namespace weft {
namespace {

constexpr absl::string_view kBuildMark = "weft op library: ";
constexpr unsigned kMaxSecondsToLoad = 60;

// What the library says that it was built with, read from the file: nothing of it runs.
StatusOr<std::string> BuildOf(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return absl::ErrnoToStatus(errno, "It cannot be read");
  struct stat about {};
  std::string build;
  Status status;
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
    status = InvalidArgument("It is not a file");
  } else if (about.st_size > 0) {
    const auto size = static_cast<size_t>(about.st_size);
    void* bytes = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED) {
      status = absl::ErrnoToStatus(errno, "It cannot be read");
    } else {
      const absl::string_view text(static_cast<const char*>(bytes), size);
      const size_t at = text.find(kBuildMark);
      if (at != absl::string_view::npos) {
        const absl::string_view rest = text.substr(at + kBuildMark.size(), 512);
        build = std::string(rest.substr(0, rest.find('\0')));
      }
      munmap(bytes, size);
    }
  }
  close(file);
  WEFT_RETURN_IF_ERROR(status);
  if (build.empty()) {
    return InvalidArgument(
        "It is no op library: WEFT_OP_LIBRARY(...) of weft/kernel/op_library.h "
        "stands nowhere in it");
  }
  return build;
}

std::set<std::string> OpNames(const Catalogue& catalogue) {
  std::set<std::string> names;
  for (const OpDefinition* op : catalogue.ops().All()) names.insert(op->schema.name);
  return names;
}

// What the catalogue takes on trust from weft's own ops.
Status CheckOp(const Catalogue& catalogue, const std::string& name) {
  const OpSchema& schema = catalogue.ops().Find(name)->schema;
  const std::vector<KernelDef>* kernels = catalogue.kernels().KernelsOf(name);
  if (kernels == nullptr || kernels->empty()) {
    return InvalidArgument("Op ", name, " has no kernel");
  }
  for (const KernelDef& kernel : *kernels) {
    if (kernel.factory == nullptr) {
      return InvalidArgument("A kernel of op ", name, " has no factory");
    }
    for (const auto& [attr, types] : kernel.types) {
      const AttrSchema* declared = schema.FindAttr(attr);
      if (declared == nullptr || declared->kind != "type") {
        return InvalidArgument("A kernel of op ", name, " is for some types of '", attr,
                               "', which is no type attribute of the op");
      }
    }
  }
  return absl::OkStatus();
}

using Register = void (*)(Catalogue*);

// Loads and registers in this process.
StatusOr<std::vector<std::string>> LoadHere(const std::string& path, Catalogue* catalogue) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return InvalidArgument("It cannot be linked: ", dlerror());
  const auto register_ops = reinterpret_cast<Register>(dlsym(library, "weft_op_library_register"));
  if (register_ops == nullptr) return InvalidArgument("It has no entry: ", dlerror());
  const std::set<std::string> before = OpNames(*catalogue);
  try {
    register_ops(catalogue);
  } catch (const std::exception& error) {
    return Internal("It threw an exception while it was loaded: ", error.what());
  }
  WEFT_RETURN_IF_ERROR(catalogue->status());
  std::vector<std::string> added;
  for (const std::string& name : OpNames(*catalogue)) {
    if (before.contains(name)) continue;
    WEFT_RETURN_IF_ERROR(CheckOp(*catalogue, name));
    added.push_back(name);
  }
  if (added.empty()) return InvalidArgument("It registers no ops");
  return added;
}

void WriteAll(int file, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// In the child: says how loading went as "<code> <message>" and ends.
[[noreturn]] void TryInChild(const std::string& path, Catalogue* catalogue, int answer) {
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM}) {
    signal(number, SIG_DFL);
  }
  alarm(kMaxSecondsToLoad);
  const Status status = LoadHere(path, catalogue).status();
  WriteAll(answer, absl::StrCat(static_cast<int>(status.code()), " ", status.message()));
  _exit(0);
}

// Loads the library in a child process, whose copy of the catalogue takes what it registers.
Status Probe(const std::string& path, Catalogue* catalogue) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "It cannot be tried");
  const pid_t child = fork();
  if (child == 0) TryInChild(path, catalogue, ends[1]);
  close(ends[1]);
  std::string answer;
  char piece[4096];
  for (ssize_t got; child > 0 && (got = read(ends[0], piece, sizeof(piece))) != 0;) {
    if (got > 0) answer.append(piece, static_cast<size_t>(got));
    if (got < 0 && errno != EINTR) break;
  }
  close(ends[0]);
  if (child < 0) return absl::ErrnoToStatus(errno, "It cannot be tried");
  int ended = 0;
  while (waitpid(child, &ended, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(ended)) {
    const int number = WTERMSIG(ended);
    if (number == SIGALRM) {
      return Internal("It was not loaded within ", kMaxSecondsToLoad, " s");
    }
    return Internal("It crashes while it is loaded (", strsignal(number), ")");
  }
  if (answer.empty()) {
    return Internal("It ended the process that loaded it, with exit code ", WEXITSTATUS(ended));
  }
  absl::string_view message = answer;
  const int code = std::atoi(answer.c_str());
  message.remove_prefix(std::min(message.size(), message.find(' ') + 1));
  return Status(static_cast<absl::StatusCode>(code), message);
}

StatusOr<std::vector<std::string>> Load(const std::string& path, Catalogue* catalogue) {
  WEFT_ASSIGN_OR_RETURN(const std::string build, BuildOf(path));
  if (build != WEFT_BUILD) {
    return FailedPrecondition("It was built for another weft: it has ", build, "; here are ",
                              WEFT_BUILD);
  }
  // With a slash, so that dlopen does not search for it.
  const std::string file = path.find('/') == std::string::npos ? absl::StrCat("./", path) : path;
  WEFT_RETURN_IF_ERROR(catalogue->status());
  WEFT_RETURN_IF_ERROR(Probe(file, catalogue));
  return LoadHere(file, catalogue);
}

}  // namespace

StatusOr<std::vector<std::string>> LoadOpLibrary(const std::string& path, Catalogue* catalogue) {
  StatusOr<std::vector<std::string>> added = Load(path, catalogue);
  if (added.ok()) return added;
  return Annotate(added.status(), absl::StrCat("Op library '", path, "'"));
}

}  // namespace weft
