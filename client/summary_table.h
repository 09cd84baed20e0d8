// The table that ends a run: predicted against measured.
#ifndef PENSTOCK_CLIENT_SUMMARY_TABLE_H_
#define PENSTOCK_CLIENT_SUMMARY_TABLE_H_

#include <nlohmann/json.hpp>
#include <string>

namespace penstock::client {

// `summary` is summary.json. Fields that are missing or null show as "-".
std::string SummaryTable(const nlohmann::json& summary);

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_SUMMARY_TABLE_H_
