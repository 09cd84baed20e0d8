// --listen and --insecure-listen, the same for every daemon.
#ifndef PENSTOCK_COMMON_RPC_LISTEN_FLAGS_H_
#define PENSTOCK_COMMON_RPC_LISTEN_FLAGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/rpc/address.h"

namespace penstock::common::rpc {

struct ListenFlags {
  std::string listen;
  std::string insecure_listen;  // Empty: not given. Else it counts.
};

// Adds them to `app`, a CLI::App; `served` is whom or what it serves there, for
// --help. What `flags` holds is the default. A template, so that CLI11 stays in
// main.cc.
template <typename App>
void AddListenFlags(App& app, absl::string_view served, ListenFlags& flags) {
  auto* const listen =
      app.add_option("--listen", flags.listen,
                     absl::StrCat("Where to serve ", served,
                                  ": unix:PATH, or HOST:PORT on loopback"))
          ->capture_default_str();
  app.add_option("--insecure-listen", flags.insecure_listen,
                 absl::StrCat("Serve ", served,
                              " on this HOST:PORT without TLS, also off "
                              "loopback"))
      ->excludes(listen);
}

// InvalidArgument for a malformed address, and for one of --listen that is not
// on loopback: there is no TLS.
absl::StatusOr<Address> ParseListen(const ListenFlags& flags);

}  // namespace penstock::common::rpc

#endif  // PENSTOCK_COMMON_RPC_LISTEN_FLAGS_H_
