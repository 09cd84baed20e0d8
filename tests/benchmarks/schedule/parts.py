"""What schedules.py measures, a function a part. Each returns Markdown."""

import datetime
import os
import signal
import time

from cluster import Cluster, Failed, Run, Shape, ms
from tables import bar, median, spread, table

# As docs/benchmarks.md names them, in the order of docs/schedules.md.
SCHEDULES = ("1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v", "v-half", "auto")
WARM_UP = 1  # Steps of each run that count for nothing.

REALISED = {0.020: 0.985, 0.005: 0.97}
REALISED_TO_BARE = 0.99
SPAN_ABOVE_BARE = 0.01
TAX = {0.005: 1.005, 0.001: 1.01}
STOPPED = 1.01
RESUMED = 0.005  # Seconds.
EXPOSED = 0.02


def warm(values):
  return values[WARM_UP:] or values


def span_bubbles(run):
  """Of a run's traced steps: the largest idle share of a rank between its first
  op and its last, as `span_bubble_rate` of `penstock simulate`."""
  result = []
  for step, ops in sorted(run.traced().items()):
    if step <= WARM_UP:
      continue
    ranks = {}
    for rank, start, end, _ in ops:
      first, last, busy = ranks.get(rank, (start, end, 0.0))
      ranks[rank] = min(first, start), max(last, end), busy + end - start
    idle, share = max((last - first - busy, (last - first - busy) /
                       (last - first)) for first, last, busy in ranks.values())
    result.append(share)
  return result


def barriers(run):
  """Seconds from the end of a step's last op, of all ranks, to the start of the
  next one's first, where both are traced: reports, releases and updates."""
  traced = run.traced()
  return [min(start for _, start, _, _ in traced[step + 1]) -
          max(end for _, _, end, _ in traced[step])
          for step in sorted(traced) if step > WARM_UP and step + 1 in traced]


def realisation(programs, settings, say):
  rows, spans, skipped = [], [], []
  with Cluster(programs, settings.ranks) as cluster:
    for op in settings.realised_ops:
      for micro_batches in settings.micro_batches:
        for schedule in settings.schedules:
          shape = Shape(schedule, settings.ranks, micro_batches, op)
          say(f"realisation: {shape}")
          real, bare, span, bare_span, ratios, gaps = [], [], [], [], [], []
          try:
            for _ in range(settings.rounds):
              run = cluster.run(shape, settings.steps)
              programs.keep_order(shape, run.order())
              alone = programs.run_bare(shape, settings.steps)
              simulated = alone["simulated"]
              steps = warm(alone["steps"])
              here = warm(run.seconds)
              there = [step["seconds"] for step in steps]
              real += here
              bare += there
              ratios.append(median(there) / median(here))
              span += span_bubbles(run)
              gaps += barriers(run)
              bare_span += [step["span_bubble_rate"] for step in steps]
          except Failed as failure:
            skipped.append(programs.not_measured(shape, failure))
            continue
          makespan = simulated["makespan"]
          rows.append([
              schedule, micro_batches, ms(op), f"{makespan * 1e3:.1f}",
              spread(real, 1e3, 1), spread(bare, 1e3, 1),
              bar(makespan / median(real), REALISED[op], True)
              if op in REALISED else f"{makespan / median(real):.4f}",
              f"{makespan / median(bare):.4f}",
              bar(median(ratios), REALISED_TO_BARE, True),
              f"[{min(ratios):.4f}, {max(ratios):.4f}]"])
          spans.append([
              schedule, micro_batches, ms(op),
              f"{100 * simulated['span_bubble_rate']:.2f} %",
              spread(span, 100), spread(bare_span, 100),
              bar(median(span) - median(bare_span), SPAN_ABOVE_BARE, False)
              if schedule == "zb-h2" else
              f"{median(span) - median(bare_span):.4f}",
              spread(gaps, 1e3)])
  return (
      "## Realisation\n\nSteps in ms: median [p10, p90]. Runs of the daemons "
      "and of the bare program take turns; the ratio is the median over turns, "
      "beside its least and largest.\n\n" +
      table(["schedule", "M", "op", "simulated", "step", "bare step",
             "simulated / step", "simulated / bare", "bare / step", "turns"],
            rows) +
      "\nSpan bubbles in %, and the barrier in ms: from the last op of a step "
      "to the first of the next.\n\n" +
      table(["schedule", "M", "op", "simulated", "span bubble", "bare",
             "difference", "barrier"], spans) +
      "".join(skipped))


def barrier(programs, settings, say):
  rows, skipped = [], []
  op, micro_batches = settings.barrier_op, settings.micro_batches[0]
  for schedule in settings.schedules:
    shape = Shape(schedule, settings.ranks, micro_batches, op)
    say(f"barrier: {shape}")
    taken, alone = [], []
    try:
      for _ in range(settings.rounds):
        done = programs.run_bare(shape, settings.steps)
        taken += [step["seconds"] for step in warm(done["steps"])]
        free = programs.run_bare(shape, settings.steps, barrier=False)
        alone += [step["seconds"] for step in warm(free["steps"])]
    except Failed as failure:
      skipped.append(programs.not_measured(shape, failure))
      continue
    simulated = done["simulated"]
    cost = simulated["makespan"] - simulated["longest_span"]
    rows.append([schedule, micro_batches, ms(op),
                 f"{1e3 * simulated['makespan']:.1f}",
                 f"{1e3 * simulated['longest_span']:.1f}",
                 f"{100 * cost / simulated['longest_span']:.1f} %",
                 spread(taken, 1e3, 1), spread(alone, 1e3, 1),
                 f"{100 * (median(taken) / median(alone) - 1):.1f} %"])
  return ("## What the barrier costs\n\nSimulated: a step with it (makespan) "
          "against the longest time of a rank from its first op to its last, "
          "which is the step where ranks go on without waiting. Measured: the "
          "bare program with and without.\n\n" +
          table(["schedule", "M", "op", "makespan", "span", "cost",
                 "with barrier", "without", "cost"], rows) +
          "".join(skipped))


def tax(programs, settings, say):
  rows = []
  for ranks in settings.tax_ranks:
    # More steps than a job of ours has: all commands go out at its start.
    with (Cluster(programs, ranks) as sent,
          Cluster(programs, ranks, window=1000) as held):
      for op in settings.tax_ops:
        shape = Shape("1f1b", ranks, settings.micro_batches[-1], op)
        say(f"coordinator tax: {shape}")
        ratios, gaps = [], {sent: [], held: []}
        seconds = {sent: [], held: []}
        for turn in range(settings.tax_rounds):
          middle = {}
          for cluster in (sent, held) if turn % 2 == 0 else (held, sent):
            run = cluster.run(shape, settings.tax_steps)
            seconds[cluster] += warm(run.seconds)
            middle[cluster] = median(warm(run.seconds))
            gaps[cluster] += barriers(run)
          ratios.append(middle[sent] / middle[held])
        overall = median(seconds[sent]) / median(seconds[held])
        rows.append([
            ranks, shape.micro_batches, ms(op), spread(seconds[sent], 1e3),
            spread(seconds[held], 1e3),
            bar(overall, TAX[op], False) if op in TAX else f"{overall:.4f}",
            spread(ratios, 1, 4), spread(gaps[sent], 1e3),
            spread(gaps[held], 1e3)])
  return ("## Coordinator tax\n\n1F1B with commands that the coordinator sends "
          "as steps go (`--window 2`), and with all of them in the stages "
          "before the first (`--window 1000`), in turns. Steps and barriers in "
          "ms; the barrier is in both.\n\n" +
          table(["K", "M", "op", "step, sent", "step, preloaded",
                 "sent / preloaded", "by turn", "barrier, sent",
                 "barrier, preloaded"], rows))


def await_line(metrics, count):
  """Returns when metrics.jsonl has `count` lines."""
  deadline = time.monotonic() + 60
  while not (metrics.exists() and
             metrics.read_bytes().count(b"\n") >= count):
    if time.monotonic() > deadline:
      raise Failed(f"{metrics} has not {count} lines")
    time.sleep(0.001)


def stopped_run(cluster, shape, from_step, share, stops):
  """A job whose coordinator is stopped for `share` of a step, every third step,
  from `from_step` of a step after a commit on. Returns the run, and when it was
  resumed, by the step that was under way."""
  settle = 3
  waits, folder = cluster.submit(shape, settle + 1 + 3 * stops)
  metrics = folder / "metrics.jsonl"
  resumed = {}
  try:
    await_line(metrics, settle)
    step = (shape.micro_batches + shape.ranks - 1) * 3 * shape.op
    for i in range(stops):
      commit = settle + 1 + 3 * i
      await_line(metrics, commit)
      time.sleep(from_step * step)
      cluster.coordinator.send_signal(signal.SIGSTOP)
      time.sleep(share * step)
      cluster.coordinator.send_signal(signal.SIGCONT)
      resumed[commit + 1] = time.time()
  finally:
    cluster.coordinator.send_signal(signal.SIGCONT)
    _, stderr = waits.communicate(timeout=300)
  if waits.returncode != 0:
    raise Failed(stderr.strip())
  return Run(folder), resumed


def wall(line):
  return datetime.datetime.fromisoformat(
      line["time"].replace("Z", "+00:00")).timestamp()


def stopped(programs, settings, say):
  op = settings.tax_ops[0]
  shape = Shape("1f1b", settings.ranks, settings.micro_batches[-1], op)
  with Cluster(programs, settings.ranks) as cluster:
    say(f"stopped coordinator: {shape}, after a release")
    run, during = stopped_run(cluster, shape, 0.0, 0.8, settings.stops)
    undisturbed = [s for i, s in enumerate(run.seconds, 1)
                   if i > 2 and i not in during]
    slower = [run.seconds[step - 1] / median(undisturbed) for step in during]
    say(f"stopped coordinator: {shape}, across a barrier")
    run, across = stopped_run(cluster, shape, 0.6, 0.8, settings.stops)
    # From SIGCONT to the commit of the step that waited for it.
    late = [wall(run.lines[step - 1]) - at for step, at in across.items()]
  return (
      "## A coordinator that is stopped\n\nSIGSTOP for 0.8 of a step, "
      f"{settings.stops} times each (1F1B, K = {shape.ranks}, M = "
      f"{shape.micro_batches}, {ms(op)}). Right after a commit, and so a "
      "release: the step against the others. From 0.6 of a step on: what "
      "passed from SIGCONT until that step, whose reports had come meanwhile, "
      "was committed.\n\n" +
      table(["stopped", "figure", "median [p10, p90]", "bar"],
            [["after a release", "step / undisturbed step", spread(slower, 1, 4),
              bar(median(slower), STOPPED, False)],
             ["across a barrier", "ms from SIGCONT to commit",
              spread(late, 1e3), bar(median(late), RESUMED, False) + " s"]]))


def transfer(programs, settings, say):
  rows, skipped = [], []
  op, micro_batches = settings.transfer_op, settings.micro_batches[-1]
  with Cluster(programs, settings.ranks) as cluster:
    for schedule in ("1f1b", "zb-h1"):
      without = Shape(schedule, settings.ranks, micro_batches, op)
      with_it = Shape(schedule, settings.ranks, micro_batches, op, 0.1 * op)
      say(f"exposed transfer: {without}")
      seconds, bare = {without: [], with_it: []}, {without: [], with_it: []}
      simulated = {}
      try:
        for _ in range(settings.rounds):
          for shape in (without, with_it):
            run = cluster.run(shape, settings.steps)
            seconds[shape] += warm(run.seconds)
            programs.keep_order(shape, run.order())
            done = programs.run_bare(shape, settings.steps)
            simulated[shape] = done["simulated"]["makespan"]
            bare[shape] += [s["seconds"] for s in warm(done["steps"])]
      except Failed as failure:
        skipped.append(programs.not_measured(without, failure))
        continue
      bound = simulated[with_it] - simulated[without]
      grown = median(seconds[with_it]) - median(seconds[without])
      alone = median(bare[with_it]) - median(bare[without])
      # An activation and a gradient of each micro-batch come over edges.
      transfers = 2 * micro_batches * with_it.transfer
      rows.append([
          schedule, micro_batches, ms(op), ms(with_it.transfer),
          spread(seconds[without], 1e3), spread(seconds[with_it], 1e3),
          f"{1e3 * bound:.2f}", f"{1e3 * grown:.2f}", f"{1e3 * alone:.2f}",
          bar((grown - bound) / transfers, EXPOSED, False)])
  return ("## Exposed transfer\n\nA modelled transfer of 10 % of F. Steps and "
          "growths in ms; the bar is on what the step grows beyond the "
          "simulated growth, as a share of the transfers that the busiest "
          "stage waits for (2 M of them).\n\n" +
          table(["schedule", "M", "op", "transfer", "step without",
                 "step with", "simulated growth", "growth", "bare growth",
                 "beyond / transfers"], rows) +
          "".join(skipped))


PARTS = {"realisation": realisation, "barrier": barrier, "tax": tax,
         "stopped": stopped, "transfer": transfer}
