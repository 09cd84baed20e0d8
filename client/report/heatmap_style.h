// The style sheet of a heatmap, but for the colours of its boxes.
#ifndef PENSTOCK_CLIENT_REPORT_HEATMAP_STYLE_H_
#define PENSTOCK_CLIENT_REPORT_HEATMAP_STYLE_H_

#include "absl/strings/string_view.h"

namespace penstock::client::report {

// Light and dark; every rule is for elements of the class "hm".
absl::string_view HeatmapStyle();

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_HEATMAP_STYLE_H_
