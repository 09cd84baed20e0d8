"""Stages that never come: what `penstock run` says, how soon, with which code.

penstock-stage is replaced by a script that does to one stage what the test
wants and starts the real one for the others.
"""

import json
import os
import shutil
import signal
import time
import unittest

import penstock_case as pc

# From the start of `run`: far below every time-out that could end it too.
LIMIT = 20.0

JOB = pc.TINY_JOB.replace("stages: 2", "stages: 3")


class StageStartTest(pc.PenstockCase):

  def setUp(self):
    super().setUp()
    self.binaries = self.folder / "bin"
    self.binaries.mkdir()
    # `penstock` finds the others beside itself.
    shutil.copy2(pc.BINARIES / "penstock", self.binaries / "penstock")
    os.symlink(pc.BINARIES / "penstock-coordinator",
               self.binaries / "penstock-coordinator")
    self.write_job(JOB)

  def stage_1_does(self, commands):
    """`commands` of a shell, in which "$@" are the stage's flags."""
    script = self.binaries / "penstock-stage"
    script.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *"--name stage-1 "*) {commands}; esac\n'
        f'exec {pc.BINARIES / "penstock-stage"} "$@"\n')
    script.chmod(0o755)

  def start_run(self):
    return self.start("penstock", "run", "job.yaml", "--run-dir", "run")

  def run_and_fail(self, code):
    since = time.monotonic()
    done = self.finish(self.start_run())
    self.assertEqual(done.code, code, done)
    self.assertLess(time.monotonic() - since, LIMIT, done)
    self.assertNothingStays()
    return done

  def assertStageLost(self, done, how):
    self.assertRegex(done.stderr, rf"(?m)^penstock: job \S+ failed: "
                     rf"STAGE_LOST: stage-1\b.*{how}")
    summary = self.summary()
    self.assertEqual((summary["state"], summary["reason"]),
                     ("FAILED", "STAGE_LOST"))
    self.assertEqual(summary["cause"]["stage"], "stage-1")
    lost = [e for e in self.json_lines("events.jsonl")
            if e["kind"] == "STAGE_LOST"]
    self.assertEqual([(e["stage"], e["consequence"]) for e in lost],
                     [("stage-1", False)])

  def test_killed_before_it_registers(self):
    self.stage_1_does("kill -9 $$")
    done = self.run_and_fail(1)
    self.assertStageLost(done, "was killed by signal 9 before it registered")
    self.assertRegex(done.stderr, r"(?m)^stage-1 ended: killed by signal 9")

  def test_refuses_its_flags(self):
    self.stage_1_does(f'exec {pc.BINARIES / "penstock-stage"} "$@" --bogus')
    done = self.run_and_fail(1)
    self.assertRegex(done.stderr, r"(?m)^stage-1 ended: exit code 2: ")
    self.assertStageLost(done, "exited with code 2 before it registered")

  def test_shared_library_is_missing(self):
    program = (pc.BINARIES / "penstock-stage").read_bytes()
    name = b"libstdc++.so.6\0"
    self.assertIn(name, program)
    broken = self.binaries / "broken-stage"
    broken.write_bytes(program.replace(name, b"libnosuch.so.6\0"))
    broken.chmod(0o755)
    self.stage_1_does(f'exec {broken} "$@"')
    done = self.run_and_fail(1)
    self.assertStageLost(done, "exited with code 127 before it registered")
    self.assertRegex(done.stderr, r"(?m)^stage-1 ended: exit code 127: .*"
                     r"libnosuch\.so\.6: cannot open shared object file")

  def test_killed_while_the_job_waits_for_another(self):
    self.stage_1_does("exec sleep 1000")
    child = self.start_run()
    socket = pc.wait_until(
        lambda: next(self.runtime.glob("penstock-*/coordinator.sock"), None),
        "the coordinator's socket")

    def registered():
      done = self.penstock("stages", "--address", f"unix:{socket}", "-o", "json")
      stages = json.loads(done.stdout) if done.code == 0 else []
      return {s["name"]: s["pid"] for s in stages}.get("stage-2")

    pid = pc.wait_until(registered, "stage-2 is registered")
    os.kill(pid, signal.SIGKILL)
    since = time.monotonic()
    done = self.finish(child)
    self.assertLess(time.monotonic() - since, 5, done)
    self.assertEqual(done.code, 1, done)
    self.assertRegex(done.stderr, r"(?m)^penstock: job \S+ failed: STAGE_LOST: "
                     r"stage-2 .*was killed by signal 9")
    self.assertEqual(self.summary()["cause"]["stage"], "stage-2")
    self.assertNothingStays()

  def coordinator_is(self, program, *more):
    """A built one, which takes ADDRESS READY_FD and these."""
    script = self.binaries / "penstock-coordinator"
    script.unlink()
    # Of the real one's flags it needs two. The folder is the coordinator's.
    script.write_text(
        "#!/bin/sh\n"
        'while [ $# -gt 1 ]; do case "$1" in\n'
        '  --listen) address=$2;; --ready-fd) ready=$2;;\n'
        'esac; shift; done\n'
        'socket=${address#unix:}; mkdir -m 700 "${socket%/*}"\n'
        f'exec {pc.BINARIES / program} "$address" "$ready" '
        f'{" ".join(map(str, more))}\n')
    script.chmod(0o755)

  def test_refused_while_somebody_writes_to_the_run_directory(self):
    self.coordinator_is("penstock_refusing_coordinator")
    self.stage_1_does("exec sleep 1000")
    done = self.run_and_fail(2)
    self.assertIn("penstock: refused after all", done.stderr)
    self.assertFalse((self.work / "run").exists())

  def test_signal_while_the_coordinator_hangs_over_the_job_file(self):
    asked = self.folder / "asked"
    self.coordinator_is("penstock_refusing_coordinator", asked)
    child = self.start_run()
    pc.wait_until(asked.exists, "the coordinator has the job file")
    since = time.monotonic()
    child.send_signal(signal.SIGTERM)
    done = self.finish(child)
    self.assertLess(time.monotonic() - since, 5, done)
    self.assertEqual(done.code, 143, done)
    self.assertIn("penstock: stopped by SIGTERM before the job had begun",
                  done.stderr)
    self.assertFalse((self.work / "run").exists())
    self.assertNothingStays()

  def test_coordinator_of_another_protocol(self):
    self.coordinator_is("penstock_other_protocol")
    done = self.run_and_fail(8)
    self.assertIn("protocol 7 to 9", done.stderr)
    self.assertFalse((self.work / "run").exists())

  def test_says_whom_it_waits_for(self):
    self.stage_1_does("exec sleep 1000")
    child = self.start_run()
    said = ""
    for said in child.stderr:
      if said.startswith("WAITING_FOR_STAGES: "):
        break
    self.assertRegex(said, r"3 stages of pool default, device cpu; "
                     r"free: stage-0, stage-2$")
    child.send_signal(signal.SIGINT)
    done = self.finish(child)
    self.assertEqual(done.code, 130, done)
    self.assertNothingStays()


if __name__ == "__main__":
  unittest.main()
