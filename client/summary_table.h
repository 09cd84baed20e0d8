// The table that ends a run: predicted against measured.
#ifndef PENSTOCK_CLIENT_SUMMARY_TABLE_H_
#define PENSTOCK_CLIENT_SUMMARY_TABLE_H_

#include <string>

#include "client/report/run_summary.h"

namespace penstock::client {

// What the summary does not say shows as "-".
std::string SummaryTable(const report::RunSummary& summary);

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_SUMMARY_TABLE_H_
