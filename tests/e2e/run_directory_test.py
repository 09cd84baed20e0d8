"""What `penstock run` leaves: every file of the run directory, its keys, and
what goes to which stream."""

import json
import os
import re
import unittest

import penstock_case as pc

JOB = pc.TINY_JOB.replace("data: {train: text.txt}",
                          "data: {train: text.txt, validation: 10%}") + """\
evaluate: {every: 2, batches: 1}
"""

METRICS_KEYS = {
    "step", "time", "epoch", "loss", "tokens", "lr", "grad_norm",
    "step_seconds", "tokens_per_second", "bubble_rate",
    "skipped", "nonfinite"}

SUMMARY_KEYS = {
    "name", "id", "state", "reason", "steps", "tokens", "final_loss",
    "validation_loss", "weights_sha256", "tokens_per_second", "step_seconds",
    "bubble_rate", "realisation", "stages", "recoveries", "fingerprint",
    "versions"}

STAGE_KEYS = {"rank", "chunks", "peak_bytes", "peak_activation_bytes",
              "peak_in_flight", "busy_seconds"}

RFC3339 = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"


class RunDirectoryTest(pc.PenstockCase):

  def test_files(self):
    self.write_job(JOB)
    summary = self.succeed()
    run = self.work / "run"
    self.assertLessEqual(
        {"job.yaml", "summary.json", "metrics.jsonl", "events.jsonl",
         "trace.json", "predicted.json", "profile.json", "report.html",
         "model", "logs"},
        {p.name for p in run.iterdir()})
    self.assertFalse([p for p in run.rglob("*") if "tmp" in p.name])
    self.assertEqual(sorted(p.name for p in (run / "logs").iterdir()),
                     ["coordinator.log", "stage-0.log", "stage-1.log"])
    # The link is of default folders only.
    self.assertFalse((self.work / "runs").exists())
    self.check_summary(summary)
    self.check_metrics(summary)
    self.check_events()
    self.check_trace()
    self.check_predicted(summary)
    self.check_model(summary)
    self.check_report(summary)
    self.assertNothingStays()

  def check_summary(self, summary):
    self.assertLessEqual(SUMMARY_KEYS, summary.keys())
    self.assertEqual(summary["name"], "tiny")
    self.assertRegex(summary["id"], "^tiny-[a-z0-9]{5}$")
    self.assertEqual(summary["state"], "SUCCEEDED")
    self.assertIsNone(summary["reason"])
    self.assertEqual(summary["steps"], 4)
    self.assertEqual(summary["tokens"], 4 * 8 * 16)
    self.assertEqual(summary["recoveries"], [])
    self.assertEqual(summary["step_seconds"].keys(), {"p50", "p90"})
    self.assertEqual(summary["bubble_rate"].keys(), {"predicted", "measured"})
    self.assertRegex(summary["fingerprint"], "^[0-9a-f]{64}$")
    self.assertLessEqual(
        {"penstock", "build", "protocol", "numerics", "devices"},
        summary["versions"].keys())
    self.assertEqual(summary["versions"]["devices"], ["cpu", "cpu"])
    stages = summary["stages"]
    self.assertEqual([stage["rank"] for stage in stages], [0, 1])
    for stage in stages:
      self.assertLessEqual(STAGE_KEYS, stage.keys())
      self.assertGreater(stage["busy_seconds"], 0)
      for bytes_of in ("peak_bytes", "peak_activation_bytes"):
        self.assertEqual(stage[bytes_of]["predicted"],
                         stage[bytes_of]["measured"], (bytes_of, stage))
    chunks = [stage["chunks"] for stage in stages]
    self.assertEqual([c[0]["stage"] for c in chunks], [0, 1])
    self.assertEqual(chunks[0][0]["blocks"][0], 0)
    self.assertEqual(chunks[0][0]["blocks"][1], chunks[1][0]["blocks"][0])
    self.assertEqual(chunks[1][0]["blocks"][1], 4)
    self.assertEqual([(c[0]["embedding"], c[0]["head"]) for c in chunks],
                     [(True, False), (False, True)])
    # 1F1B, two stages, M = 4.
    self.assertEqual([stage["peak_in_flight"] for stage in stages], [2, 1])

  def check_metrics(self, summary):
    metrics = self.json_lines("metrics.jsonl")
    self.assertEqual([line["step"] for line in metrics], [1, 2, 3, 4])
    for line in metrics:
      # Evaluated after the steps divisible by 2.
      evaluated = {"validation_loss"} if line["step"] % 2 == 0 else set()
      self.assertEqual(line.keys(), METRICS_KEYS | evaluated)
      self.assertRegex(line["time"], RFC3339)
      self.assertEqual(line["epoch"], 0)
      self.assertEqual(line["tokens"], 8 * 16)
      self.assertEqual(line["lr"], 1e-3)
      self.assertIs(line["skipped"], False)
      self.assertEqual(line["nonfinite"], [])
      for key in ("loss", "grad_norm", "step_seconds", "tokens_per_second"):
        self.assertGreater(line[key], 0, key)
      self.assertAlmostEqual(line["tokens_per_second"] * line["step_seconds"],
                             line["tokens"], places=6)
      if line["bubble_rate"] is not None:
        self.assertGreaterEqual(line["bubble_rate"], 0)
        self.assertLess(line["bubble_rate"], 1)
    self.assertEqual(summary["final_loss"], metrics[-1]["loss"])
    self.assertEqual(summary["validation_loss"],
                     metrics[-1]["validation_loss"])

  def check_events(self):
    events = self.json_lines("events.jsonl")
    for event in events:
      self.assertRegex(event["time"], RFC3339)
      self.assertIn(event["severity"], ("INFO", "WARNING", "ERROR"))
    self.assertEqual(
        [e["message"] for e in events if e["kind"] == "STATE"],
        ["QUEUED -> PLANNING", "PLANNING -> ASSEMBLING",
         "ASSEMBLING -> RUNNING", "RUNNING -> SUCCEEDED"])

  def check_trace(self):
    trace = json.loads((self.work / "run/trace.json").read_text())
    spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    names = [e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"]
    self.assertEqual(names[:2], ["stage-0", "stage-1"])
    # Some step is there whole: M = 4 forwards and backwards on both stages.
    steps = {e["args"]["step"] for e in spans}
    commands = [{e["name"] for e in spans if e["args"]["step"] == step}
                for step in steps]
    whole = {f"{s}{op}{m}" for s in (0, 1) for op in "FB" for m in range(4)}
    self.assertTrue(any(whole <= found for found in commands), commands)
    self.assertTrue(all(e["dur"] >= 0 for e in spans))

  def check_predicted(self, summary):
    predicted = json.loads((self.work / "run/predicted.json").read_text())
    self.assertEqual(predicted["realisation"], summary["realisation"])
    self.assertAlmostEqual(
        predicted["step_seconds"] / predicted["measured_step_seconds"],
        summary["realisation"], places=5)
    self.assertEqual([r["rank"] for r in predicted["ranks"]], [0, 1])
    for stage, rank in enumerate(predicted["ranks"]):
      self.assertEqual({name for name, _, _ in rank["commands"]},
                       {f"{stage}{op}{m}" for op in "FB" for m in range(4)})
      ends = [0] + [end for _, _, end in rank["commands"]]
      for before, (_, start, end) in zip(ends, rank["commands"]):
        self.assertLessEqual(before, start)
        self.assertLessEqual(start, end)
        self.assertLessEqual(end, predicted["step_seconds"] + 1e-9)

  def check_model(self, summary):
    model = self.work / "run/model"
    self.assertEqual(summary["weights_sha256"], pc.weights_sha256(model))
    index = json.loads((model / "model.safetensors.index.json").read_text())
    tensors = pc.read_model_folder(model)
    self.assertEqual(index["metadata"]["total_size"],
                     sum(4 * len(values) for values in tensors.values()))
    config = json.loads((model / "config.json").read_text())
    self.assertEqual(config["model_type"], "gpt2")
    self.assertEqual((config["n_layer"], config["n_embd"], config["n_head"],
                      config["vocab_size"]), (4, 32, 2, 256))
    self.assertEqual(len(tensors["transformer.wte.weight"]), 256 * 32)

  def check_report(self, summary):
    html = (self.work / "run/report.html").read_text()
    number = int(re.search(r"<h2>Step (\d+), rank by rank</h2>", html)[1])
    predicted, measured = html.split("<h3>Measured</h3>")
    self.assertIn("<h3>Predicted</h3>", predicted)
    for picture in predicted, measured:
      # One row a stage, and in it its 2 M commands of that step.
      rows = re.findall(r'<text x="0" y="[\d.]+" style="[^"]*">rank (\d+)<',
                        picture)
      self.assertEqual(rows, ["0", "1"])
      cells = re.findall(r'<rect class="[FB]\d+" x="[\d.]+" y="([\d.]+)"[^>]*>'
                         r"<title>(\d[FB]\d): ", picture)
      self.assertEqual(
          sorted(name for _, name in cells),
          sorted(f"{s}{op}{m}" for s in (0, 1) for op in "FB"
                 for m in range(4)))
      heights = [{y for y, name in cells if name[0] == stage}
                 for stage in "01"]
      self.assertEqual([len(of_stage) for of_stage in heights], [1, 1], cells)
      self.assertNotEqual(*heights)
    # The bubble that was measured beside the textbook's.
    figures = dict(re.findall(r"<span>([^<]+)</span><b>([^<]+) %</b>", html))
    measured = self.json_lines("metrics.jsonl")[number - 1]["bubble_rate"]
    self.assertAlmostEqual(float(figures["bubble of this step"]),
                           100 * measured, delta=0.051)
    self.assertAlmostEqual(float(figures["median of the job"]),
                           100 * summary["bubble_rate"]["measured"],
                           delta=0.051)
    self.assertEqual(figures["(K−1)/(M+K−1)"], "20.0")

  def test_stage_that_stops_in_order_does_not_warn_of_its_session(self):
    self.write_job(pc.TINY_JOB)
    self.succeed()
    for log in sorted((self.work / "run/logs").glob("stage-*.log")):
      self.assertNotRegex(log.read_text(),
                          "WARNING .*session with the coordinator", log)

  def test_trained_model_is_a_model_to_start_from(self):
    self.write_job(pc.TINY_JOB)
    first = self.succeed(run_dir="first")
    job = pc.TINY_JOB.replace(
        "model: {family: gpt2, layers: 4, width: 32, heads: 2, context: 16}",
        "model: {from: first/model}")
    self.write_job(job)
    second = self.succeed("--stages", "3", "--set", "optimizer.lr=1e-30",
                          run_dir="second")
    # Such a learning rate moves no float: the weights came through.
    self.assertEqual(second["weights_sha256"], first["weights_sha256"])

  def test_resolved_job_runs_again_to_the_same_weights(self):
    self.write_job(JOB)
    first = self.succeed("--stages", "3", "--set", "steps=3")
    second = self.succeed(job="run/job.yaml", run_dir="second")
    self.assertEqual(second["weights_sha256"], first["weights_sha256"])
    self.assertEqual(second["fingerprint"], first["fingerprint"])
    self.assertEqual(len(second["stages"]), 3)
    resolved = [(self.work / folder / "job.yaml").read_text()
                for folder in ("run", "second")]
    self.assertEqual(resolved[0], resolved[1])

  def test_default_directory_and_link(self):
    self.write_job(JOB)
    links = []
    for _ in range(2):
      done = self.penstock("run", "job.yaml")
      self.assertEqual(done.code, 0, done)
      links.append(os.readlink(self.work / "runs/latest"))
      self.assertRegex(links[-1], r"^tiny-\d{8}-\d{6}(-\d+)?$")
      self.assertEqual(self.summary("runs/latest")["state"], "SUCCEEDED")
    self.assertNotEqual(links[0], links[1])
    self.assertEqual(sorted(p.name for p in (self.work / "runs").iterdir()),
                     sorted(["latest", *links]))

  def test_runs_at_once_do_not_meet(self):
    self.write_job(JOB)
    children = [self.start("penstock", "run", "job.yaml") for _ in range(3)]
    for child in children:
      done = self.finish(child)
      self.assertEqual(done.code, 0, done)
    runs = [p for p in (self.work / "runs").iterdir() if p.name != "latest"]
    self.assertEqual(len(runs), 3)
    hashes = {self.summary(run)["weights_sha256"] for run in runs}
    self.assertEqual(len(hashes), 1, hashes)
    self.assertIn((self.work / "runs/latest").resolve(),
                  [run.resolve() for run in runs])

  def test_refused_job_leaves_the_link_where_it_was(self):
    self.write_job(JOB)
    self.assertEqual(self.penstock("run", "job.yaml").code, 0)
    link = os.readlink(self.work / "runs/latest")
    # A --set takes one word, not the job file's name behind it.
    done = self.penstock("run", "--set", "steps=2",
                         "--set", "data.train=none.txt", "job.yaml",
                         "--progress", "none")
    self.assertEqual(done.code, 2, done)
    self.assertIn("none.txt", done.stderr)
    self.assertEqual(os.readlink(self.work / "runs/latest"), link)
    self.assertEqual(sorted(p.name for p in (self.work / "runs").iterdir()),
                     sorted(["latest", link]))

  def test_file_in_the_place_of_the_link_is_kept(self):
    self.write_job(JOB)
    precious = self.work / "runs/latest"
    precious.parent.mkdir()
    precious.write_text("data")
    done = self.penstock("run", "job.yaml")
    self.assertEqual(done.code, 0, done)
    self.assertIn(f"note: {precious} is no link and stays as it is",
                  done.stderr)
    self.assertEqual(precious.read_text(), "data")
    self.assertEqual(len(list((self.work / "runs").glob("tiny-*"))), 1)
    self.assertNothingStays()

  def test_json_output_is_exactly_the_summary(self):
    self.write_job(JOB)
    done = self.run_job("-o", "json")
    self.assertEqual(done.code, 0, done)
    self.assertEqual(done.stdout, (self.work / "run/summary.json").read_text())
    self.assertIn("step 4/4", done.stderr)

  def test_streams(self):
    self.write_job(JOB)
    done = self.run_job()
    self.assertEqual(done.code, 0, done)
    # Data on stdout: the table. Progress on stderr, as lines: no terminal.
    self.assertIn("bubble rate", done.stdout)
    self.assertIn(str(self.work / "run"), done.stdout)
    self.assertNotIn("step 1/4", done.stdout)
    self.assertRegex(done.stderr, r"(?m)^step 1/4  loss \d")
    self.assertNotRegex(done.stdout + done.stderr, "[\x00-\x08\x0b-\x1f\x7f]")

    quiet = self.run_job("--progress", "none", "-o", "json", run_dir="quiet")
    self.assertEqual(quiet.code, 0, quiet)
    self.assertNotIn("step", quiet.stderr)


if __name__ == "__main__":
  unittest.main()
