// Stage daemons of a `penstock run` that has died without ending them.
//
// The kernel sends each of them SIGTERM (common/process/signals.h), but to a
// stopped process that does not come before it is continued, and nobody is left
// who would kill one that hangs. The coordinator of that run does both.
#ifndef PENSTOCK_COORDINATOR_ORPHANED_STAGES_H_
#define PENSTOCK_COORDINATOR_ORPHANED_STAGES_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace penstock::coordinator {

// Thread-compatible.
class OrphanedStages {
 public:
  // Finds the living processes of this machine whose command line has both
  // `--coordinator ADDRESS` and `--die-with-parent PARENT`, also those that
  // never registered. The address is a socket in a folder that only this run
  // had, so none of them is a stranger's. Each is held by a pidfd: a number
  // that the kernel gives to another process later is not hit.
  OrphanedStages(const std::string& address, pid_t parent);
  ~OrphanedStages();
  OrphanedStages(const OrphanedStages&) = delete;
  OrphanedStages& operator=(const OrphanedStages&) = delete;

  // Those that have ended meanwhile are left out.
  void Signal(int signal) const;
  bool AnyAlive() const;

 private:
  std::vector<int> pidfds_;
};

}  // namespace penstock::coordinator

#endif  // PENSTOCK_COORDINATOR_ORPHANED_STAGES_H_
