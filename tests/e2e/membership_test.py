"""Which stages a coordinator has: names, leases, incarnations, and the terms of
the coordinator itself."""

import signal
import time
import unittest

import daemon_case as dc
import penstock_case as pc


class MembershipTest(dc.DaemonCase):

  def test_second_stage_of_a_name_ends_after_one_lease(self):
    coordinator, address = self.start_coordinator("--lease", "1s",
                                                  "--heartbeat", "200ms")
    first = self.start_stage(address)
    self.await_stage(address, "stage-a", "REGISTERED")
    since = time.monotonic()
    second = self.finish(self.start_stage(address, socket_name="other"))
    self.assertEqual(second.code, 2, second)
    # The coordinator's lease, not the default of 10 s.
    self.assertLess(time.monotonic() - since, 5)
    self.assertIn("stage-a", second.stderr)
    got = self.await_stage(address, "stage-a", "REGISTERED")
    self.assertEqual(got["pid"], first.pid)
    self.terminate(first)
    self.terminate(coordinator)

  def test_killed_stage_comes_back_under_its_name(self):
    coordinator, address = self.start_coordinator("--lease", "1s",
                                                  "--heartbeat", "200ms")
    first = self.start_stage(address)
    self.await_stage(address, "stage-a", "REGISTERED")
    first.kill()
    first.wait()
    second = self.start_stage(address)
    pc.wait_until(lambda: any(s["pid"] == second.pid and
                              s["state"] == "REGISTERED"
                              for s in self.stages(address)),
                  "the new process has the name")
    self.terminate(second)
    self.terminate(coordinator)

  def test_killed_stage_of_a_job_is_found_long_before_its_lease(self):
    # Nobody reaps these stages for the coordinator: it goes by the session that
    # breaks, and by the neighbours' edges or, of a job of one stage, by the
    # monitor's port alone.
    for count, kind in ((3, "unix"), (1, "unix"), (1, "tcp")):
      with self.subTest(count=count, kind=kind):
        run = self.work / f"run-{count}-{kind}"
        coordinator, address = self.start_coordinator(
            "--embedded", listen="127.0.0.1:0")
        names = [f"stage-{rank}" for rank in range(count)]
        stages = [
            self.start("penstock-stage", "--coordinator", address, "--name",
                       name, "--listen", f"unix:{self.folder}/{name}.sock"
                       if kind == "unix" else "127.0.0.1:0")
            for name in names]
        self.write_job(pc.TINY_JOB.replace("stages: 2", f"stages: {count}")
                       .replace("steps: 4", "steps: 1000000"))
        submit = self.start("penstock_submit_job", address, "job.yaml", run)
        metrics = run / "metrics.jsonl"
        pc.wait_until(lambda: submit.poll() is not None or
                      metrics.exists() and metrics.stat().st_size > 0,
                      "a step is committed")
        victim = names[count // 2]
        since = time.monotonic()
        stages[count // 2].kill()
        done = self.finish(submit)
        # The lease is 10 s.
        self.assertLess(time.monotonic() - since, 4)
        self.assertEqual(done.code, 0, done)
        summary = self.summary(run)
        self.assertEqual((summary["state"], summary["reason"],
                          summary["cause"]["stage"]),
                         ("FAILED", "STAGE_LOST", victim))
        evidence = ["its monitor port refuses connections"]
        if count > 1:
          evidence.append(r"stage-[02] lost its data edge to it")
        self.assertRegex(summary["cause"]["message"],
                         rf"^{victim} \(.*\) is lost: its session broke and "
                         rf"({'|'.join(evidence)})")
        lost = [event["stage"] for event in self.json_lines("events.jsonl", run)
                if event["kind"] == "STAGE_LOST" and not event["consequence"]]
        self.assertEqual(lost, [victim])
        for stage in stages:
          if stage.poll() is None:
            self.terminate(stage)
        self.terminate(coordinator)

  def test_silent_stage_is_lost_after_its_lease(self):
    coordinator, address = self.start_coordinator("--lease", "1s",
                                                  "--heartbeat", "200ms")
    stage = self.start_stage(address)
    self.await_stage(address, "stage-a", "REGISTERED")
    stage.send_signal(signal.SIGSTOP)
    self.await_stage(address, "stage-a", "LOST")
    stage.send_signal(signal.SIGCONT)
    # It is told, and registers anew.
    self.await_stage(address, "stage-a", "REGISTERED")
    self.terminate(stage)
    self.terminate(coordinator)

  def test_stage_waits_for_its_coordinator(self):
    address = f"unix:{self.folder}/coordinator.sock"
    stage = self.start_stage(address)
    pc.wait_until((self.folder / "stage-a.sock").exists, "the stage listens")
    coordinator, _ = self.start_coordinator()
    self.await_stage(address, "stage-a", "REGISTERED")
    # And for the next one, which has the next term.
    coordinator.kill()
    coordinator.wait()
    since = time.monotonic()
    coordinator, _ = self.start_coordinator(term=2)
    self.await_stage(address, "stage-a", "REGISTERED")
    # Two dials: one hears that it is unknown, the other registers.
    self.assertLess(time.monotonic() - since, 5)
    log = self.terminate(stage).stderr
    self.assertIn("stands, term 1\n", log)
    self.assertIn("stands, term 2\n", log)
    self.terminate(coordinator)

  def test_stage_refuses_a_coordinator_of_the_past(self):
    address = f"unix:{self.folder}/coordinator.sock"
    for term in (1, 2):
      coordinator, _ = self.start_coordinator(term=term)
      coordinator.kill()
      coordinator.wait()
    coordinator, _ = self.start_coordinator(term=3)
    stage = self.start_stage(address)
    self.await_stage(address, "stage-a", "REGISTERED")
    self.terminate(coordinator)
    (self.folder / "state/term").unlink()
    coordinator, _ = self.start_coordinator(term=1)
    line = pc.wait_until(
        lambda: next((line for line in iter(stage.stderr.readline, "")
                      if "has seen term 3" in line), None), "it is refused")
    self.assertIn("this coordinator is at term 1", line)
    self.assertIn("--state-dir", line)
    self.terminate(stage)
    self.terminate(coordinator)

  def test_damaged_term_is_exit_2(self):
    coordinator, address = self.start_coordinator()
    self.terminate(coordinator)
    (self.folder / "state/term").write_text("2")
    done = self.finish(self.start("penstock-coordinator", "--state-dir",
                                  self.folder / "state", "--listen", address))
    self.assertEqual(done.code, 2, done)
    self.assertRegex(done.stderr, r"--state-dir \S+/state/term: damaged: '2'")
    self.assertEqual((self.folder / "state/term").read_text(), "2")


if __name__ == "__main__":
  unittest.main()
