// SPDX-License-Identifier: Apache-2.0
#include "net/certificate.h"

#include <openssl/ec.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <time.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"

#include "net/openssl_handles.h"

namespace weft {
namespace {

Status Failed(absl::string_view what) {
  return Internal("Cannot ", what, " a certificate: ", TakeOpensslError());
}

std::string TextOf(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : "";
}

StatusOr<Identity> ToPem(X509* certificate, EVP_PKEY* key) {
  const BioPtr certificate_bio(::BIO_new(::BIO_s_mem()), &::BIO_free);
  const BioPtr key_bio(::BIO_new(::BIO_s_mem()), &::BIO_free);
  if (::PEM_write_bio_X509(certificate_bio.get(), certificate) != 1 ||
      ::PEM_write_bio_PrivateKey(key_bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Failed("write");
  }
  return Identity{TextOf(certificate_bio.get()), TextOf(key_bio.get())};
}

Status AddExtension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  ::X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* const extension = ::X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  if (extension == nullptr) return Failed("extend");
  ::X509_add_ext(certificate, extension, -1);
  ::X509_EXTENSION_free(extension);
  return absl::OkStatus();
}

// All but the extensions and the signature.
StatusOr<X509Ptr> Draft(EVP_PKEY* key, const std::string& common_name, absl::Time now,
                        absl::Duration validity) {
  X509Ptr certificate(::X509_new(), &::X509_free);
  unsigned char serial[16];
  if (certificate == nullptr || ::RAND_bytes(serial, sizeof(serial)) != 1) return Failed("make");
  serial[0] &= 0x7f;
  BIGNUM* const number = ::BN_bin2bn(serial, sizeof(serial), nullptr);
  ::BN_to_ASN1_INTEGER(number, ::X509_get_serialNumber(certificate.get()));
  ::BN_free(number);
  ::X509_set_version(certificate.get(), 2);
  // Clocks of a cluster differ a little.
  ::ASN1_TIME_set(::X509_getm_notBefore(certificate.get()), absl::ToTimeT(now - absl::Minutes(5)));
  ::ASN1_TIME_set(::X509_getm_notAfter(certificate.get()), absl::ToTimeT(now + validity));
  ::X509_set_pubkey(certificate.get(), key);
  X509_NAME* const name = ::X509_get_subject_name(certificate.get());
  ::X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(common_name.data()),
                               static_cast<int>(common_name.size()), -1, 0);
  return certificate;
}

StatusOr<KeyPtr> MakeKey() {
  KeyPtr key(::EVP_EC_gen("P-256"), &::EVP_PKEY_free);
  if (key == nullptr) return Failed("make the key of");
  return key;
}

}  // namespace

StatusOr<Identity> MakeAuthority(const std::string& common_name, absl::Time now,
                                 absl::Duration validity) {
  WEFT_ASSIGN_OR_RETURN(const KeyPtr key, MakeKey());
  WEFT_ASSIGN_OR_RETURN(const X509Ptr certificate, Draft(key.get(), common_name, now, validity));
  ::X509_set_issuer_name(certificate.get(), ::X509_get_subject_name(certificate.get()));
  for (const auto& [id, value] : {std::pair{NID_basic_constraints, "critical,CA:TRUE"},
                                  std::pair{NID_key_usage, "critical,keyCertSign,cRLSign"},
                                  std::pair{NID_subject_key_identifier, "hash"}}) {
    WEFT_RETURN_IF_ERROR(AddExtension(certificate.get(), certificate.get(), id, value));
  }
  if (::X509_sign(certificate.get(), key.get(), ::EVP_sha256()) == 0) return Failed("sign");
  return ToPem(certificate.get(), key.get());
}

StatusOr<Identity> IssueServerCertificate(const Identity& authority,
                                          const CertificateRequest& request, absl::Time now) {
  const BioPtr issuer_bio = MemoryBio(authority.certificate_pem);
  const X509Ptr issuer(::PEM_read_bio_X509(issuer_bio.get(), nullptr, nullptr, nullptr),
                       &::X509_free);
  const BioPtr issuer_key_bio = MemoryBio(authority.key_pem);
  const KeyPtr issuer_key(
      ::PEM_read_bio_PrivateKey(issuer_key_bio.get(), nullptr, nullptr, nullptr), &::EVP_PKEY_free);
  if (issuer == nullptr || issuer_key == nullptr) return Failed("read the authority of");
  WEFT_ASSIGN_OR_RETURN(const KeyPtr key, MakeKey());
  WEFT_ASSIGN_OR_RETURN(const X509Ptr certificate,
                        Draft(key.get(), request.common_name, now, request.validity));
  ::X509_set_issuer_name(certificate.get(), ::X509_get_subject_name(issuer.get()));
  std::vector<std::string> names;
  for (const std::string& name : request.dns_names) names.push_back(absl::StrCat("DNS:", name));
  for (const std::string& address : request.addresses)
    names.push_back(absl::StrCat("IP:", address));
  for (const auto& [id, value] :
       {std::pair<int, std::string>{NID_basic_constraints, "critical,CA:FALSE"},
        std::pair<int, std::string>{NID_key_usage, "critical,digitalSignature,keyEncipherment"},
        std::pair<int, std::string>{
            NID_ext_key_usage, request.for_clients_too ? "serverAuth,clientAuth" : "serverAuth"},
        std::pair<int, std::string>{NID_authority_key_identifier, "keyid"},
        std::pair<int, std::string>{NID_subject_alt_name, absl::StrJoin(names, ",")}}) {
    WEFT_RETURN_IF_ERROR(AddExtension(certificate.get(), issuer.get(), id, value));
  }
  if (::X509_sign(certificate.get(), issuer_key.get(), ::EVP_sha256()) == 0) return Failed("sign");
  return ToPem(certificate.get(), key.get());
}

StatusOr<absl::Time> CertificateEnd(const std::string& certificate_pem) {
  const BioPtr bio = MemoryBio(certificate_pem);
  const X509Ptr certificate(::PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr),
                            &::X509_free);
  if (certificate == nullptr)
    return InvalidArgument("This is no certificate in PEM form: ", TakeOpensslError());
  tm end = {};
  if (::ASN1_TIME_to_tm(::X509_get0_notAfter(certificate.get()), &end) != 1)
    return Failed("read the end of");
  return absl::FromTimeT(::timegm(&end));
}

std::string RandomHex(int bytes) {
  std::string random(static_cast<size_t>(bytes), '\0');
  ::RAND_bytes(reinterpret_cast<unsigned char*>(random.data()), bytes);
  return absl::BytesToHexString(random);
}

std::string SealOf(absl::string_view secret, absl::string_view text) {
  unsigned char seal[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  ::HMAC(::EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(text.data()), text.size(), seal, &length);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(seal), length));
}

bool SameSecret(absl::string_view a, absl::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

}  // namespace weft
