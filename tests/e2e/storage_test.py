"""Run directories on a full disk or in a folder that cannot be written: one
clear message with the path, the right exit code, nothing left running, and what
was committed before stays readable."""

import json
import os
import pathlib
import resource
import shutil
import subprocess
import unittest

import penstock_case as pc

NOBODY = 65534

# Mounts a tmpfs of $1 bytes on $2, runs the rest there, and carries the run
# directory out to $3 before the mount goes with its namespace.
ON_SMALL_DISK = """
mount -t tmpfs -o "size=$1" penstock-e2e "$2" || exit 99
disk=$2 kept=$3; shift 3
"$@"
code=$?
cp -r "$disk/run" "$kept"
exit $code
"""


def unshare_command():
  """A prefix that runs a command where it may mount, or None."""
  for flags in (["--mount"], ["--user", "--map-root-user", "--mount"]):
    command = ["unshare", *flags]
    if shutil.which("unshare") and subprocess.run(
        [*command, "mount", "-t", "tmpfs", "none", "/tmp"],
        capture_output=True, check=False).returncode == 0:
      return command
  return None


class StorageTest(pc.PenstockCase):

  def check_committed(self, folder):
    """Steps of metrics.jsonl, each line whole, without a gap."""
    lines = (folder / "metrics.jsonl").read_text()
    self.assertTrue(lines.endswith("\n"), lines[-200:])
    steps = [json.loads(line)["step"] for line in lines.splitlines()]
    self.assertEqual(steps, list(range(1, len(steps) + 1)))
    return steps

  def run_on_small_disk(self, size, *arguments):
    unshare = unshare_command()
    if unshare is None:
      self.skipTest("no file system can be mounted here")
    disk, kept = self.folder / "disk", self.folder / "kept"
    disk.mkdir()
    # The job file stays on the disk that has room.
    done = self.finish(self.start_command(
        [*unshare, "sh", "-c", ON_SMALL_DISK, "sh", str(size), disk, kept,
         pc.BINARIES / "penstock", "run", self.work / "job.yaml", "--run-dir",
         disk / "run", *arguments]))
    self.assertNotEqual(done.code, 99, done)
    self.assertNothingStays()
    return done, kept

  def assertOneMessage(self, done, pattern):
    failed = [line for line in done.stderr.splitlines()
              if line.startswith("penstock: job ")]
    self.assertEqual(len(failed), 1, done)
    self.assertRegex(failed[0], pattern)

  def test_disk_that_the_trained_model_does_not_fit_on(self):
    # Metrics and logs fit, two shards of some 200 KB do not.
    self.write_job()
    done, kept = self.run_on_small_disk(256 * 1024, "--set", "model.width=64")
    self.assertEqual(done.code, 1, done)
    self.assertOneMessage(
        done, r"^penstock: job \S+ failed: DISK_FULL: .*/run/\.model-tmp-\S+/model-\S+: "
        r"cannot be written: No space left on device$")
    self.assertEqual(self.check_committed(kept), [1, 2, 3, 4])
    summary = json.loads((kept / "summary.json").read_text())
    self.assertEqual((summary["state"], summary["reason"], summary["steps"]),
                     ("FAILED", "DISK_FULL", 4))
    self.assertRegex(summary["cause"]["stage"], r"^stage-[01]$")
    # No half model takes the room of the results, or looks like one.
    self.assertEqual([path.name for path in kept.iterdir()
                      if "model" in path.name], [])

  def test_disk_that_fills_up_while_steps_are_committed(self):
    self.write_job(pc.TINY_JOB.replace("steps: 4", "steps: 1000000"))
    done, kept = self.run_on_small_disk(64 * 1024)
    self.assertEqual(done.code, 1, done)
    self.assertOneMessage(
        done, r"^penstock: job \S+ failed: DISK_FULL: the job's results: "
        r"/\S+/run/\S+: cannot be written: No space left on device$")
    self.assertGreater(len(self.check_committed(kept)), 3)

  def test_files_that_may_not_become_large(self):
    # Shards of some 100 KB are too large; everything else is not.
    self.write_job()
    limit = 64 * 1024
    done = self.finish(self.start(
        "penstock", "run", "job.yaml", "--run-dir", "run", "--set",
        "model.width=64", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (limit, limit))))
    self.assertEqual(done.code, 1, done)
    self.assertOneMessage(
        done, r"^penstock: job \S+ failed: DISK_FULL: .*/model-\S+: "
        r"cannot be written: File too large$")
    self.assertEqual(self.check_committed(self.work / "run"), [1, 2, 3, 4])
    self.assertNothingStays()

  def as_nobody(self):
    """Options of a child whom permissions bind: root passes by them."""
    if os.getuid() != 0:
      return {}
    for path in (self.folder, self.work, self.runtime):
      os.chown(path, NOBODY, NOBODY)
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}

  def test_run_directory_in_a_read_only_folder_is_refused(self):
    self.write_job()
    (self.work / "locked").mkdir(mode=0o555)
    done = self.finish(self.start(
        "penstock", "run", "job.yaml", "--run-dir", "locked/run",
        **self.as_nobody()))
    self.assertEqual(done.code, 2, done)
    messages = [line for line in done.stderr.splitlines()
                if line.startswith("penstock:")]
    self.assertEqual(len(messages), 1, done)
    self.assertRegex(messages[0], r"locked/run: Permission denied")
    self.assertEqual(list((self.work / "locked").iterdir()), [])
    self.assertNothingStays()

  def test_run_directory_that_becomes_read_only_fails_the_job(self):
    # Long enough for the folder to be locked before the model is written.
    self.write_job(pc.TINY_JOB.replace("steps: 4", "steps: 300"))
    child = self.start("penstock", "run", "job.yaml", "--run-dir", "run",
                       **self.as_nobody())
    run = self.work / "run"
    pc.wait_until(lambda: child.poll() is not None or (
        (run / "metrics.jsonl").exists()
        and (run / "metrics.jsonl").read_bytes().count(b"\n") >= 3),
        "three steps are committed")
    run.chmod(0o555)
    self.addCleanup(run.chmod, 0o755)
    done = self.finish(child)
    self.assertEqual(done.code, 1, done)
    self.assertOneMessage(
        done, r"^penstock: job \S+ failed: INPUT_NOT_VISIBLE: the job's results: "
        r"\S+: cannot be renamed to \S+/run/model: Permission denied; the trained "
        r"model is whole, in \S+/run/\.model-tmp-1-1$")
    self.assertTrue(any((run / ".model-tmp-1-1").glob("model*.safetensors")))
    # Files that were open stay writable: every step is there.
    self.assertEqual(len(self.check_committed(run)), 300)
    self.assertNothingStays()


if __name__ == "__main__":
  unittest.main()
