// SPDX-License-Identifier: Apache-2.0
// A connection that began as an HTTP request and speaks another protocol now.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

#include "base/posix_file.h"
#include "net/tls.h"

namespace weft {

// Bytes both ways, over TLS or not, without blocking. Not thread-safe.
class UpgradedConnection {
 public:
  // `input` is what came behind the request, `output` what has not left yet.
  UpgradedConnection(OwnedFd fd, std::unique_ptr<TlsSession> tls, std::string input,
                     std::string output);
  ~UpgradedConnection();
  UpgradedConnection(const UpgradedConnection&) = delete;
  UpgradedConnection& operator=(const UpgradedConnection&) = delete;

  int fd() const { return fd_.get(); }
  // What to poll for; `reads` as in Advance.
  short events(bool reads) const;
  // Sends what waits, and reads what is there when `reads`. False: the other side has ended, or the
  // connection is broken.
  bool Advance(bool reads);
  // Has come; the reader takes away what it has read.
  std::string& input() { return input_; }
  // TLS holds bytes of which poll knows nothing: call Advance again before polling.
  bool has_more() const { return has_more_; }
  void Send(absl::string_view bytes) { output_.append(bytes.data(), bytes.size()); }
  size_t unsent_bytes() const { return output_.size() - sent_; }

 private:
  bool Write();
  bool Read();

  const OwnedFd fd_;
  const std::unique_ptr<TlsSession> tls_;  // null: plain text
  std::string input_;
  std::string output_;
  size_t sent_ = 0;  // of output_
  bool has_more_ = false;
  bool read_wants_write_ = false;
};

}  // namespace weft
