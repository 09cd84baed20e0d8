// Columns of text, aligned, for terminals.
#ifndef PENSTOCK_CLIENT_TEXT_TABLE_H_
#define PENSTOCK_CLIENT_TEXT_TABLE_H_

#include <string>
#include <vector>

namespace penstock::client {

// The first row is the header. Every cell is padded to its column's width; two
// spaces between columns, none at a line's end.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

}  // namespace penstock::client

#endif  // PENSTOCK_CLIENT_TEXT_TABLE_H_
