// The whole page.
#ifndef PENSTOCK_CLIENT_REPORT_PAGE_H_
#define PENSTOCK_CLIENT_REPORT_PAGE_H_

#include <string>

#include "client/report/run_files.h"

namespace penstock::client::report {

// An HTML document with everything in it: no script, nothing loaded from
// anywhere, which its content security policy also forbids. Every text of the
// files is escaped. Below 4 MB whatever the number and the length of all that
// is in them (more where every other character must be escaped): lists and
// texts are cut, and say so.
std::string Page(const RunFiles& files);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_PAGE_H_
