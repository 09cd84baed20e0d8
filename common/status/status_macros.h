// RETURN_IF_ERROR and ASSIGN_OR_RETURN, with the names and meaning that later
// abseil releases give them; ours can be deleted when Debian ships those.
//
//   RETURN_IF_ERROR(Open(path));
//   ASSIGN_OR_RETURN(const Plan plan, Read(path));
#ifndef PENSTOCK_COMMON_STATUS_STATUS_MACROS_H_
#define PENSTOCK_COMMON_STATUS_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define RETURN_IF_ERROR(expr)                                               \
  do {                                                                      \
    if (::absl::Status penstock_status_ = (expr); !penstock_status_.ok()) { \
      return penstock_status_;                                              \
    }                                                                       \
  } while (false)

#define PENSTOCK_STATUS_CONCAT_INNER_(a, b) a##b
#define PENSTOCK_STATUS_CONCAT_(a, b) PENSTOCK_STATUS_CONCAT_INNER_(a, b)

#define ASSIGN_OR_RETURN(lhs, expr) \
  PENSTOCK_ASSIGN_OR_RETURN_(       \
      PENSTOCK_STATUS_CONCAT_(penstock_statusor_, __LINE__), lhs, expr)

#define PENSTOCK_ASSIGN_OR_RETURN_(result, lhs, expr)  \
  auto result = (expr);                                \
  if (!result.ok()) return std::move(result).status(); \
  lhs = *std::move(result)

#endif  // PENSTOCK_COMMON_STATUS_STATUS_MACROS_H_
