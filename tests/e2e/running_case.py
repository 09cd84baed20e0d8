"""Jobs that run without end, for tests that stop them, kill a part of them, or
take something away."""

import os
import pathlib
import signal
import time

import penstock_case as pc

LIMIT = 5.0  # Seconds from the event until all is over.

ENDLESS_JOB = pc.TINY_JOB.replace("steps: 4", "steps: 1000000").replace(
    "stages: 2", "stages: 3")


class RunningCase(pc.PenstockCase):

  def start_running(self, run_dir="run", *arguments):
    """A job of three stages that has committed some steps."""
    self.write_job(ENDLESS_JOB)
    child = self.start("penstock", "run", "job.yaml", "--run-dir", run_dir,
                       *arguments)
    metrics = self.work / run_dir / "metrics.jsonl"
    pc.wait_until(lambda: child.poll() is not None or (
        metrics.exists() and metrics.read_bytes().count(b"\n") >= 3),
        "three steps are committed")
    self.assertIsNone(child.poll(), "the run has ended by itself")
    return child

  def pid_of(self, words):
    """The one process of ours whose command line has all of `words`."""
    found = [pid for pid, command in pc.processes_of(self.folder).items()
             if all(word in command for word in words.split())]
    self.assertEqual(len(found), 1, (words, pc.processes_of(self.folder)))
    return found[0]

  def end_within_limit(self, child, since):
    done = self.finish(child)
    self.assertLess(time.monotonic() - since, LIMIT, done)
    self.assertNothingStays(LIMIT - (time.monotonic() - since))
    return done

  def assertIsSummary(self, stdout, run_dir):
    """What -o json prints: summary.json to the byte."""
    self.assertEqual(stdout, (self.work / run_dir / "summary.json").read_text())

  def halt(self, pid):
    """SIGSTOP; returns when every thread has stopped."""
    os.kill(pid, signal.SIGSTOP)
    tasks = pathlib.Path(f"/proc/{pid}/task")
    pc.wait_until(
        lambda: all((task / "stat").read_text().rpartition(")")[2].split()[0]
                    == "T" for task in tasks.iterdir()),
        f"process {pid} has stopped")

  def kill(self, pid, signal_number=signal.SIGKILL):
    since = time.monotonic()
    os.kill(pid, signal_number)
    return since

  def assertNoHalfModel(self, run_dir):
    self.assertEqual([path.name for path in (self.work / run_dir).iterdir()
                      if "model" in path.name], [])

  def start_writing(self, run_dir):
    """A job of two stages whose first has written its shard, and whose second
    hangs in the opening of its own."""
    self.write_job(pc.TINY_JOB.replace("steps: 4", "steps: 200"))
    child = self.start("penstock", "run", "job.yaml", "--run-dir", run_dir)
    folder = self.work / run_dir
    (made,) = pc.wait_until(lambda: list(folder.glob(".model-tmp-*")),
                            "the model's folder is made")
    epoch = made.name.rpartition("-")[2]
    os.mkfifo(made / f"model-00002-of-00002.safetensors.tmp-{epoch}")
    pc.wait_until((made / "model-00001-of-00002.safetensors").exists,
                  "the first shard is written")
    self.assertFalse((folder / "model").exists())
    return child
