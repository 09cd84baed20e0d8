// How the page looks, on light and dark screens and on paper.
#ifndef PENSTOCK_CLIENT_REPORT_STYLE_SHEET_H_
#define PENSTOCK_CLIENT_REPORT_STYLE_SHEET_H_

#include "absl/strings/string_view.h"

namespace penstock::client::report {

// CSS; of static life.
absl::string_view StyleSheet();

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_STYLE_SHEET_H_
