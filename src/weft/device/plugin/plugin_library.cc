// SPDX-License-Identifier: Apache-2.0
#include "weft/device/plugin/plugin_library.h"

#include <array>
#include <cstring>
#include <set>

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace weft::plugin {
namespace {

constexpr int kProbeMilliseconds = 60000;
constexpr int kMostDevices = 64;
constexpr absl::Duration kTrialPatience = absl::Seconds(10);

template <typename Function>
StatusOr<Function*> FindSymbol(void* library, const std::string& path, const char* name) {
  void* const symbol = dlsym(library, name);
  if (symbol == nullptr) {
    return InvalidArgument("Device library ", path, " has no function ", name,
                           ": is it a library of devices?");
  }
  return reinterpret_cast<Function*>(symbol);
}

Status CheckTable(const weft_device_api& api, const std::string& path) {
  if (api.size != sizeof(weft_device_api)) {
    return FailedPrecondition("Device library ", path, " has a table of ", api.size,
                              " bytes, expected ", sizeof(weft_device_api),
                              ": build it with this version's weft_device.h");
  }
  const bool complete = api.type && api.num_devices && api.create && api.destroy && api.allocate &&
                        api.release && api.create_stream && api.destroy_stream && api.copy_in &&
                        api.copy_out && api.copy_across && api.notify && api.create_event &&
                        api.destroy_event && api.record && api.wait && api.create_kernel &&
                        api.destroy_kernel && api.launch &&
                        (api.num_kernels == 0 || api.kernels != nullptr);
  if (!complete) return InvalidArgument("Device library ", path, " leaves out functions");
  bool is_name = api.type[0] != '\0';
  for (const char* c = api.type; *c != '\0'; ++c) is_name = is_name && absl::ascii_isupper(*c);
  if (!is_name || std::strcmp(api.type, "CPU") == 0 || std::strlen(api.type) > 32) {
    return InvalidArgument("Device library ", path, " calls its type '", api.type,
                           "', expected capital letters, and not CPU");
  }
  for (size_t i = 0; i < api.num_kernels; ++i) {
    const weft_kernel_info& kernel = api.kernels[i];
    if (kernel.op == nullptr) {
      return InvalidArgument("Device library ", path, ": kernel ", i, " names no op");
    }
    bool has_types = kernel.num_types == 0 || kernel.types != nullptr;
    for (size_t t = 0; has_types && t < kernel.num_types; ++t) {
      has_types = kernel.types[t].count == 0 || kernel.types[t].dtypes != nullptr;
    }
    if (!has_types) {
      return InvalidArgument("Device library ", path, ": kernel ", i, " of ", kernel.op,
                             " lists types that are not there");
    }
  }
  return absl::OkStatus();
}

StatusOr<const weft_device_api*> Open(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return InvalidArgument("Device library ", path,
                           " cannot be loaded: ", why != nullptr ? why : "no reason is known");
  }
  WEFT_ASSIGN_OR_RETURN(auto* version,
                        FindSymbol<uint32_t()>(library, path, "weft_device_version"));
  const uint32_t theirs = version();
  if (theirs != WEFT_DEVICE_VERSION) {
    return FailedPrecondition("Device library ", path, " is made for version ", theirs,
                              " of the device interface, this weft has version ",
                              WEFT_DEVICE_VERSION, ": build it with this version's weft_device.h");
  }
  WEFT_ASSIGN_OR_RETURN(auto* get,
                        FindSymbol<const weft_device_api*()>(library, path, "weft_device_get"));
  const weft_device_api* const api = get();
  if (api == nullptr) return InvalidArgument("Device library ", path, " gives no table");
  WEFT_RETURN_IF_ERROR(CheckTable(*api, path));
  return api;
}

// What a device is tried with: the bytes go there and come back.
struct Trial {
  std::array<char, 1000> sent = {};
  std::array<char, 1000> got = {};
  absl::Notification ended;
  int code = WEFT_OK;  // of its end
};

// Sends bytes to the device and has them back. The process ends soon: what fails is left.
Status TryMemory(const weft_device_api& api, weft_device* device, const std::string& name) {
  weft_error error = {};
  weft_stream* stream = nullptr;
  weft_event* event = nullptr;
  uint64_t address = 0;
  auto* const trial = new Trial;
  for (size_t i = 0; i < trial->sent.size(); ++i) trial->sent[i] = static_cast<char>(7 * i + 1);
  int code = api.create_stream(device, &stream, &error);
  if (code == WEFT_OK) code = api.create_event(device, &event, &error);
  if (code == WEFT_OK) code = api.allocate(device, 1024, &address, &error);
  WEFT_RETURN_IF_ERROR(ToStatus(code, error.message, name));
  if (stream == nullptr || event == nullptr)
    return InvalidArgument(name, " made no stream or event");
  if (address == 0 || address % kAddressStep != 0) {
    return InvalidArgument(name, " gives memory at ", address, ", expected a multiple of ",
                           kAddressStep);
  }
  code = api.copy_in(stream, trial->sent.data(), address, trial->sent.size(), &error);
  if (code == WEFT_OK) code = api.record(stream, event, &error);
  if (code == WEFT_OK) code = api.wait(stream, event, &error);
  if (code == WEFT_OK)
    code = api.copy_out(stream, address, trial->got.data(), trial->got.size(), &error);
  const auto ended = [](void* argument, int result, const char*) {
    auto* const told = static_cast<Trial*>(argument);
    told->code = result;
    told->ended.Notify();
  };
  if (code == WEFT_OK) code = api.notify(stream, ended, trial, &error);
  WEFT_RETURN_IF_ERROR(ToStatus(code, error.message, name));
  if (!trial->ended.WaitForNotificationWithTimeout(kTrialPatience)) {
    return InvalidArgument(name, " did not copy ", trial->sent.size(), " bytes within ",
                           absl::FormatDuration(kTrialPatience));
  }
  WEFT_RETURN_IF_ERROR(ToStatus(trial->code, nullptr, name));
  if (trial->got != trial->sent) return InvalidArgument(name, " gave other bytes than it was sent");
  api.release(device, address);
  api.destroy_event(event);
  api.destroy_stream(stream);
  delete trial;
  return absl::OkStatus();
}

// Makes each device, tries it and ends it again.
Status TryDevices(const weft_device_api& api, const std::string& path) {
  const int count = api.num_devices();
  if (count < 1 || count > kMostDevices) {
    return InvalidArgument("Device library ", path, " has ", count, " devices, expected 1 to ",
                           kMostDevices);
  }
  std::set<int32_t> names;
  for (int i = 0; i < count; ++i) {
    weft_device* device = nullptr;
    weft_device_properties properties = {};
    weft_error error = {};
    const int code = api.create(i, &device, &properties, &error);
    WEFT_RETURN_IF_ERROR(
        ToStatus(code, error.message, absl::StrCat("Device library ", path, ", device ", i)));
    if (device == nullptr) return InvalidArgument("Device library ", path, " made no device ", i);
    if (properties.index < 0 || !names.insert(properties.index).second) {
      return InvalidArgument("Device library ", path,
                             " has two devices of one name, or a bad one: ", api.type, ":",
                             properties.index);
    }
    if (properties.memory_bytes == 0) {
      return InvalidArgument("Device library ", path, " says that ", api.type, ":",
                             properties.index, " has no memory");
    }
    WEFT_RETURN_IF_ERROR(TryMemory(
        api, device,
        absl::StrCat("Device library ", path, ", device ", api.type, ":", properties.index)));
    api.destroy(device);
  }
  return absl::OkStatus();
}

// What the child tells: the code, then the message.
void Tell(int pipe, const Status& status) {
  const std::string text =
      absl::StrCat(static_cast<int>(status.code()), " ", status.message().substr(0, 2000));
  if (write(pipe, text.data(), text.size()) < 0) _exit(1);
}

// All that the child wrote until it ended or the time was up.
std::string ReadAll(int pipe, bool* in_time) {
  std::string text;
  char part[4096];
  pollfd ready{.fd = pipe, .events = POLLIN, .revents = 0};
  while (true) {
    const int polled = poll(&ready, 1, kProbeMilliseconds);
    if (polled < 0 && errno == EINTR) continue;
    *in_time = polled > 0;
    if (polled <= 0) return text;
    const ssize_t got = read(pipe, part, sizeof(part));
    if (got <= 0) return text;
    text.append(part, static_cast<size_t>(got));
  }
}

// Does all of it in a child process first.
Status Probe(const std::string& path) {
  int pipes[2];
  if (pipe(pipes) != 0) return Internal("No pipe: ", std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) return Internal("No process to try ", path, " in: ", std::strerror(errno));
  if (child == 0) {
    close(pipes[0]);
    for (const int signal_number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL})
      signal(signal_number, SIG_DFL);
    StatusOr<const weft_device_api*> api = Open(path);
    Tell(pipes[1], api.ok() ? TryDevices(**api, path) : api.status());
    _exit(0);
  }
  close(pipes[1]);
  bool in_time = false;
  const std::string text = ReadAll(pipes[0], &in_time);
  close(pipes[0]);
  if (!in_time) kill(child, SIGKILL);
  int ended = 0;
  while (waitpid(child, &ended, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    return Internal("Device library ", path, " did not answer within ", kProbeMilliseconds / 1000,
                    " s when it was tried");
  }
  if (WIFSIGNALED(ended)) {
    return Internal("Device library ", path,
                    " crashed when it was tried: ", strsignal(WTERMSIG(ended)));
  }
  const size_t space = text.find(' ');
  if (space == std::string::npos) {
    return Internal("Device library ", path, " ended the process that tried it, with ",
                    WEXITSTATUS(ended));
  }
  const int code = std::atoi(text.c_str());
  if (code == 0) return absl::OkStatus();
  return Status(static_cast<absl::StatusCode>(code), text.substr(space + 1));
}

}  // namespace

Status ToStatus(int code, const char* message, absl::string_view what) {
  if (code == WEFT_OK) return absl::OkStatus();
  // Unavailable would make clients try again for ever: a device does not come back by itself.
  const bool known = code > 0 && code != WEFT_DEVICE_LOST &&
                     code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  const size_t length = message == nullptr ? 0 : strnlen(message, sizeof(weft_error::message));
  return Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kInternal,
                absl::StrCat(what, ": ",
                             length > 0 ? absl::string_view(message, length)
                                        : absl::string_view("the device library gave no reason")));
}

StatusOr<const weft_device_api*> OpenLibrary(const std::string& path) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) {
    return NotFound("Device library ", path, ": ", std::strerror(errno));
  }
  // Without a slash dlopen would look elsewhere.
  const std::string full = path.find('/') == std::string::npos ? absl::StrCat("./", path) : path;
  WEFT_RETURN_IF_ERROR(Probe(full));
  return Open(full);
}

}  // namespace weft::plugin
