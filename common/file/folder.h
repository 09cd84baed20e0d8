// What is in a folder of the disk.
//
// As a list, because of the loop that comes to mind: a range-for over a
// directory_iterator(folder, error) throws where the folder cannot be read to
// its end, and what it does to entries may change what it still sees.
#ifndef PENSTOCK_COMMON_FILE_FOLDER_H_
#define PENSTOCK_COMMON_FILE_FOLDER_H_

#include <filesystem>
#include <system_error>
#include <vector>

namespace penstock::common::file {

// The entries of `folder`, in no order. Where it cannot be read, or not to its
// end, `error` says why, and what came before is returned.
std::vector<std::filesystem::directory_entry> ListFolder(
    const std::filesystem::path& folder, std::error_code& error);

}  // namespace penstock::common::file

#endif  // PENSTOCK_COMMON_FILE_FOLDER_H_
