"""The pictures of docs/schedules.md: each is what `penstock simulate` draws now,
and each schedule that is built has one. To make them anew:

  ./dev pictures
"""

import os
import pathlib
import re
import unittest

import penstock_case as pc

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
REGENERATE = "PENSTOCK_REGENERATE_GOLDEN" in os.environ


# K = 4, M = 8, and what shows a schedule better than the defaults do.
SHAPE = ["--stages", "4", "--micro-batches", "8"]
MORE = {
    # With one chunk it is zb-h1.
    "zb1p-interleaved": ["--chunks", "2"],
    # With equal times and enough memory a fixed schedule is the best.
    "auto": ["--backward-input", "1.3", "--backward-weight", "0.7",
             "--transfer", "0.1", "--memory-limit", "3"],
}


class PicturesTest(pc.PenstockCase):

  def built(self):
    """The schedules that there are, as the program itself lists them."""
    done = self.penstock("simulate", "--schedule", "none", "--stages", "1",
                         "--micro-batches", "1")
    self.assertEqual(done.code, 2, done)
    listed = done.stderr.rpartition("there are ")[2].strip()
    return listed.removesuffix(", or file:PATH").split(", ")

  def test_each_schedule_has_its_picture(self):
    built = self.built()
    self.assertIn("1f1b", built)
    folder = DOCS / "pictures"
    for name in built:
      with self.subTest(name):
        drawn = self.penstock("simulate", "--schedule", name, *SHAPE,
                              *MORE.get(name, []), "-o", "svg")
        self.assertEqual(drawn.code, 0, drawn)
        path = folder / f"{name}.svg"
        if REGENERATE:
          path.write_text(drawn.stdout)
        # Not assertEqual, which prints both.
        self.assertTrue(path.exists() and path.read_text() == drawn.stdout,
                        f"{path} is not what simulate draws: ./dev pictures")
    self.assertEqual(sorted(p.stem for p in folder.iterdir()), sorted(built))
    text = (DOCS / "schedules.md").read_text()
    self.assertEqual(
        sorted(re.findall(r"\]\(pictures/([a-z0-9-]+)\.svg\)", text)),
        sorted(built))


if __name__ == "__main__":
  unittest.main()
