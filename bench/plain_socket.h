// SPDX-License-Identifier: Apache-2.0
// What the programs of plain blocking sockets have in common, beside which ours are measured: one
// socket, a header of 16 bytes, the body; in the clear or with TLS by OpenSSL.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "net/job_identity.h"

namespace weft::bench {

// The calling thread, and those that it starts, are in the network of this file from now on.
inline bool EnterNetwork(const std::string& file) {
  if (file.empty()) return true;
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const bool is_in = fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
  if (!is_in) std::fprintf(stderr, "cannot enter the network namespace %s\n", file.c_str());
  close(fd);
  return is_in;
}

struct PlainHeader {
  uint64_t size = 0;
  uint64_t step = 0;
};

// What was written or read wholly, or the end of this process.
class PlainSocket {
 public:
  explicit PlainSocket(int fd) : fd_(fd) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }

  void StartTls(const JobIdentity& job, bool is_server) {
    SSL_CTX* const context = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    BIO* const text = BIO_new_mem_buf(job.certificate_pem.data(), -1);
    BIO* const key = BIO_new_mem_buf(job.key_pem.data(), -1);
    SSL_CTX_use_certificate(context, PEM_read_bio_X509(text, nullptr, nullptr, nullptr));
    SSL_CTX_use_PrivateKey(context, PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr));
    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_num_tickets(context, 0);
    ssl_ = SSL_new(context);
    SSL_set_fd(ssl_, fd_);
    if ((is_server ? SSL_accept(ssl_) : SSL_connect(ssl_)) != 1) _exit(1);
  }

  void Send(const PlainHeader& header, std::byte* body) {
    if (ssl_ != nullptr) return SendTls(header, body);
    size_t sent = 0;
    const size_t total = sizeof(header) + header.size;
    while (sent < total) {
      iovec pieces[2];
      int count = 0;
      if (sent < sizeof(header)) {
        char* at = const_cast<char*>(reinterpret_cast<const char*>(&header));
        pieces[count++] = {at + sent, sizeof(header) - sent};
        pieces[count++] = {body, header.size};
      } else {
        const size_t done = sent - sizeof(header);
        pieces[count++] = {body + done, header.size - done};
      }
      const ssize_t wrote = writev(fd_, pieces, count);
      if (wrote <= 0) _exit(0);
      sent += static_cast<size_t>(wrote);
    }
  }

  PlainHeader Receive(std::byte* body) {
    PlainHeader header;
    Read(reinterpret_cast<std::byte*>(&header), sizeof(header));
    Read(body, header.size);
    return header;
  }

 private:
  // The header and what fits leave in one record.
  void SendTls(const PlainHeader& header, std::byte* body) {
    std::byte first[16384];
    const size_t fits = std::min(sizeof(first) - sizeof(header), header.size);
    std::memcpy(first, &header, sizeof(header));
    std::memcpy(first + sizeof(header), body, fits);
    size_t sent = 0;
    if (SSL_write_ex(ssl_, first, sizeof(header) + fits, &sent) != 1) _exit(0);
    if (fits < header.size && SSL_write_ex(ssl_, body + fits, header.size - fits, &sent) != 1)
      _exit(0);
  }

  void Read(std::byte* at, size_t size) {
    while (size > 0) {
      size_t got = 0;
      if (ssl_ != nullptr) {
        if (SSL_read_ex(ssl_, at, size, &got) != 1) _exit(0);
      } else {
        const ssize_t more = recv(fd_, at, size, MSG_WAITALL);
        if (more <= 0) _exit(0);
        got = static_cast<size_t>(more);
      }
      at += got;
      size -= got;
    }
  }

  const int fd_;
  SSL* ssl_ = nullptr;
};

}  // namespace weft::bench
