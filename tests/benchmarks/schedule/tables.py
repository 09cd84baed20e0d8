"""Medians, spread and Markdown."""

import statistics


def median(values):
  return statistics.median(values)


def percentile(values, share):
  """The value below which `share` of the values are; nearest rank."""
  ordered = sorted(values)
  return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered)) - 1))]


def spread(values, scale=1.0, digits=2):
  """Median and [p10, p90]."""
  low, high = percentile(values, 0.1), percentile(values, 0.9)
  return (f"{scale * median(values):.{digits}f} "
          f"[{scale * low:.{digits}f}, {scale * high:.{digits}f}]")


def bar(value, limit, at_least):
  """A figure beside its bar."""
  met = value >= limit if at_least else value <= limit
  return f"{value:.4f} {'≥' if at_least else '≤'} {limit:g} " + (
      "met" if met else "**missed**")


def table(header, rows):
  lines = ["| " + " | ".join(header) + " |",
           "| " + " | ".join("---" for _ in header) + " |"]
  lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
  return "\n".join(lines) + "\n"
