// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/server_identity.h"

#include <cerrno>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/numbers.h"

#include "base/files.h"
#include "base/posix_file.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kRenewal = absl::Hours(24 * 30);
constexpr absl::Duration kValidity = absl::Hours(24 * 365);

StatusOr<ServerIdentity> MakeServerIdentity(absl::Time now) {
  ServerIdentity made;
  WEFT_ASSIGN_OR_RETURN(const Identity authority, MakeAuthority("weft-local-ca", now, kValidity));
  CertificateRequest request;
  request.common_name = "weft-local";
  request.dns_names = {"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"};
  request.addresses = {"127.0.0.1", "::1"};
  request.validity = kValidity;
  WEFT_ASSIGN_OR_RETURN(made.identity, IssueServerCertificate(authority, request, now));
  made.authority_pem = authority.certificate_pem;
  made.token = RandomHex(32);
  return made;
}

// On a full disk what is written already still counts.
bool HoldsPrivately(const std::string& path, const std::string& text) {
  struct stat file = {};
  if (::stat(path.c_str(), &file) != 0 || (file.st_mode & 077) != 0) return false;
  RealFileSystem files;
  const StatusOr<std::string> held = ReadFile(files, path, 1 << 20);
  return held.ok() && *held == text;
}

}  // namespace

Status WritePrivateFile(const std::string& path, const std::string& text) {
  if (HoldsPrivately(path, text)) return absl::OkStatus();
  const std::string temporary = absl::StrCat(path, ".", ::getpid(), ".tmp");
  ::unlink(temporary.c_str());
  OwnedFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.is_open()) return ErrnoStatus(errno, "write", temporary);
  const std::unique_ptr<WritableFile> file = AdoptWritable(std::move(fd), temporary);
  Status status = file->Append(text);
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->Close();
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) {
    status = ErrnoStatus(errno, "write", path);
  }
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

StatusOr<ServerIdentity> LoadServerIdentity(const std::string& folder, absl::Time now) {
  RealFileSystem files;
  ServerIdentity identity;
  const std::pair<const char*, std::string*> parts[] = {
      {"ca.crt", &identity.authority_pem},
      {"server.crt", &identity.identity.certificate_pem},
      {"server.key", &identity.identity.key_pem},
      {"token", &identity.token}};
  bool is_whole = true;
  for (const auto& [name, target] : parts) {
    StatusOr<std::string> text = ReadFile(files, JoinPath(folder, name), 1 << 20);
    if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
    is_whole = is_whole && text.ok() && !text->empty();
    if (text.ok()) *target = *std::move(text);
  }
  const StatusOr<absl::Time> end = CertificateEnd(identity.identity.certificate_pem);
  if (!is_whole || !end.ok() || *end < now + kRenewal) {
    WEFT_ASSIGN_OR_RETURN(identity, MakeServerIdentity(now));
    WEFT_RETURN_IF_ERROR(files.MakeDirectories(folder));
    for (const auto& [name, target] : parts) {
      WEFT_RETURN_IF_ERROR(WritePrivateFile(JoinPath(folder, name), *target));
    }
  }
  const StatusOr<std::string> port = ReadFile(files, JoinPath(folder, "port"), 64);
  if (port.ok() && !absl::SimpleAtoi(*port, &identity.port)) identity.port = 0;
  return identity;
}

Status SaveServerPort(const std::string& folder, int port) {
  return WritePrivateFile(JoinPath(folder, "port"), absl::StrCat(port, "\n"));
}

}  // namespace weft::platform
