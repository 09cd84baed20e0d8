"""`penstock simulate`, `verify` and `version`: numbers against closed forms, the
order as csv through the verifier and back, every fault refused."""

import json
import subprocess
import unittest
from xml.etree import ElementTree

import penstock_case as pc


class ScheduleCommandTest(pc.PenstockCase):

  def simulate(self, *arguments):
    done = self.penstock("simulate", *arguments)
    self.assertEqual(done.code, 0, done)
    return done.stdout

  def test_json_has_the_numbers_of_the_closed_form(self):
    got = json.loads(self.simulate(
        "--schedule", "1f1b", "--stages", "4", "--micro-batches", "8",
        "-o", "json"))
    self.assertLessEqual(
        {"makespan", "bubble_rate", "span_bubble_rate", "ranks", "edges",
         "critical_path"}, got.keys())
    # F = I = W = 1: M + K - 1 of F and B = 3.
    self.assertEqual(got["makespan"], 11 * 3)
    self.assertAlmostEqual(got["bubble_rate"], 3 / 11)
    self.assertEqual([rank["peak_in_flight"] for rank in got["ranks"]],
                     [4, 3, 2, 1])
    self.assertEqual([rank["busy"] for rank in got["ranks"]], [24] * 4)
    edges = {(edge["from"], edge["to"]) for edge in got["edges"]}
    self.assertEqual(edges, {(0, 1), (1, 2), (2, 3), (3, 2), (2, 1), (1, 0)})
    self.assertTrue(all(edge["capacity"] >= 1 for edge in got["edges"]))
    self.assertTrue(got["critical_path"])
    self.assertEqual(got["closed_form"]["formula"], "(K−1)/(M+K−1)")
    self.assertAlmostEqual(got["closed_form"]["bubble_rate"], 3 / 11)
    self.assertEqual(got["chunks"], 1)
    self.assertEqual([rank["idle"] for rank in got["ranks"]], [9] * 4)
    self.assertEqual([rank["first_start"] for rank in got["ranks"]],
                     [0, 1, 2, 3])
    self.assertEqual([rank["peak_activations"] for rank in got["ranks"]],
                     [4, 3, 2, 1])
    # The parts of the path are all of it, and none saves more than its share.
    self.assertAlmostEqual(sum(s["on_path"] for s in got["savings"]), 33)
    for saving in got["savings"]:
      self.assertGreaterEqual(saving["saved"], 0)
      self.assertLessEqual(saving["saved"], saving["on_path"] / 100 + 1e-9)
    self.assertGreater(got["savings"][0]["saved"], 0)

  def test_naive_and_times(self):
    got = json.loads(self.simulate(
        "--schedule", "naive", "--stages", "4", "--micro-batches", "2",
        "--forward", "2", "--backward-input", "3", "--backward-weight", "1",
        "-o", "json"))
    self.assertEqual(got["makespan"], 2 * 4 * 6)
    self.assertAlmostEqual(got["bubble_rate"], 0.75)

  def test_table(self):
    table = self.simulate("--schedule", "gpipe", "--stages", "2",
                          "--micro-batches", "3")
    self.assertIn("makespan 12  bubble rate 25.00 %", table)
    self.assertIn("textbook bubble rate (K−1)/(M+K−1) = 25.00 %", table)
    self.assertRegex(table, r"(?m)^RANK +BUSY +IDLE +FIRST START +LAST END +"
                     r"PEAK IN FLIGHT\n0 +9 +3 +0 +12 +3$")
    self.assertRegex(table, r"(?m)^EDGE +FROM RANK +TO RANK +CAPACITY\n0->1 ")
    self.assertRegex(table, r"(?m)^CRITICAL PATH +COUNT +TIME +SHARE +"
                     r"1 % FASTER SAVES\n")

  def test_every_schedule_needs_no_chunks_flag(self):
    for schedule, chunks in (
        ("naive", 1), ("gpipe", 1), ("1f1b", 1), ("interleaved", 2),
        ("looped-bfs", 2), ("zb-h1", 1), ("zb-h2", 1), ("zb1p-interleaved", 1),
        ("zb-v", 2), ("v-half", 2), ("v-min", 2), ("dualpipe-v", 2),
        ("auto", None)):
      with self.subTest(schedule):
        shape = ("--stages", "2", "--micro-batches", "4")
        got = json.loads(
            self.simulate("--schedule", schedule, *shape, "-o", "json"))
        self.assertIn(got["chunks"], (1, 2) if chunks is None else (chunks,))
        self.assertEqual(got["found"] is None, schedule != "auto")
        # The order itself goes through the verifier as it is.
        csv = self.simulate("--schedule", schedule, *shape, "-o", "csv")
        (self.work / "order.csv").write_text(csv)
        done = self.penstock("verify", "order.csv", *shape)
        self.assertEqual(done.code, 0, done)

  def test_svg_is_a_picture_of_every_command(self):
    svg = self.simulate("--schedule", "1f1b", "--stages", "4",
                        "--micro-batches", "8", "-o", "svg")
    root = ElementTree.fromstring(svg)
    namespace = "{http://www.w3.org/2000/svg}"
    self.assertEqual(root.tag, namespace + "svg")
    self.assertEqual(svg.count("://"), 1)  # Nothing is loaded from anywhere.
    self.assertFalse(root.findall(f".//{namespace}script"))
    tips = [box.find(namespace + "title").text
            for box in root.iter(namespace + "rect")
            if box.find(namespace + "title") is not None]
    self.assertEqual(sorted(tip.split(":")[0] for tip in tips),
                     sorted(f"{stage}{op}{m}" for stage in range(4)
                            for op in "FB" for m in range(8)))
    self.assertIn("1f1b, K = 4, M = 8", svg)
    self.assertIn("makespan 33, bubble rate 27.27 %", svg)

  def test_csv_is_verified_and_runs(self):
    for schedule in ("naive", "gpipe", "1f1b"):
      with self.subTest(schedule):
        csv = self.simulate("--schedule", schedule, "--stages", "2",
                            "--micro-batches", "4", "-o", "csv")
        path = self.work / f"{schedule}.csv"
        path.write_text(csv)
        done = self.penstock("verify", path.name, "--stages", "2",
                             "--micro-batches", "4")
        self.assertEqual(done.code, 0, done)
        self.assertIn("16 commands, correct", done.stdout)
        # And simulated, as what it was made from.
        for form in ("csv", "json"):
          shape = ("--stages", "2", "--micro-batches", "4", "-o", form)
          got = self.simulate("--schedule", f"file:{path.name}", *shape)
          wanted = self.simulate("--schedule", schedule, *shape)
          if form == "json":
            got, wanted = json.loads(got), json.loads(wanted)
            self.assertIsNone(got.pop("closed_form"))
            self.assertTrue(wanted.pop("closed_form"))
          self.assertEqual(got, wanted)
        self.write_job()
        from_file = self.succeed("--set", f"pipeline.schedule=file:{path.name}",
                                 run_dir=f"file-{schedule}")
        named = self.succeed("--set", f"pipeline.schedule={schedule}",
                             run_dir=schedule)
        self.assertEqual(from_file["weights_sha256"], named["weights_sha256"])
    self.assertNothingStays()

  def test_an_order_of_megabytes_is_verified(self):
    shape = ("--stages", "8", "--micro-batches", "8192")
    csv = self.simulate("--schedule", "zb-h1", *shape, "-o", "csv")
    self.assertGreater(len(csv), 1 << 20)
    (self.work / "large.csv").write_text(csv)
    done = self.penstock("verify", "large.csv", *shape)
    self.assertEqual(done.code, 0, done)
    self.assertIn("196608 commands, correct", done.stdout)
    with open(self.work / "larger.csv", "w") as larger:
      larger.truncate((45 << 20) + 1)
    done = self.penstock("verify", "larger.csv", *shape)
    self.assertEqual(done.code, 2, done)
    self.assertIn("schedule file larger.csv: has more than 47185920 bytes",
                  done.stderr)

  def test_verify_shows_the_place(self):
    good = ["0F0,0F1,0B0,0B1", "1F0,1B0,1F1,1B1"]
    # What is wrong: the file's text, and what the answer has to say.
    table = {
        "garbage": ("\n".join([good[0], "1F0,1B0,1F1x,1B1"]) + "\n",
                    r"\.csv:2:12: \"1F1x\""),
        "missing": ("\n".join([good[0], "1F0,1B0,1F1"]) + "\n",
                    "rank 1.*1B1 .*is missing"),
        "twice": ("\n".join([good[0] + ",0F1", good[1]]) + "\n", "0F1"),
        "row": (good[0] + "\n", "row"),
        "micro-batch": ("\n".join(["0F0,0F2,0B0,0B2", good[1]]) + "\n", "0F2"),
        "wrong-rank": ("\n".join(reversed(good)) + "\n", "rank 0"),
        "order": ("\n".join(["0B0,0F0,0F1,0B1", good[1]]) + "\n", "0B0"),
        "descending": ("\n".join(["0F0,0F1,0B1,0B0", "1F0,1F1,1B1,1B0"]) + "\n",
                       "ascending|order"),
        "empty": ("", "row|empty"),
    }
    for name, (text, wanted) in table.items():
      with self.subTest(name):
        (self.work / f"{name}.csv").write_text(text)
        done = self.penstock("verify", f"{name}.csv", "--stages", "2",
                             "--micro-batches", "2")
        self.assertEqual(done.code, 2, done)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, wanted)

  def test_verify_finds_a_deadlock_at_given_slots(self):
    # Rank 0 sends all activations before it takes a gradient; rank 1 sends a
    # gradient after each. With few slots both wait to send.
    count = 8
    ranks = ([f"0F{m}" for m in range(count)] +
             [f"0B{m}" for m in range(count)],
             [f"1{op}{m}" for m in range(count) for op in "FB"])
    (self.work / "eager.csv").write_text(
        "".join(",".join(rank) + "\n" for rank in ranks))
    arguments = ("verify", "eager.csv", "--stages", "2",
                 "--micro-batches", str(count))
    for enough in ((), ("--slots", "8")):
      done = self.penstock(*arguments, *enough)
      self.assertEqual(done.code, 0, done)
      self.assertIn("32 commands, correct" +
                    (" with 8 slots on every edge;" if enough else ";"),
                    done.stdout)
    # Slots, and where rank 0 hangs.
    for slots, place in ((0, "0F3"), (1, "0F5")):
      with self.subTest(slots):
        done = self.penstock(*arguments, "--slots", slots)
        self.assertEqual(done.code, 2, done)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, rf"eager\.csv: rank 0, position \d+ "
                         rf"\({place}\): deadlock with rendezvous sends; cycle:")
        self.assertRegex(done.stderr, "no free send buffer before message .* of "
                         "activation 0->1")
        self.assertRegex(done.stderr, "no free send buffer before message .* of "
                         "gradient 1->0")
        # The grid, with the place in it.
        self.assertRegex(done.stderr, rf"(?m)^rank 0 .*>{place}<")
        self.assertRegex(done.stderr, r"(?m)^rank 1 +1F0  1B0  1F1  1B1")

  def test_verify_names_a_missing_file(self):
    done = self.penstock("verify", "none.csv", "--stages", "2",
                         "--micro-batches", "4")
    self.assertEqual(done.code, 2, done)
    self.assertIn("none.csv", done.stderr)

  def test_refusals(self):
    for arguments, wanted in (
        (("--schedule", "dualpipe-v"), "M must be at least 2K"),
        (("--schedule", "my.csv"),
         r'there is no schedule "my\.csv"; .*, auto, or file:PATH\n$'),
        (("--schedule", "file:a.csv"), "schedule file a.csv"),
        (("--schedule", "1f1b", "--micro-batches", "0"), "micro.batches"),
        (("--schedule", "1f1b", "--stages", "0"), "ranks is 0"),
        (("--schedule", "1f1b", "-o", "xml"), "xml"),
        (("--schedule", "gpipe", "--memory-limit", "1"), "limit of 1"),
        ((), "--schedule"),
    ):
      with self.subTest(arguments):
        given = list(arguments)
        for flag in ("--stages", "--micro-batches"):
          if flag not in given:
            given += [flag, "2"]
        done = self.penstock("simulate", *given)
        self.assertEqual(done.code, 2, done)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, wanted)

  def test_output_that_does_not_arrive(self):
    why = "No space left on device"
    for arguments, wanted in (
        # The parser prints these, and keeps no reason.
        (["--help"], ""), (["run", "--help"], ""), (["--version"], ""),
        (["version"], why),
        (["simulate", "--schedule", "1f1b", "--stages", "2", "--micro-batches",
          "2"], why)):
      with open("/dev/full", "w") as full:
        done = subprocess.run([self.binaries / "penstock", *arguments],
                              stdout=full, stderr=subprocess.PIPE, text=True,
                              env=self.environment(), check=False)
      self.assertEqual(done.returncode, 1, done)
      self.assertIn(f"standard output is not complete: {wanted}", done.stderr)

  def test_flags_out_of_range(self):
    self.write_job()
    shape = ("--stages", "2", "--micro-batches", "2")
    for arguments, wanted in (
        (("simulate", "--schedule", "1f1b", *shape, "--chunks", "0"),
         "--chunks: is 0; a whole number of at least 1"),
        (("simulate", "--schedule", "1f1b", *shape, "--memory-limit", "0"),
         "--memory-limit: is 0; a number above 0 of activations of a whole "
         "stage, or no flag for no limit"),
        (("simulate", "--schedule", "1f1b", *shape, "--memory-limit", "4GiB"),
         "--memory-limit: is 4GiB; a number above 0 of activations"),
        (("simulate", "--schedule", "1f1b", *shape, "--memory-limit", "inf"),
         "--memory-limit: is inf; a number above 0 of activations"),
        (("simulate", "--schedule", "1f1b", *shape, "--memory-limit",
          "1.999999"),
         "--memory-limit 1.999999 has room for 1 activation: 1f1b: rank 0"),
        (("simulate", "--schedule", "1f1b", *shape, "--backward-input", "-1"),
         "--backward-input is -1; a time is a finite number of at least 0"),
        (("verify", "none.csv", *shape, "--slots", "-1"),
         "--slots: is -1; a whole number of at least 0"),
        (("run", "job.yaml", "--stages", "0"),
         "--stages: is 0; a whole number of at least 1"),
        (("run", "job.yaml", "--stages", "1000000000"),
         "penstock: --stages: expected a whole number from 1 to 4096"),
        (("nope",), 'penstock: there is no verb "nope"; there are run, '),
        (("run",), "penstock: job is required"),
        (("run", "job.yaml", "--run-dir", ""),
         "--run-dir: must not be empty")):
      with self.subTest(arguments):
        done = self.penstock(*arguments)
        self.assertEqual(done.code, 2, done)
        self.assertIn(wanted, done.stderr)

  def test_version(self):
    done = self.penstock("version")
    self.assertEqual(done.code, 0, done)
    self.assertRegex(done.stdout, r"^penstock \d+\.\d+\.\d+ .*protocol 1")
    got = json.loads(self.penstock("version", "-o", "json").stdout)
    self.assertEqual(got.keys(), {"penstock", "build", "protocol"})
    for program in ("penstock", "penstock-coordinator", "penstock-stage"):
      done = self.finish(self.start(program, "--version"))
      self.assertEqual(done.code, 0, done)
      self.assertIn(got["penstock"], done.stdout)

  def test_usage(self):
    for arguments in ((), ("bogus",), ("run",), ("run", "a", "b"),
                      ("version", "--bogus")):
      with self.subTest(arguments):
        done = self.penstock(*arguments)
        self.assertEqual(done.code, 2, done)
        self.assertEqual(done.stdout, "")
        self.assertNotEqual(done.stderr, "")
    self.assertEqual(self.penstock("--help").code, 0)
    self.assertEqual(self.penstock("run", "--help").code, 0)


if __name__ == "__main__":
  unittest.main()
