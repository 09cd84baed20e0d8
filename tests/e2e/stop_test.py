"""Signals to `penstock`, of `run` from its start to the model that it writes: the
exit code of the table, results so far, and within five seconds nothing left."""

import json
import os
import pathlib
import signal
import socket
import time
import unittest

import penstock_case as pc
import running_case as rc


SIMULATE = ("simulate", "--schedule", "1f1b", "--stages", "4",
            "--micro-batches", "8")


def default_signals():
  """In a child: as a terminal starts it, not as a background job."""
  for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)


class StopTest(rc.RunningCase):

  def test_verbs_that_only_ask_are_ended_by_a_signal(self):
    # An address at which nobody answers, as of a host that drops packets.
    with socket.create_server(("127.0.0.1", 0)) as silent:
      silent.settimeout(pc.LONG)
      address = "127.0.0.1:%d" % silent.getsockname()[1]
      for verb in (SIMULATE, ("stages",), ("health",)):
        for number in (signal.SIGINT, signal.SIGTERM):
          with self.subTest(verb=verb[0], signal=number.name):
            child = self.start("penstock", *verb, "--address", address,
                               preexec_fn=default_signals)
            with silent.accept()[0]:
              os.kill(child.pid, number)
              self.assertEqual(self.finish(child).code, -number)

  def test_simulate_leaves_no_coordinator(self):
    child = self.start("penstock", *SIMULATE, preexec_fn=default_signals)
    # It may be faster than this looks.
    pc.wait_until(lambda: child.poll() is not None or
                  list(self.runtime.iterdir()), "a socket folder")
    if child.returncode is not None:
      self.assertEqual(child.returncode, 0)
      return
    since = self.kill(child.pid, signal.SIGTERM)
    done = self.end_within_limit(child, since)
    self.assertIn(done.code, (-signal.SIGTERM, 0), done)

  def test_run_stopped_while_the_model_is_written(self):
    child = self.start_writing("stopped")
    since = self.kill(child.pid, signal.SIGINT)
    done = self.end_within_limit(child, since)
    self.assertEqual(done.code, 130, done)
    self.assertNoHalfModel("stopped")

  def test_stop_at_any_time_leaves_a_summary(self):
    self.write_job(rc.ENDLESS_JOB)
    for number in range(3):
      run = self.work / f"early-{number}"
      child = self.start("penstock", "run", "job.yaml", "--run-dir", run)
      pc.wait_until((run / "logs").exists, "the run has its folder")
      since = self.kill(child.pid, signal.SIGINT)
      done = self.end_within_limit(child, since)
      self.assertEqual(done.code, 130, done)
      self.assertEqual(self.summary(run)["state"], "CANCELLED")

  def test_hangup_ignored_at_the_start_stays_ignored(self):
    self.write_job(rc.ENDLESS_JOB)
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

  def test_stage_that_hangs_ends_within_its_limit(self):
    # Whatever holds it up: here a connection that does not close, then a disk.
    child = self.start_writing("hung")
    stage = self.pid_of("penstock-stage --name stage-1")
    (path,) = self.runtime.glob("penstock-*/stage-1.sock")
    with socket.socket(socket.AF_UNIX) as idle:
      idle.connect(str(path))
      os.kill(child.pid, signal.SIGSTOP)  # Or it would send a second signal.
      since = self.kill(stage, signal.SIGTERM)
      pc.wait_until(lambda: stage not in pc.processes_of(self.folder),
                    "the stage has ended")
      self.assertLess(time.monotonic() - since, 3.7)
    os.kill(child.pid, signal.SIGCONT)
    done = self.finish(child)
    self.assertEqual(done.code, 1, done)
    self.assertIn("stage-1 ended: exit code 70", done.stderr)

  def test_signal_before_the_first_step(self):
    self.write_job(rc.ENDLESS_JOB)
    child = self.start("penstock", "run", "job.yaml", "--run-dir", "run")
    # Its coordinator is there: signals are blocked, none is lost.
    pc.wait_until(lambda: list(self.runtime.iterdir()), "a socket folder")
    since = self.kill(child.pid, signal.SIGINT)
    done = self.end_within_limit(child, since)
    self.assertEqual(done.code, 130, done)

  def test_coordinator_that_hangs_at_the_start_does_not_hold_up_the_end(self):
    self.write_job(rc.ENDLESS_JOB)
    child = self.start("penstock", "run", "job.yaml", "--run-dir", "run")
    pc.wait_until(lambda: list(self.runtime.glob("penstock-*/coordinator.sock")),
                  "the coordinator's socket")
    os.kill(self.pid_of("penstock-coordinator"), signal.SIGSTOP)
    since = self.kill(child.pid, signal.SIGINT)
    done = self.end_within_limit(child, since)
    self.assertEqual(done.code, 130, done)

  def test_coordinator_that_hangs_while_stages_die_does_not_either(self):
    child = self.start_running()
    os.kill(self.pid_of("penstock-coordinator"), signal.SIGSTOP)
    for name in ("stage-0", "stage-1"):
      os.kill(self.pid_of(f"penstock-stage --name {name}"), signal.SIGKILL)
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

  def test_signal_that_is_sent_twice_is_one(self):
    # By timeout(1) to its child and then to the group; where a terminal closes,
    # by the shell and then by the kernel.
    for number in (signal.SIGTERM, signal.SIGHUP):
      with self.subTest(number.name):
        child = self.start_running(number.name)
        # The cancel takes a while, and the second signal comes meanwhile.
        os.kill(self.pid_of("penstock-stage --name stage-1"), signal.SIGSTOP)
        since = self.kill(child.pid, number)
        pc.wait_until(lambda: not self.is_pending(child.pid, number),
                      "the first is heard")
        os.kill(child.pid, number)
        done = self.end_within_limit(child, since)
        self.assertEqual(done.code, 143, done)
        self.assertEqual(self.summary(number.name)["state"], "CANCELLED")
        self.assertTrue((self.work / number.name / "trace.json").exists())

  def is_pending(self, pid, number):
    """Whether a signal to the process waits to be taken."""
    (word,) = [line.split()[1] for line in
               pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
               if line.startswith("ShdPnd:")]
    return int(word, 16) >> (number - 1) & 1 == 1

  def full_pipe(self):
    """A pipe whose reader is paused: (its end, the writer's)."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
      while True:
        os.write(writer, b" " * 4096)
    except BlockingIOError:
      os.set_blocking(writer, True)
    taken = os.fdopen(reader, "rb")
    self.addCleanup(taken.close)
    return taken, writer

  def await_end_of_children(self, child, since):
    pc.wait_until(lambda: set(pc.processes_of(self.folder)) <= {child.pid},
                  "its processes have ended",
                  rc.LIMIT - (time.monotonic() - since))

  def test_output_that_nobody_takes_does_not_hold_up_a_stop(self):
    shown, writer = self.full_pipe()
    self.write_job(rc.ENDLESS_JOB)
    child = self.start("penstock", "run", "job.yaml", "--run-dir", "run",
                       stdout=writer, stderr=writer)
    os.close(writer)
    metrics = self.work / "run/metrics.jsonl"
    pc.wait_until(lambda: metrics.exists() and metrics.stat().st_size > 2000,
                  "the job goes on though its first step cannot be shown")
    since = self.kill(child.pid, signal.SIGTERM)
    self.await_end_of_children(child, since)
    # Once it is taken, all is there and in order.
    text = shown.read().decode().lstrip(" ")
    self.assertEqual(self.finish(child).code, 143)
    self.assertRegex(text, r"(?s)^note: .*\nstep 1/.*\nstopping .*\n"
                     r"penstock: stopped by SIGTERM.*\nreport: ")

  def test_output_that_nobody_takes_does_not_hold_up_the_results(self):
    _, writer = self.full_pipe()
    self.write_job()
    child = self.start("penstock", "run", "job.yaml", "--run-dir", "run",
                       stderr=writer)
    os.close(writer)
    pc.wait_until((self.work / "run/report.html").exists, "the report")
    self.assertTrue((self.work / "run/logs/coordinator.log").exists())
    since = self.kill(child.pid, signal.SIGTERM)
    self.assertEqual(self.end_within_limit(child, since).code, -signal.SIGTERM)

  def test_output_that_nobody_takes_keeps_nothing_of_a_refused_run(self):
    _, writer = self.full_pipe()
    self.write_job()
    (self.work / "text.txt").write_text("short")
    before = self.work.stat().st_mtime_ns
    child = self.start("penstock", "run", "job.yaml", "--run-dir", "run",
                       stderr=writer)
    os.close(writer)
    pc.wait_until(lambda: self.work.stat().st_mtime_ns != before and
                  not (self.work / "run").exists(),
                  "the run directory was made and is gone")
    since = self.kill(child.pid, signal.SIGTERM)
    self.assertEqual(self.end_within_limit(child, since).code, -signal.SIGTERM)

  def test_run_that_has_ended_its_processes_is_ended_by_a_signal(self):
    _, writer = self.full_pipe()
    self.write_job()
    child = self.start("penstock", "run", "job.yaml", "--run-dir", "run",
                       stdout=writer)
    os.close(writer)
    pc.wait_until((self.work / "run/report.html").exists, "the report")
    self.await_end_of_children(child, time.monotonic())
    since = self.kill(child.pid, signal.SIGTERM)
    self.assertEqual(self.end_within_limit(child, since).code, -signal.SIGTERM)

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


if __name__ == "__main__":
  unittest.main()
