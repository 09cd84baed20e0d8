"""Processes that are killed or stopped, of stages, coordinator and `run`: the
first cause named, the exit code of the table, and within five seconds nothing
left: no process, no socket, no folder."""

import os
import re
import shutil
import signal
import subprocess
import threading
import time
import unittest

import penstock_case as pc
import running_case as rc


class FailureTest(rc.RunningCase):

  def test_killed_stage_fails_the_job_and_is_the_first_cause(self):
    for victim in ("stage-0", "stage-1", "stage-2"):
      with self.subTest(victim):
        child = self.start_running(victim, "-o", "json")
        since = self.kill(self.pid_of(f"penstock-stage --name {victim}"))
        done = self.end_within_limit(child, since)
        self.assertEqual(done.code, 1, done)
        self.assertRegex(done.stderr, rf"(?m)^penstock: job \S+ failed: "
                         rf"STAGE_LOST: {victim}\b")
        self.assertRegex(done.stderr,
                         rf"(?m)^{victim} ended: killed by signal 9 \(Killed\)$")

        self.assertIsSummary(done.stdout, victim)
        summary = self.summary(victim)
        self.assertEqual(summary["state"], "FAILED")
        self.assertEqual(summary["reason"], "STAGE_LOST")
        self.assertEqual(summary["cause"]["stage"], victim)
        self.assertIsNone(summary["weights_sha256"])
        self.assertEqual(summary["steps"],
                         len(self.json_lines("metrics.jsonl", victim)))
        self.assertGreaterEqual(summary["steps"], 3)

        events = self.json_lines("events.jsonl", victim)
        lost = [e for e in events if e["kind"] == "STAGE_LOST"]
        self.assertEqual([(e["stage"], e["consequence"]) for e in lost],
                         [(victim, False)])
        # What other stages saw of it is no cause of its own.
        for event in events:
          if event["severity"] != "INFO" and event["stage"] != victim:
            self.assertTrue(event["consequence"], event)
        logs = self.work / victim / "logs"
        self.assertEqual(
            sorted(path.name for path in logs.iterdir()),
            ["coordinator.log", "stage-0.log", "stage-1.log", "stage-2.log"])

  def lose_a_stopped_stage(self):
    """Runs until stage-1 was stopped and lost; what is said of it."""
    child = self.start("penstock", "run", "job.yaml", "--run-dir", "run",
                       "-o", "json")
    metrics = self.work / "run/metrics.jsonl"
    pc.wait_until(lambda: child.poll() is not None or metrics.exists(),
                  "a step is committed")
    # A heartbeat of the middle of a step.
    with self.assertRaises(subprocess.TimeoutExpired):
      child.wait(1.5)
    since = self.kill(self.pid_of("penstock-stage --name stage-1"),
                      signal.SIGSTOP)
    done = self.finish(child)
    seconds = time.monotonic() - since
    # Of run's coordinator the lease is the default, 10 s; stage-1 may have been
    # heard of last a heartbeat before.
    self.assertGreater(seconds, 8.5)
    self.assertLess(seconds, 10 + rc.LIMIT)
    self.assertEqual(done.code, 1, done)
    self.assertNothingStays()
    return next(line for line in done.stderr.splitlines()
                if re.match(r"penstock: job \S+ failed: STAGE_LOST: stage-1\b",
                            line))

  def test_stopped_stage_is_lost_after_its_lease_and_what_it_was_at_is_named(
      self):
    # Steps long enough that stage-1 stops in the middle of one.
    self.write_job(rc.ENDLESS_JOB.replace("global: 8", "global: 64").replace(
        "width: 32", "width: 128"))
    message = self.lose_a_stopped_stage()
    for _ in range(4):
      if all(part in message for part in ("; at its last heartbeat",
                                          "; stage-0 waits for",
                                          "; stage-2 waits for")):
        break
      # It stopped at the end of one, when a neighbour had all it needed, or
      # said its last heartbeat between two.
      shutil.rmtree(self.work / "run")
      message = self.lose_a_stopped_stage()
    steps = len(self.json_lines("metrics.jsonl"))
    # What it was at by its own last heartbeat,
    told = re.search(r"; at its last heartbeat, (\S+)s before, it was at [FB] "
                     r"stage 1 micro-batch (\d+) of step (\d+)", message)
    self.assertIsNotNone(told, message)
    self.assertGreaterEqual(float(told[1]), 10)
    self.assertLess(int(told[2]), 32)
    self.assertLessEqual(int(told[3]), steps + 1)
    # and what its neighbours wait for, by theirs.
    for stage, edges in ((0, ("activation 0->1", "gradient 1->0")),
                         (2, ("activation 1->2", "gradient 2->1"))):
      waits = re.search(
          rf"; stage-{stage} waits for (\w+ \d->\d) from stage-1 for (\S+?)s "
          rf"\([FB] stage {stage} micro-batch (\d+) of step (\d+)\)", message)
      self.assertIsNotNone(waits, message)
      self.assertIn(waits[1], edges)
      self.assertGreater(float(waits[2]), 5)
      self.assertLess(int(waits[3]), 32)
      self.assertIn(int(waits[4]), (steps + 1, steps + 2))
    summary = self.summary()
    self.assertEqual((summary["reason"], summary["cause"]["stage"]),
                     ("STAGE_LOST", "stage-1"))

  def test_stage_killed_while_the_model_is_written(self):
    child = self.start_writing("killed")
    since = self.kill(self.pid_of("penstock-stage --name stage-1"))
    done = self.end_within_limit(child, since)
    self.assertEqual(done.code, 1, done)
    self.assertRegex(done.stderr,
                     r"(?m)^penstock: job \S+ failed: STAGE_LOST: stage-1\b")
    self.assertNoHalfModel("killed")

  def test_killed_run_takes_everything_with_it(self):
    child = self.start_running()
    since = self.kill(child.pid)
    self.end_within_limit(child, since)

  def test_run_killed_at_its_start_leaves_nothing(self):
    self.write_job(rc.ENDLESS_JOB)
    moments = {
        "at once": lambda: True,
        "coordinator": lambda: any(
            "--embedded" in command
            for command in pc.processes_of(self.folder).values()),
        "folder": lambda: list(self.runtime.iterdir()),
        "socket": lambda: list(self.runtime.glob("*/*.sock")),
    }
    for name, come in moments.items():
      with self.subTest(name):
        child = self.start("penstock", "run", "job.yaml", "--run-dir",
                           self.work / name)
        pc.wait_until(lambda: come() or child.poll() is not None, name)
        since = self.kill(child.pid)
        self.end_within_limit(child, since)

  def test_killed_run_takes_a_stopped_stage_with_it(self):
    # The kernel's SIGTERM does not reach a stopped process.
    child = self.start_running()
    os.kill(self.pid_of("penstock-stage --name stage-1"), signal.SIGSTOP)
    since = self.kill(child.pid)
    self.end_within_limit(child, since)

  def test_killed_run_takes_a_stage_that_hangs_with_it(self):
    child = self.start_running()
    pid = self.pid_of("penstock-stage --name stage-1")
    stop = threading.Event()

    def keep_it_stopped():
      while not stop.wait(0.01):
        try:
          os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:
          return

    keeper = threading.Thread(target=keep_it_stopped)
    keeper.start()
    try:
      since = self.kill(child.pid)
      self.end_within_limit(child, since)
    finally:
      stop.set()
      keeper.join()

  def test_stopped_coordinator_is_waited_for(self):
    # Stages work on with what they hold, wait at the barrier, and go on.
    child = self.start_running()
    pid = self.pid_of("penstock-coordinator")
    metrics = self.work / "run/metrics.jsonl"
    self.halt(pid)
    before = metrics.read_bytes().count(b"\n")
    # Longer than three heartbeats, shorter than the lease.
    with self.assertRaises(subprocess.TimeoutExpired):
      child.wait(5)
    self.assertEqual(metrics.read_bytes().count(b"\n"), before)
    os.kill(pid, signal.SIGCONT)
    pc.wait_until(lambda: metrics.read_bytes().count(b"\n") > before + 3,
                  "steps go on", 10)
    since = self.kill(child.pid, signal.SIGINT)
    self.assertEqual(self.end_within_limit(child, since).code, 130)

  def test_coordinator_that_is_stopped_for_long(self):
    # Longer than the lease and the keepalive: no stage is blamed for it, and
    # the job goes on where `run` still hears of it.
    child = self.start_running()
    pid = self.pid_of("penstock-coordinator")
    metrics = self.work / "run/metrics.jsonl"
    os.kill(pid, signal.SIGSTOP)
    with self.assertRaises(subprocess.TimeoutExpired):
      child.wait(12)
    before = metrics.read_bytes().count(b"\n")
    os.kill(pid, signal.SIGCONT)
    pc.wait_until(lambda: child.poll() is not None or
                  metrics.read_bytes().count(b"\n") > before + 3,
                  "steps go on", 15)
    self.assertIsNone(child.poll(), "the run has ended by itself")
    since = self.kill(child.pid, signal.SIGINT)
    self.assertEqual(self.end_within_limit(child, since).code, 130)
    kinds = {event["kind"]: event for event in self.json_lines("events.jsonl")}
    self.assertNotIn("STAGE_LOST", kinds)
    self.assertRegex(kinds["COORDINATOR_PAUSED"]["message"],
                     r"^the coordinator itself did not run for 1[2-9]\.?\d*s ")

  def test_killed_coordinator_is_named(self):
    child = self.start_running()
    since = self.kill(self.pid_of("penstock-coordinator"))
    done = self.end_within_limit(child, since)
    self.assertEqual(done.code, 1, done)
    self.assertRegex(done.stderr, r"(?m)^penstock: the coordinator ended: "
                     r"killed by signal 9")
    self.assertGreaterEqual(len(self.json_lines("metrics.jsonl")), 3)
    self.assertNoHalfModel("run")

  def test_coordinator_that_is_told_to_stop_is_named(self):
    for number in (signal.SIGTERM, signal.SIGINT):
      with self.subTest(number.name):
        child = self.start_running(number.name, "-o", "json")
        since = self.kill(self.pid_of("penstock-coordinator"), number)
        done = self.end_within_limit(child, since)
        self.assertEqual(done.code, 1, done)
        self.assertRegex(
            done.stderr, r"(?m)^penstock: the coordinator ended: exit code 0 "
            r"\(stopped by a signal\); logs are in ")
        # It ends its job in order.
        self.assertIsSummary(done.stdout, number.name)
        summary = self.summary(number.name)
        self.assertEqual((summary["state"], summary["reason"]),
                         ("CANCELLED", "USER"))
        self.assertEqual(summary["cause"]["message"],
                         f"the coordinator was told to end by {number.name}")
        self.assertEqual(summary["steps"],
                         len(self.json_lines("metrics.jsonl", number.name)))
        self.assertNoHalfModel(number.name)

  def test_coordinator_that_is_told_to_stop_at_the_start_is_named(self):
    self.write_job(rc.ENDLESS_JOB)
    for number in range(4):
      run = self.work / f"early-{number}"
      child = self.start("penstock", "run", "job.yaml", "--run-dir", run)
      # The job is not, or is hardly, created.
      pc.wait_until((run / "logs").exists, "the run has its folder")
      since = self.kill(self.pid_of("penstock-coordinator"), signal.SIGINT)
      done = self.end_within_limit(child, since)
      self.assertEqual(done.code, 1, done)
      self.assertRegex(
          done.stderr, r"(?m)^penstock: the coordinator ended: exit code 0 "
          r"\(stopped by a signal\)")
      if run.exists():
        self.assertNoHalfModel(run)


if __name__ == "__main__":
  unittest.main()
