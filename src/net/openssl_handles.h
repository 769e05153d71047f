// SPDX-License-Identifier: Apache-2.0
// OpenSSL's objects with owners, for the files of this room that use it.
#pragma once

#include <memory>
#include <string>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

namespace weft {

using BioPtr = std::unique_ptr<BIO, decltype(&::BIO_free)>;
using X509Ptr = std::unique_ptr<X509, decltype(&::X509_free)>;
using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)>;

// What went wrong in the calls before, in words; forgets it.
std::string TakeOpensslError();
// Reads `text`, which must outlive it.
BioPtr MemoryBio(const std::string& text);

}  // namespace weft
