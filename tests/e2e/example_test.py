"""The examples run: the one that `./dev demo` trains learns in its first steps,
by the same job file and data; the virtual one takes its modelled times.

The bar of the whole demo, 1200 steps and minutes, is a validation loss of 2.00
nats a byte (docs/benchmarks.md has what it reaches)."""

import collections
import math
import unittest

import penstock_case as pc

EXAMPLES = pc.TEST_DATA.parents[1] / "examples"
FOLDER = EXAMPLES / "shakespeare"
STEPS = 150


def nats_a_byte(text, context):
  """The entropy of a byte of `text` where the `context` bytes before it are
  known."""
  ends = range(context, len(text))
  whole = collections.Counter(text[end - context:end + 1] for end in ends)
  known = collections.Counter(text[end - context:end] for end in ends)
  return -sum(count / len(ends) * math.log(count / known[gram[:-1]])
              for gram, count in whole.items())


class ExampleTest(pc.PenstockCase):

  def test_its_first_steps_learn_more_than_pairs_of_bytes(self):
    # As the whole run, with warm-up and decay in these steps.
    done = self.finish(
        self.start("penstock", "run", FOLDER / "job.yaml", "--run-dir", "run",
                   "--set", f"steps={STEPS}",
                   "--set", "lr_schedule.warmup_steps=20",
                   "--set", f"evaluate.every={STEPS}"),
        limit=4 * pc.LONG)
    self.assertEqual(done.code, 0, done)
    losses = [line["loss"] for line in self.json_lines("metrics.jsonl")]
    self.assertEqual(len(losses), STEPS)
    # A model that knows nothing gives each of 256 bytes the same chance.
    self.assertAlmostEqual(losses[0], math.log(256), delta=0.1)
    # One that sees the last byte alone, because attention or positions do not
    # work, gets no lower than this, however long it learns; nor does one on
    # text that it was not trained on, if it learnt by heart.
    text = (FOLDER / "shakespeare.txt").read_bytes()
    self.assertLess(self.summary()["validation_loss"], nats_a_byte(text, 1))

  def test_the_virtual_one_takes_its_modelled_times(self):
    summary = self.succeed("--set", "steps=2", job=EXAMPLES / "virtual/job.yaml")
    for stage in summary["stages"]:  # 8 micro-batches of F, I and W.
      self.assertAlmostEqual(stage["busy_seconds"], 2 * 8 * 0.060, delta=1e-6)
    # (K - 1)/(3M + K - 1) of zb-h1.
    self.assertAlmostEqual(summary["bubble_rate"]["predicted"], 3 / 27)


if __name__ == "__main__":
  unittest.main()
