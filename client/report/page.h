// The whole page.
#ifndef PENSTOCK_CLIENT_REPORT_PAGE_H_
#define PENSTOCK_CLIENT_REPORT_PAGE_H_

#include <string>

#include "client/report/run_files.h"

namespace penstock::client::report {

// An HTML document with everything in it: no script, nothing loaded from
// anywhere, which its content security policy also forbids. Every text of the
// files is escaped. Below 1 MB whatever the number of steps and ranks.
std::string Page(const RunFiles& files);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_PAGE_H_
