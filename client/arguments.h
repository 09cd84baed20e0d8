// Checks of the command line that are the same for every verb.
#ifndef PENSTOCK_CLIENT_ARGUMENTS_H_
#define PENSTOCK_CLIENT_ARGUMENTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace penstock::client {

// InvalidArgument, "`what` "text" is not UTF-8": it cannot be in a message.
absl::Status CheckUtf8(absl::string_view what, absl::string_view text);

// `arguments` are those after the program's name. InvalidArgument: one is not
// UTF-8 (the flag that it belongs to is named), or the verb is one of later
// versions.
absl::Status CheckArguments(const std::vector<std::string>& arguments);

// InvalidArgument: the first argument is no flag and none of `verbs`.
absl::Status CheckVerb(const std::vector<std::string>& arguments,
                       const std::vector<std::string>& verbs);

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_ARGUMENTS_H_
