"""Jobs whose results cannot be written, and whose numbers are none: what is said,
and what is left."""

import json
import os
import time
import unittest

import penstock_case as pc
import running_case as rc


class ResultsTest(rc.RunningCase):

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

  def test_closed_standard_streams_are_no_others(self):
    self.write_job()
    for closed in ((0,), (0, 1), (0, 1, 2)):
      with self.subTest(closed=closed):
        run = self.work / f"closed-{len(closed)}"
        done = self.finish(self.start(
            "penstock", "run", "job.yaml", "--run-dir", run,
            preexec_fn=lambda: [os.close(fd) for fd in closed]))
        # Output that was wanted and could not be written is 1, as ever.
        self.assertEqual(done.code, 1 if 1 in closed else 0, done)
        self.assertEqual(self.summary(run)["state"], "SUCCEEDED")
        log = (run / "logs/coordinator.log").read_text()
        self.assertIn("serving on unix:", log)

  def test_run_ends_soon_after_its_job(self):
    self.write_job()
    child = self.start("penstock", "run", "job.yaml", "--run-dir", "run")
    pc.wait_until((self.work / "run/summary.json").exists, "a summary")
    since = time.monotonic()
    done = self.finish(child)
    self.assertEqual(done.code, 0, done)
    self.assertLess(time.monotonic() - since, rc.LIMIT, done)
    self.assertNothingStays()


if __name__ == "__main__":
  unittest.main()
