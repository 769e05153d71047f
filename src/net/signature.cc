// SPDX-License-Identifier: Apache-2.0
#include "net/signature.h"

#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/sha.h>

#include "net/openssl_handles.h"

namespace weft {

std::string Sha256(absl::string_view data) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  ::SHA256(reinterpret_cast<const unsigned char*>(data.data()), data.size(),
           reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string HmacSha256(absl::string_view key, absl::string_view data) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()),
         reinterpret_cast<const unsigned char*>(data.data()), data.size(),
         reinterpret_cast<unsigned char*>(digest.data()), &size);
  digest.resize(size);
  return digest;
}

StatusOr<std::string> SignRs256(const std::string& key_pem, absl::string_view data) {
  const BioPtr bio = MemoryBio(key_pem);
  const KeyPtr key(::PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr),
                   &::EVP_PKEY_free);
  if (key == nullptr || ::EVP_PKEY_base_id(key.get()) != EVP_PKEY_RSA) {
    return InvalidArgument("A private key is no RSA key in PEM: ", TakeOpensslError());
  }
  const std::unique_ptr<EVP_MD_CTX, decltype(&::EVP_MD_CTX_free)> context(::EVP_MD_CTX_new(),
                                                                          &::EVP_MD_CTX_free);
  const auto* bytes = reinterpret_cast<const unsigned char*>(data.data());
  size_t size = 0;
  if (::EVP_DigestSignInit(context.get(), nullptr, ::EVP_sha256(), nullptr, key.get()) != 1 ||
      ::EVP_DigestSign(context.get(), nullptr, &size, bytes, data.size()) != 1) {
    return Internal("Cannot sign: ", TakeOpensslError());
  }
  std::string signature(size, '\0');
  if (::EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                       bytes, data.size()) != 1) {
    return Internal("Cannot sign: ", TakeOpensslError());
  }
  signature.resize(size);
  return signature;
}

}  // namespace weft
