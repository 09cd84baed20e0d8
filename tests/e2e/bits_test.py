"""The same job gives the same bits: weights_sha256 over depths, schedules,
recompute and threads, dropout on, through real processes. (The integration
suite walks the whole grid in one process.)"""

import unittest

import penstock_case as pc

JOB = """\
name: bits
model: {family: gpt2, layers: 3, width: 32, heads: 2, context: 16, dropout: 0.1}
data: {train: text.txt, validation: 10%}
batch: {global: 8, micro_batch: 2}
pipeline: {stages: 1, schedule: naive}
lr_schedule: {kind: cosine, warmup_steps: 2, min_ratio: 0.1}
evaluate: {every: 5, batches: 1}
steps: 10
device: cpu
threads_per_stage: 1
"""

# K, schedule, recompute, threads a stage, device; the first is the measure.
CELLS = [
    (1, "naive", "none", 1, "cpu"),
    (1, "gpipe", "full", 2, "cpu"),
    (2, "1f1b", "none", 1, "cpu"),
    (2, "naive", "full", 2, "cpu"),
    (2, "gpipe", "none", 2, "cpu"),
    (3, "1f1b", "full", 1, "cpu"),
    (3, "gpipe", "full", 2, "cpu"),
    (3, "naive", "none", 1, "cpu"),
    (4, "1f1b", "none", 2, "cpu"),
    (4, "gpipe", "none", 1, "cpu"),
    (4, "naive", "full", 1, "cpu"),
]

REFERENCE_CELLS = [
    (1, "1f1b", "none", 1, "reference"),
    (4, "gpipe", "full", 1, "reference"),
]


class BitsTest(pc.PenstockCase):

  def outcome(self, cell):
    """What must not depend on how the job is cut."""
    stages, schedule, recompute, threads, device = cell
    run_dir = "-".join(map(str, cell))
    summary = self.succeed(
        "--set", f"pipeline.schedule={schedule}",
        "--set", f"pipeline.recompute={recompute}",
        "--set", f"threads_per_stage={threads}",
        "--set", f"device={device}", "--stages", stages, run_dir=run_dir)
    self.assertEqual(len(summary["stages"]), stages)
    for stage in summary["stages"]:
      self.assertEqual(stage["peak_activation_bytes"]["measured"],
                       stage["peak_activation_bytes"]["predicted"], stage)
    losses = [(line["loss"], line["grad_norm"], line.get("validation_loss"))
              for line in self.json_lines("metrics.jsonl", run_dir)]
    return summary["weights_sha256"], losses

  def check(self, cells):
    self.write_job(JOB)
    measure = self.outcome(cells[0])
    self.assertRegex(measure[0], "^[0-9a-f]{64}$")
    self.assertEqual(len(measure[1]), 10)
    for cell in cells[1:]:
      with self.subTest(cell):
        self.assertEqual(self.outcome(cell), measure)
    return measure

  def test_cpu(self):
    self.check(CELLS)

  def test_reference(self):
    self.check(REFERENCE_CELLS)

  def test_another_seed_gives_other_bits(self):
    self.write_job(JOB)
    first = self.outcome(CELLS[0])
    self.write_job(JOB + "seed: 2\n")
    self.assertNotEqual(
        self.succeed(run_dir="second")["weights_sha256"], first[0])


if __name__ == "__main__":
  unittest.main()
