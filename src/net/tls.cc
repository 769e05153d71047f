// SPDX-License-Identifier: Apache-2.0
#include "net/tls.h"

#include <algorithm>
#include <cerrno>
#include <climits>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include "net/openssl_handles.h"

namespace weft {

std::string TakeOpensslError() {
  std::string text;
  for (unsigned long code = ::ERR_get_error(); code != 0; code = ::ERR_get_error()) {
    const char* const reason = ::ERR_reason_error_string(code);
    absl::StrAppend(&text, text.empty() ? "" : ", ", reason == nullptr ? "unknown error" : reason);
  }
  return text.empty() ? "unknown error" : text;
}

BioPtr MemoryBio(const std::string& text) {
  return BioPtr(::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &::BIO_free);
}

namespace {

int SocketOf(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(::BIO_get_data(bio))); }

int Transfer(BIO* bio, ssize_t count) {
  BIO_clear_retry_flags(bio);
  if (count >= 0) return static_cast<int>(count);
  return errno == EAGAIN || errno == EINTR ? -2 : -1;
}

int SendSome(BIO* bio, const char* data, int size) {
  // OpenSSL's own would raise SIGPIPE when the peer has gone.
  const int result =
      Transfer(bio, ::send(SocketOf(bio), data, static_cast<size_t>(size), MSG_NOSIGNAL));
  if (result == -2) BIO_set_retry_write(bio);
  return std::max(result, -1);
}

int ReceiveSome(BIO* bio, char* buffer, int size) {
  const int result = Transfer(bio, ::recv(SocketOf(bio), buffer, static_cast<size_t>(size), 0));
  if (result == -2) BIO_set_retry_read(bio);
  return std::max(result, -1);
}

long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

// The socket stays its owner's.
BIO* SocketBio(int fd) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const made = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    ::BIO_meth_set_write(made, &SendSome);
    ::BIO_meth_set_read(made, &ReceiveSome);
    ::BIO_meth_set_ctrl(made, &Control);
    return made;
  }();
  BIO* const bio = ::BIO_new(method);
  ::BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(fd)));
  ::BIO_set_init(bio, 1);
  return bio;
}

Status UseCertificate(SSL_CTX* context, const std::string& certificate_pem,
                      const std::string& key_pem) {
  const BioPtr certificate_bio = MemoryBio(certificate_pem);
  const X509Ptr certificate(::PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr),
                            &::X509_free);
  if (certificate == nullptr || ::SSL_CTX_use_certificate(context, certificate.get()) != 1) {
    return InvalidArgument("This is no certificate in PEM form: ", TakeOpensslError());
  }
  // What stands behind the first one leads to the authority.
  while (X509* const next = ::PEM_read_bio_X509(certificate_bio.get(), nullptr, nullptr, nullptr)) {
    ::SSL_CTX_add_extra_chain_cert(context, next);
  }
  ::ERR_clear_error();
  const BioPtr key_bio = MemoryBio(key_pem);
  const KeyPtr key(::PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr),
                   &::EVP_PKEY_free);
  if (key == nullptr || ::SSL_CTX_use_PrivateKey(context, key.get()) != 1 ||
      ::SSL_CTX_check_private_key(context) != 1) {
    return InvalidArgument("This is not the certificate's private key in PEM form: ",
                           TakeOpensslError());
  }
  return absl::OkStatus();
}

Status TrustAuthority(SSL_CTX* context, const std::string& pem) {
  X509_STORE* const store = ::SSL_CTX_get_cert_store(context);
  const BioPtr bio = MemoryBio(pem);
  int count = 0;
  while (true) {
    const X509Ptr certificate(::PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr),
                              &::X509_free);
    if (certificate == nullptr) break;
    ::X509_STORE_add_cert(store, certificate.get());
    ++count;
  }
  ::ERR_clear_error();
  if (count == 0) return InvalidArgument("The certificate authority is no certificate in PEM form");
  return absl::OkStatus();
}

}  // namespace

TlsSession::~TlsSession() { ::SSL_free(ssl_); }

ssize_t TlsSession::Outcome(int result) {
  wants_write_ = false;
  if (result > 0) return result;
  const int saved_errno = errno;
  switch (::SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_WRITE:
      wants_write_ = true;
      errno = EAGAIN;
      return -1;
    case SSL_ERROR_WANT_READ:
      errno = EAGAIN;
      return -1;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    case SSL_ERROR_SYSCALL:
      if (saved_errno != 0) {
        errno = saved_errno;
        return -1;
      }
      return 0;
    default: {
      const long verify = ::SSL_get_verify_result(ssl_);
      error_ = TakeOpensslError();
      if (verify != X509_V_OK) error_ = ::X509_verify_cert_error_string(verify);
      errno = EPROTO;
      return -1;
    }
  }
}

ssize_t TlsSession::Read(char* buffer, size_t size) {
  ::ERR_clear_error();
  errno = 0;
  return Outcome(::SSL_read(ssl_, buffer, static_cast<int>(std::min<size_t>(size, INT_MAX))));
}

ssize_t TlsSession::Write(const char* data, size_t size) {
  ::ERR_clear_error();
  errno = 0;
  return Outcome(::SSL_write(ssl_, data, static_cast<int>(std::min<size_t>(size, INT_MAX))));
}

void TlsSession::Close() {
  ::ERR_clear_error();
  ::SSL_shutdown(ssl_);
}

TlsConfig::~TlsConfig() { ::SSL_CTX_free(context_); }

StatusOr<std::shared_ptr<TlsConfig>> TlsConfig::Server(const std::string& certificate_pem,
                                                       const std::string& key_pem,
                                                       const TlsPeerRule& clients) {
  SSL_CTX* const context = ::SSL_CTX_new(::TLS_server_method());
  std::shared_ptr<TlsConfig> config(new TlsConfig(context));
  ::SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  ::SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
  WEFT_RETURN_IF_ERROR(UseCertificate(context, certificate_pem, key_pem));
  config->clients_ = clients;
  if (clients.authority_pem.empty()) return config;
  WEFT_RETURN_IF_ERROR(TrustAuthority(context, clients.authority_pem));
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Sessions that are taken up again would not be asked.
  ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  if (!clients.common_name.empty()) {
    // The name of a client without alternative names is its common name.
    ::X509_VERIFY_PARAM_set1_host(::SSL_CTX_get0_param(context), clients.common_name.c_str(),
                                  clients.common_name.size());
  }
  return config;
}

Status TlsConfig::Renew(const std::string& certificate_pem, const std::string& key_pem) {
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<TlsConfig> next,
                        Server(certificate_pem, key_pem, clients_));
  absl::MutexLock lock(&mutex_);
  absl::MutexLock lock_next(&next->mutex_);
  std::swap(context_, next->context_);
  return absl::OkStatus();
}

Status TlsConfig::PreferSpeed() {
  absl::MutexLock lock(&mutex_);
  if (::SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION) == 1 &&
      ::SSL_CTX_set_ciphersuites(context_,
                                 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                                 "TLS_CHACHA20_POLY1305_SHA256") == 1) {
    return absl::OkStatus();
  }
  return Internal("This OpenSSL has no TLS 1.3: ", TakeOpensslError());
}

StatusOr<SSL*> TlsConfig::NewSession() const {
  absl::MutexLock lock(&mutex_);
  SSL* const ssl = ::SSL_new(context_);
  if (ssl == nullptr) return Internal("Cannot make a TLS session: ", TakeOpensslError());
  return ssl;
}

void TlsConfig::ExpectServer(SSL* ssl, const std::string& host) const {
  ::SSL_set_connect_state(ssl);
  const std::string& name = server_name_.empty() ? host : server_name_;
  // An address is compared with the certificate's addresses, and is not sent as a name.
  if (::X509_VERIFY_PARAM_set1_ip_asc(::SSL_get0_param(ssl), name.c_str()) != 1) {
    ::ERR_clear_error();
    ::SSL_set_tlsext_host_name(ssl, name.c_str());
    ::SSL_set1_host(ssl, name.c_str());
  }
}

StatusOr<std::shared_ptr<TlsConfig>> TlsConfig::Client(const TlsClientOptions& options) {
  SSL_CTX* const context = ::SSL_CTX_new(::TLS_client_method());
  std::shared_ptr<TlsConfig> config(new TlsConfig(context));
  config->server_name_ = options.server_name;
  ::SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  ::SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);  // 34 KB of each idle connection
  if (!options.certificate_pem.empty()) {
    WEFT_RETURN_IF_ERROR(UseCertificate(context, options.certificate_pem, options.key_pem));
  }
  if (options.skip_verification) return config;
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  if (options.authority_pem.empty()) {
    ::SSL_CTX_set_default_verify_paths(context);
  } else {
    WEFT_RETURN_IF_ERROR(TrustAuthority(context, options.authority_pem));
  }
  return config;
}

StatusOr<std::unique_ptr<TlsSession>> TlsConfig::Accept(int fd) const {
  WEFT_ASSIGN_OR_RETURN(SSL* const ssl, NewSession());
  BIO* const bio = SocketBio(fd);
  ::SSL_set_bio(ssl, bio, bio);
  ::SSL_set_accept_state(ssl);
  return std::unique_ptr<TlsSession>(new TlsSession(ssl));
}

StatusOr<std::unique_ptr<TlsSession>> TlsConfig::Connect(int fd, const std::string& host) const {
  WEFT_ASSIGN_OR_RETURN(SSL* const ssl, NewSession());
  BIO* const bio = SocketBio(fd);
  ::SSL_set_bio(ssl, bio, bio);
  ExpectServer(ssl, host);
  return std::unique_ptr<TlsSession>(new TlsSession(ssl));
}

}  // namespace weft
