"""The virtual device: modelled times are what is measured, to the nanosecond;
the bits are those of the reference; a held stage stops at once.
"""

import json
import signal
import time
import unittest

import penstock_case as pc

STAGES = 4
MICRO_BATCHES = 4
STEPS = 4

# 12 ms a stage and micro-batch.
JOB = """\
name: modelled
model: {family: gpt2, layers: 4, width: 32, heads: 2, context: 16}
data: {train: text.txt}
batch: {global: 8, micro_batch: 2}
pipeline: {stages: 4, schedule: 1f1b}
steps: 4
device: virtual
virtual: {forward: 4ms, backward_input: 5ms, backward_weight: 3ms}
"""


class VirtualTest(pc.PenstockCase):

  def setUp(self):
    super().setUp()
    self.write_job(JOB)

  def simulated(self, *flags):
    """Seconds of a step, by `penstock simulate` in milliseconds."""
    done = self.penstock(
        "simulate", "--schedule", "1f1b", "--stages", STAGES, "--micro-batches",
        MICRO_BATCHES, "--forward", 4, "--backward-input", 5,
        "--backward-weight", 3, *flags, "-o", "json")
    self.assertEqual(done.code, 0, done)
    return json.loads(done.stdout)["makespan"] / 1000

  def test_a_step_takes_what_is_modelled_and_the_bits_are_the_references(self):
    summary = self.succeed()
    for stage in summary["stages"]:
      self.assertAlmostEqual(stage["busy_seconds"],
                             STEPS * MICRO_BATCHES * 0.012, delta=1e-6)
    bound = self.simulated()
    self.assertAlmostEqual(bound, 7 * 0.012)
    for line in self.json_lines("metrics.jsonl"):
      self.assertGreaterEqual(line["step_seconds"], bound)
    self.assertAlmostEqual(summary["bubble_rate"]["predicted"], 3 / 7)
    self.assertAlmostEqual(summary["realisation"],
                           bound / summary["step_seconds"]["p50"], places=6)
    self.assertRegex(summary["versions"]["numerics"], "^virtual-reference-")
    self.assertEqual(summary["versions"]["devices"], ["virtual"] * STAGES)
    self.assertEqual(
        self.succeed("--set", "device=reference", "--set", "virtual={}",
                     run_dir="reference")["weights_sha256"],
        summary["weights_sha256"])

  def test_transfers_take_time(self):
    summary = self.succeed("--set", "virtual.transfer=10ms")
    bound = self.simulated("--transfer", 10)
    self.assertGreater(bound, self.simulated() + 0.060)
    self.assertGreaterEqual(summary["step_seconds"]["p50"], bound)
    self.assertLessEqual(summary["realisation"], 1)
    for stage in summary["stages"]:  # No part of an operation.
      self.assertAlmostEqual(stage["busy_seconds"],
                             STEPS * MICRO_BATCHES * 0.012, delta=1e-6)
    # A message has 32 rows of 32 numbers: 4096 bytes, 10 ms.
    by_bytes = self.succeed("--set", "virtual.bandwidth=400KiB",
                            run_dir="by_bytes")
    self.assertGreaterEqual(by_bytes["step_seconds"]["p50"],
                            self.simulated("--transfer", 9.9))

  def test_what_one_job_measured_another_models(self):
    self.succeed("--set", "device=cpu", "--set", "virtual={}", run_dir="cpu")
    measured = json.loads((self.work / "cpu/profile.json").read_text())
    self.assertEqual(len(measured["stages"]), STAGES)
    for stage in measured["stages"]:
      self.assertGreater(stage["forward"], 0)
      self.assertGreater(stage["backward"], 0)
      self.assertIsNone(stage["backward_input"])
    self.succeed("--set", "virtual={profile: cpu/profile.json}")
    modelled = json.loads((self.work / "run/profile.json").read_text())
    for one, other in zip(measured["stages"], modelled["stages"], strict=True):
      for op in ("forward", "backward"):
        self.assertAlmostEqual(one[op], other[op], delta=2e-9)

  def test_a_profile_of_another_pipeline_is_refused_at_its_key(self):
    stage = {"forward": 0.001, "backward": 0.002}
    (self.work / "p.json").write_text(json.dumps({"stages": [stage] * 3}))
    refused = self.run_job("--set", "virtual={profile: p.json}")
    self.assertEqual(refused.code, 2, refused)
    self.assertRegex(
        refused.stderr,
        r"virtual\.profile: has the times of 3 stages, and the pipeline has 4")
    (self.work / "p.json").write_text("{")
    refused = self.run_job("--set", "virtual={profile: p.json}")
    self.assertEqual(refused.code, 2, refused)
    self.assertIn("virtual.profile: profile: it is no JSON", refused.stderr)
    refused = self.run_job("--set", "virtual={profile: absent.json}")
    self.assertEqual(refused.code, 2, refused)
    self.assertRegex(refused.stderr, r"virtual\.profile: .*absent\.json")
    self.assertFalse((self.work / "run").exists())

  def test_a_stage_that_is_held_for_a_minute_stops_at_once(self):
    job = self.start("penstock", "run", "job.yaml", "--run-dir", "run", "--set",
                     "virtual.forward=60s")
    events = self.work / "run/events.jsonl"
    pc.wait_until(lambda: events.exists() and
                  "ASSEMBLING -> RUNNING" in events.read_text(), "it runs")
    asked = time.monotonic()
    job.send_signal(signal.SIGINT)
    done = self.finish(job)
    self.assertLess(time.monotonic() - asked, 2, done)
    self.assertEqual(done.code, 130, done)
    self.assertEqual(self.summary()["state"], "CANCELLED")
    self.assertNothingStays()


if __name__ == "__main__":
  unittest.main()
