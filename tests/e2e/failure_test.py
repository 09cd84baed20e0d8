"""Killed processes and signals: the first cause named, the exit code of the
table, and within five seconds nothing left: no process, no socket, no folder."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import unittest

import penstock_case as pc

LIMIT = 5.0  # Seconds from the event until all is over.

ENDLESS_JOB = pc.TINY_JOB.replace("steps: 4", "steps: 1000000").replace(
    "stages: 2", "stages: 3")


class FailureTest(pc.PenstockCase):

  def start_running(self, run_dir="run", *arguments):
    """A job of three stages that has committed some steps."""
    self.write_job(ENDLESS_JOB)
    child = self.start("penstock", "run", "job.yaml", "--run-dir", run_dir,
                       *arguments)
    metrics = self.work / run_dir / "metrics.jsonl"
    pc.wait_until(lambda: child.poll() is not None or (
        metrics.exists() and metrics.read_bytes().count(b"\n") >= 3),
        "three steps are committed")
    self.assertIsNone(child.poll(), "the run has ended by itself")
    return child

  def pid_of(self, words):
    """The one process of ours whose command line has all of `words`."""
    found = [pid for pid, command in pc.processes_of(self.folder).items()
             if all(word in command for word in words.split())]
    self.assertEqual(len(found), 1, (words, pc.processes_of(self.folder)))
    return found[0]

  def end_within_limit(self, child, since):
    done = self.finish(child)
    self.assertLess(time.monotonic() - since, LIMIT, done)
    self.assertNothingStays(LIMIT - (time.monotonic() - since))
    return done

  def assertIsSummary(self, stdout, run_dir):
    """What -o json prints: summary.json to the byte."""
    self.assertEqual(stdout, (self.work / run_dir / "summary.json").read_text())

  def kill(self, pid, signal_number=signal.SIGKILL):
    since = time.monotonic()
    os.kill(pid, signal_number)
    return since

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
    self.assertLess(seconds, 10 + LIMIT)
    self.assertEqual(done.code, 1, done)
    self.assertNothingStays()
    return next(line for line in done.stderr.splitlines()
                if re.match(r"penstock: job \S+ failed: STAGE_LOST: stage-1\b",
                            line))

  def test_stopped_stage_is_lost_after_its_lease_and_what_it_was_at_is_named(
      self):
    # Steps long enough that stage-1 stops in the middle of one.
    self.write_job(ENDLESS_JOB.replace("global: 8", "global: 64").replace(
        "width: 32", "width: 128"))
    message = self.lose_a_stopped_stage()
    for _ in range(4):
      if "; stage-0 waits for" in message and "; stage-2 waits for" in message:
        break
      # It stopped at the end of one, when a neighbour had all it needed.
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

  def start_writing(self, run_dir):
    """A job of two stages whose first has written its shard, and whose second
    hangs in the opening of its own."""
    self.write_job(pc.TINY_JOB.replace("steps: 4", "steps: 200"))
    child = self.start("penstock", "run", "job.yaml", "--run-dir", run_dir)
    folder = self.work / run_dir
    (made,) = pc.wait_until(lambda: list(folder.glob(".model-tmp-*")),
                            "the model's folder is made")
    epoch = made.name.rpartition("-")[2]
    os.mkfifo(made / f"model-00002-of-00002.safetensors.tmp-{epoch}")
    pc.wait_until((made / "model-00001-of-00002.safetensors").exists,
                  "the first shard is written")
    self.assertFalse((folder / "model").exists())
    return child

  def assertNoHalfModel(self, run_dir):
    self.assertEqual([path.name for path in (self.work / run_dir).iterdir()
                      if "model" in path.name], [])

  def test_stage_killed_while_the_model_is_written(self):
    child = self.start_writing("killed")
    since = self.kill(self.pid_of("penstock-stage --name stage-1"))
    done = self.end_within_limit(child, since)
    self.assertEqual(done.code, 1, done)
    self.assertRegex(done.stderr,
                     r"(?m)^penstock: job \S+ failed: STAGE_LOST: stage-1\b")
    self.assertNoHalfModel("killed")

  def test_run_stopped_while_the_model_is_written(self):
    child = self.start_writing("stopped")
    since = self.kill(child.pid, signal.SIGINT)
    done = self.end_within_limit(child, since)
    self.assertEqual(done.code, 130, done)
    self.assertNoHalfModel("stopped")

  def test_killed_run_takes_everything_with_it(self):
    child = self.start_running()
    since = self.kill(child.pid)
    self.end_within_limit(child, since)

  def test_run_killed_at_its_start_leaves_nothing(self):
    self.write_job(ENDLESS_JOB)
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
    os.kill(pid, signal.SIGSTOP)
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
    self.write_job(ENDLESS_JOB)
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

  def test_summary_that_cannot_be_written_is_printed_all_the_same(self):
    self.write_job(pc.TINY_JOB.replace("steps: 4", "steps: 100"))
    child = self.start("penstock", "run", "job.yaml", "--run-dir", "run", "-o",
                       "json")
    path = self.work / "run/summary.json"
    # Before that the coordinator would refuse a folder with results.
    pc.wait_until((path.parent / "job.yaml").exists, "the job has begun")
    path.mkdir()
    done = self.finish(child)
    self.assertEqual(done.code, 0, done)
    self.assertEqual(json.loads(done.stdout)["state"], "SUCCEEDED")
    self.assertEqual(done.stderr.count(f"{path}: "), 1, done)

  def test_run_directory_that_is_renamed_fails_the_job(self):
    child = self.start_running()
    since = time.monotonic()
    (self.work / "run").rename(self.work / "moved")
    done = self.end_within_limit(child, since)
    self.assertEqual(done.code, 1, done)
    self.assertIn(f"the folder {self.work}/run was removed or renamed",
                  done.stderr)
    self.assertNotIn("report:", done.stdout)
    self.assertFalse((self.work / "run").exists())

  def test_stop_at_any_time_leaves_a_summary(self):
    self.write_job(ENDLESS_JOB)
    for number in range(3):
      run = self.work / f"early-{number}"
      child = self.start("penstock", "run", "job.yaml", "--run-dir", run)
      pc.wait_until((run / "logs").exists, "the run has its folder")
      since = self.kill(child.pid, signal.SIGINT)
      done = self.end_within_limit(child, since)
      self.assertEqual(done.code, 130, done)
      self.assertEqual(self.summary(run)["state"], "CANCELLED")

  def test_hangup_ignored_at_the_start_stays_ignored(self):
    self.write_job(ENDLESS_JOB)
    child = self.start(
        "penstock", "run", "job.yaml", "--run-dir", "run",
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    metrics = self.work / "run/metrics.jsonl"
    pc.wait_until(metrics.exists, "a step is committed")
    self.kill(child.pid, signal.SIGHUP)
    size = metrics.stat().st_size
    pc.wait_until(lambda: metrics.stat().st_size > size + 2000, "it goes on")
    since = self.kill(child.pid, signal.SIGTERM)
    self.assertEqual(self.end_within_limit(child, since).code, 143)

  def test_signals_stop_the_run_and_keep_its_results(self):
    for number, code, form in ((signal.SIGINT, 130, "json"),
                               (signal.SIGHUP, 143, "table"),
                               (signal.SIGTERM, 143, "table")):
      with self.subTest(number.name):
        child = self.start_running(number.name, "-o", form)
        since = self.kill(child.pid, number)
        done = self.end_within_limit(child, since)
        self.assertEqual(done.code, code, done)
        self.assertIn(str(self.work / number.name), done.stderr)
        if form == "json":
          self.assertIsSummary(done.stdout, number.name)
        else:
          self.assertIn("bubble rate", done.stdout)
          self.assertIn(f"report: {self.work / number.name}/report.html",
                        done.stdout)
        summary = self.summary(number.name)
        self.assertEqual(summary["state"], "CANCELLED")
        self.assertEqual(summary["reason"], "USER")
        metrics = self.json_lines("metrics.jsonl", number.name)
        self.assertGreaterEqual(len(metrics), 3)
        self.assertEqual(summary["steps"], len(metrics))
        json.loads((self.work / number.name / "trace.json").read_text())

  def test_signal_before_the_first_step(self):
    self.write_job(ENDLESS_JOB)
    child = self.start("penstock", "run", "job.yaml", "--run-dir", "run")
    # Its coordinator is there: signals are blocked, none is lost.
    pc.wait_until(lambda: list(self.runtime.iterdir()), "a socket folder")
    since = self.kill(child.pid, signal.SIGINT)
    done = self.end_within_limit(child, since)
    self.assertEqual(done.code, 130, done)

  def test_second_signal_stops_at_once(self):
    child = self.start_running("run", "-o", "json")
    # No coordinator that would end the job in order.
    os.kill(self.pid_of("penstock-coordinator"), signal.SIGSTOP)
    since = self.kill(child.pid, signal.SIGINT)
    os.kill(child.pid, signal.SIGINT)
    done = self.end_within_limit(child, since)
    self.assertEqual(done.code, 130, done)
    # Nobody was there to write a summary, so nothing is printed.
    self.assertFalse((self.work / "run/summary.json").exists())
    self.assertEqual(done.stdout, "")
    self.assertNoHalfModel("run")

  def test_stopped_stage_does_not_hold_up_the_end(self):
    child = self.start_running()
    os.kill(self.pid_of("penstock-stage --name stage-1"), signal.SIGSTOP)
    since = self.kill(child.pid, signal.SIGINT)
    done = self.end_within_limit(child, since)
    self.assertEqual(done.code, 130, done)
    self.assertEqual(self.summary()["state"], "CANCELLED")

  def test_terminal_signal_reaches_children_through_run_only(self):
    # Ctrl-C goes to the foreground process group: of it is `run` alone.
    child = self.start_running()
    for pid in pc.processes_of(self.folder):
      if pid != child.pid:
        self.assertNotEqual(os.getpgid(pid), os.getpgid(child.pid))

  def test_result_file_that_cannot_be_written_is_named_and_ends_with_1(self):
    child = self.start_running()
    metrics = self.work / "run/metrics.jsonl"

    def replaced():
      try:
        metrics.unlink()
        metrics.mkdir()
      except (FileNotFoundError, FileExistsError):
        return False  # The coordinator wrote a line just between.
      return True

    since = time.monotonic()
    pc.wait_until(replaced, "a folder stands where metrics.jsonl was")
    done = self.end_within_limit(child, since)
    self.assertEqual(done.code, 1, done)
    self.assertRegex(done.stderr,
                     r"(?m)^penstock: job \S+ failed: INPUT_NOT_VISIBLE: "
                     rf".*{metrics}: cannot be written: Is a directory")
    summary = self.summary()
    self.assertEqual((summary["state"], summary["reason"]),
                     ("FAILED", "INPUT_NOT_VISIBLE"))

  def test_diverging_job_fails_with_its_results(self):
    self.write_job()
    done = self.run_job("--set", "optimizer.lr=1e30", "--set", "steps=8")
    self.assertEqual(done.code, 1, done)
    self.assertRegex(done.stderr, r"(?m)^penstock: job \S+ failed: NONFINITE: "
                     r"step \d+: .*lower the learning rate")
    summary = self.summary()
    self.assertEqual((summary["state"], summary["reason"]),
                     ("FAILED", "NONFINITE"))
    self.assertEqual(summary["steps"], len(self.json_lines("metrics.jsonl")))
    self.assertLess(summary["steps"], 8)
    self.assertNothingStays()

  def test_last_update_that_destroys_the_weights(self):
    self.write_job()
    done = self.run_job("--set", "optimizer.lr=3e38", "--set",
                        "optimizer.weight_decay=10", "--set", "steps=1")
    self.assertEqual(done.code, 1, done)
    self.assertRegex(done.stderr, r"(?m)^penstock: job \S+ failed: NONFINITE: "
                     r"the model is lost: .* transformer\.\S+ after step 1 are "
                     r"NaN or infinite; lower the learning rate")
    summary = self.summary()
    self.assertEqual((summary["state"], summary["reason"], summary["steps"]),
                     ("FAILED", "NONFINITE", 1))
    self.assertRegex(summary["cause"]["stage"], r"^stage-\d$")
    self.assertIsNone(summary["weights_sha256"])
    self.assertFalse((self.work / "run/model").exists())

  def test_skipped_steps_are_recorded(self):
    self.write_job()
    self.succeed("--set", "optimizer.lr=1e30", "--set",
                 "optimizer.on_nonfinite=skip")
    metrics = self.json_lines("metrics.jsonl")
    self.assertEqual([line["step"] for line in metrics], [1, 2, 3, 4])
    skipped = [line for line in metrics if line["skipped"]]
    self.assertTrue(skipped, metrics)
    for line in skipped:
      # Not finite: null, and its name.
      self.assertIsNone(line["grad_norm"], line)
      self.assertIn("grad_norm", line["nonfinite"])

  def test_run_ends_soon_after_its_job(self):
    self.write_job()
    child = self.start("penstock", "run", "job.yaml", "--run-dir", "run")
    pc.wait_until((self.work / "run/summary.json").exists, "a summary")
    since = time.monotonic()
    done = self.finish(child)
    self.assertEqual(done.code, 0, done)
    self.assertLess(time.monotonic() - since, LIMIT, done)
    self.assertNothingStays()


if __name__ == "__main__":
  unittest.main()
