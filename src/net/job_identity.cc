// SPDX-License-Identifier: Apache-2.0
#include "net/job_identity.h"

#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "absl/time/clock.h"

#include "base/posix_file.h"
#include "net/certificate.h"
#include "net/openssl_handles.h"

namespace weft {
namespace {

constexpr uint64_t kMostFileBytes = 1 << 20;

X509Ptr ParseCertificate(const std::string& pem) {
  const BioPtr bio = MemoryBio(pem);
  X509Ptr certificate(::PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), &::X509_free);
  return certificate;
}

std::string FirstDnsName(X509* certificate) {
  auto* const names = static_cast<GENERAL_NAMES*>(
      ::X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  std::string first;
  for (int i = 0; first.empty() && i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_DNS) continue;
    first.assign(reinterpret_cast<const char*>(::ASN1_STRING_get0_data(name->d.dNSName)),
                 static_cast<size_t>(::ASN1_STRING_length(name->d.dNSName)));
  }
  ::GENERAL_NAMES_free(names);
  return first;
}

// Why the authority does not vouch for the certificate at that time; empty if it does.
std::string WhyNotTrusted(X509* authority, X509* certificate, absl::Time now) {
  const std::unique_ptr<X509_STORE, decltype(&::X509_STORE_free)> store(::X509_STORE_new(),
                                                                        &::X509_STORE_free);
  const std::unique_ptr<X509_STORE_CTX, decltype(&::X509_STORE_CTX_free)> context(
      ::X509_STORE_CTX_new(), &::X509_STORE_CTX_free);
  ::X509_STORE_add_cert(store.get(), authority);
  ::X509_STORE_CTX_init(context.get(), store.get(), certificate, nullptr);
  ::X509_STORE_CTX_set_time(context.get(), 0, absl::ToTimeT(now));
  if (::X509_verify_cert(context.get()) == 1) return "";
  return ::X509_verify_cert_error_string(::X509_STORE_CTX_get_error(context.get()));
}

Status WriteNew(const std::string& path, const std::string& text, mode_t mode) {
  const OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd.is_open()) return ErrnoStatus(errno, "create", path);
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(fd.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoStatus(errno, "write", path);
    done += static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<JobIdentity> MakeJobIdentity(const std::string& name, absl::Time now,
                                      absl::Duration validity) {
  WEFT_ASSIGN_OR_RETURN(const Identity authority, MakeAuthority("weft job", now, validity));
  CertificateRequest request;
  request.common_name = "weft task";
  request.dns_names = {name};
  request.validity = validity;
  request.for_clients_too = true;
  WEFT_ASSIGN_OR_RETURN(Identity task, IssueServerCertificate(authority, request, now));
  return JobIdentity{authority.certificate_pem, std::move(task.certificate_pem),
                     std::move(task.key_pem), name};
}

StatusOr<JobIdentity> ReadJobIdentity(FileSystem& files, const std::string& folder,
                                      absl::Time now) {
  JobIdentity identity;
  const std::string authority_path = JoinPath(folder, kJobAuthorityFile);
  const std::string certificate_path = JoinPath(folder, kJobCertificateFile);
  WEFT_ASSIGN_OR_RETURN(identity.authority_pem, ReadFile(files, authority_path, kMostFileBytes));
  WEFT_ASSIGN_OR_RETURN(identity.certificate_pem,
                        ReadFile(files, certificate_path, kMostFileBytes));
  WEFT_ASSIGN_OR_RETURN(identity.key_pem,
                        ReadFile(files, JoinPath(folder, kJobKeyFile), kMostFileBytes));
  const X509Ptr authority = ParseCertificate(identity.authority_pem);
  const X509Ptr certificate = ParseCertificate(identity.certificate_pem);
  for (const auto& [held, path] :
       {std::pair{&authority, &authority_path}, std::pair{&certificate, &certificate_path}}) {
    if (*held == nullptr) {
      return InvalidArgument("This is no certificate in PEM form: '", *path,
                             "': ", TakeOpensslError());
    }
  }
  const std::string why = WhyNotTrusted(authority.get(), certificate.get(), now);
  if (!why.empty()) {
    return InvalidArgument("The certificate '", certificate_path, "' is not accepted with '",
                           authority_path, "': ", why);
  }
  identity.name = FirstDnsName(certificate.get());
  if (identity.name.empty()) {
    return InvalidArgument("The certificate '", certificate_path,
                           "' has no DNS name, by which tasks of one job know each other");
  }
  // A key of another certificate is found here rather than by the first connection.
  const Status usable = MakeJobTls(identity).status();
  return usable.ok() ? StatusOr<JobIdentity>(std::move(identity)) : Annotate(usable, folder);
}

StatusOr<std::optional<JobIdentity>> JobIdentityFromEnvironment() {
  const char* const folder = std::getenv("WEFT_TASK_TLS");
  if (folder == nullptr || *folder == '\0') return std::nullopt;
  RealFileSystem files;
  StatusOr<JobIdentity> identity = ReadJobIdentity(files, folder, absl::Now());
  if (!identity.ok()) return Annotate(identity.status(), "WEFT_TASK_TLS");
  return std::optional<JobIdentity>(*std::move(identity));
}

Status WriteJobIdentity(const JobIdentity& identity, const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return ErrnoStatus(errno, "make the folder", folder);
  }
  WEFT_RETURN_IF_ERROR(WriteNew(JoinPath(folder, kJobKeyFile), identity.key_pem, 0600));
  WEFT_RETURN_IF_ERROR(
      WriteNew(JoinPath(folder, kJobCertificateFile), identity.certificate_pem, 0600));
  return WriteNew(JoinPath(folder, kJobAuthorityFile), identity.authority_pem, 0600);
}

StatusOr<JobTls> MakeJobTls(const JobIdentity& identity) {
  JobTls tls;
  WEFT_ASSIGN_OR_RETURN(tls.server, TlsConfig::Server(identity.certificate_pem, identity.key_pem,
                                                      {.authority_pem = identity.authority_pem,
                                                       .common_name = identity.name}));
  TlsClientOptions client;
  client.authority_pem = identity.authority_pem;
  client.certificate_pem = identity.certificate_pem;
  client.key_pem = identity.key_pem;
  client.server_name = identity.name;
  WEFT_ASSIGN_OR_RETURN(tls.client, TlsConfig::Client(client));
  WEFT_RETURN_IF_ERROR(tls.server->PreferSpeed());
  WEFT_RETURN_IF_ERROR(tls.client->PreferSpeed());
  return tls;
}

}  // namespace weft
