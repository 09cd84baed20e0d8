"""`penstock run` on models and batches that torch + transformers trained too:
the loss of every step, an evaluation, and the weights that the run leaves in
RUN_DIR/model, whose weights_sha256 summary.json has."""

import json
import unittest

import penstock_case as pc

LOSS_CURVE = 1e-5     # Relative, every step.
FINAL_WEIGHTS = 1e-3  # Of the tensor's largest element.

# Cells: case, device, K, micro-batch size, schedule.
CELLS = [
    ("gpt2_tiny", "cpu", 2, 2, "1f1b"),
    ("gpt2_tiny", "reference", 3, 1, "gpipe"),
    ("gpt2_masked", "cpu", 3, 1, "1f1b"),
    ("gpt2_untied_odd", "cpu", 1, 2, "naive"),
    ("llama_gqa", "cpu", 3, 4, "gpipe"),
    ("llama_gqa", "reference", 2, 2, "1f1b"),
    ("llama_tied", "cpu", 2, 1, "naive"),
]

JOB = """\
model: {{from: {case}/model}}
data: {{train: {case}/train.jsonl, validation: valid.jsonl, order: sequential}}
batch: {{global: {batch}, micro_batch: {micro_batch}}}
pipeline: {{stages: {stages}, schedule: {schedule}}}
optimizer: {{kind: adamw, lr: {lr}, betas: [0.9, 0.95], eps: 1e-8, weight_decay: 0.1, clip_norm: 1.0}}
steps: {steps}
evaluate: {{every: {evaluated}, batches: 1}}
device: {device}
"""


class ParityTest(pc.PenstockCase):

  def check(self, case, device, stages, micro_batch, schedule):
    folder = pc.TEST_DATA / "parity" / case
    expected = json.loads((folder / "expected.json").read_text())
    steps, batch = len(expected["steps"]), expected["sequences_per_step"]
    # What the last step trains on is evaluated just before it: no dropout, the
    # same weights, so its loss is torch's.
    lines = (folder / "train.jsonl").read_text().splitlines(keepends=True)
    self.assertEqual(len(lines), steps * batch)
    (self.work / "valid.jsonl").write_text("".join(lines[-batch:]))
    self.write_job(JOB.format(
        case=folder, batch=batch, micro_batch=micro_batch, stages=stages,
        schedule=schedule, lr=expected["lr"], steps=steps, evaluated=steps - 1,
        device=device))
    run_dir = "-".join(map(str, ("run", case, device, stages, micro_batch)))
    summary = self.succeed(run_dir=run_dir)

    metrics = self.json_lines("metrics.jsonl", run_dir)
    self.assertEqual(len(metrics), steps)
    wanted = expected["steps"][-1]["loss"]
    self.assertLessEqual(abs(metrics[-2]["validation_loss"] - wanted),
                         LOSS_CURVE * abs(wanted))
    for ours, theirs in zip(metrics, expected["steps"]):
      self.assertEqual(ours["tokens"], theirs["valid_tokens"])
      self.assertLessEqual(abs(ours["loss"] - theirs["loss"]),
                           LOSS_CURVE * abs(theirs["loss"]),
                           f"loss of step {ours['step']}")

    model = self.work / run_dir / "model"
    self.assertEqual(summary["weights_sha256"], pc.weights_sha256(model))
    ours = pc.read_model_folder(model)
    theirs = pc.read_safetensors(folder / "final.safetensors")
    self.assertEqual(sorted(ours), sorted(theirs))
    for name, wanted in theirs.items():
      self.assertEqual(len(ours[name]), len(wanted), name)
      worst = max(abs(a - b) for a, b in zip(ours[name], wanted))
      largest = max(map(abs, wanted))
      self.assertLessEqual(worst, FINAL_WEIGHTS * largest, name)


def add_cell(cell):
  case, device, stages, micro_batch, schedule = cell

  def test(self):
    self.check(*cell)
  setattr(ParityTest, f"test_{case}_on_{device}_k{stages}_micro_batch"
          f"{micro_batch}_{schedule}", test)


for each in CELLS:
  add_cell(each)

if __name__ == "__main__":
  unittest.main()
