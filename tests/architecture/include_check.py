#!/usr/bin/env python3
"""Checks that every #include follows the arrows of docs/ARCHITECTURE.md.

Usage: include_check.py ROOT. Prints one line a violation and exits 1.
"""
import glob
import os
import re
import sys

from sources import report, sources

# Which rooms a room may include (besides itself and the standard library). A
# row that nothing uses is a violation too: every arrow is one that is there.
# Generated messages are penstock/; google/ and grpc/ are the public ones.
ALLOWED = {
    "common/status": [],
    "common/log": ["common/text"],
    "common/file": ["common/status"],
    "common/sync": ["common/status"],
    "common/ids": ["common/log", "common/text"],
    "common/text": [],
    "common/math": [],
    "common/time": ["google/"],
    "common/digest": ["common/log"],
    "common/process": ["common/log", "common/sync"],
    "common/rpc": ["common/ids", "common/log", "common/status",
                   "common/sync", "common/text", "penstock/", "google/"],
    "coordinator/schedule": ["common/ids", "common/log", "common/status",
                             "common/text"],
    "coordinator/planner": ["common/log", "common/status",
                            "coordinator/schedule"],
    "coordinator/spec": ["common/ids", "common/status", "common/text",
                         "coordinator/schedule"],
    "coordinator/jobs": ["common/status", "penstock/"],
    "coordinator/registry": ["common/ids", "common/log",
                             "common/rpc/address.h", "common/rpc/cause.h",
                             "common/status",
                             "common/text", "common/time", "penstock/"],
    "coordinator/dispatch": ["common/digest", "common/ids", "common/log",
                             "common/math", "common/rpc/address.h",
                             "common/rpc/cause.h",
                             "common/rpc/message_limit.h", "common/status",
                             "common/text", "common/time", "penstock/",
                             "coordinator/jobs", "coordinator/planner",
                             "coordinator/registry", "coordinator/schedule",
                             "coordinator/spec"],
    "coordinator/service": ["common/file", "common/ids", "common/log",
                            "common/rpc", "common/status", "common/sync",
                            "common/text", "common/time",
                            "penstock/", "coordinator/dispatch",
                            "coordinator/jobs", "coordinator/registry",
                            "coordinator/schedule", "coordinator/spec"],
    "coordinator": ["common/file", "common/ids", "common/log",
                    "common/process", "common/rpc", "common/status", "common/sync",
                    "common/time", "penstock/", "coordinator/dispatch",
                    "coordinator/jobs", "coordinator/service"],
    "server/device": ["common/log", "common/math", "common/status",
                      "common/sync", "common/time"],
    "server/model": ["common/digest", "common/log", "common/math",
                     "common/status", "server/device"],
    "server/transport": ["common/digest", "common/file", "common/ids",
                         "common/log", "common/status", "common/sync",
                         "common/time", "server/device"],
    "server/checkpoint": ["common/digest", "common/file", "common/log",
                          "common/status", "common/text", "server/device"],
    "server/data": ["common/digest", "common/file", "common/log",
                    "common/status", "common/sync", "common/text",
                    "server/device"],
    "server/executor": ["common/ids", "common/log", "common/rpc/cause.h",
                        "common/status", "common/sync", "common/time",
                        "penstock/", "server/device", "server/model",
                        "server/transport"],
    "server/service": ["common/file", "common/log", "common/rpc",
                       "common/status", "common/sync", "common/text",
                       "common/time", "penstock/", "server/checkpoint",
                       "server/data", "server/device", "server/executor",
                       "server/model", "server/transport"],
    "server": ["common/file", "common/ids", "common/log", "common/process",
               "common/rpc", "common/status", "common/sync", "common/time",
               "penstock/", "server/device", "server/service",
               "server/transport"],
    "client": ["common/file", "common/ids", "common/log", "common/process",
               "common/rpc", "common/status", "common/sync", "common/text",
               "common/time", "penstock/", "google/", "grpc/"],
}

# Third-party headers that only some rooms may see.
GUARDED = [
    (r"^(grpcpp|grpc)/|\.grpc\.pb\.h$",
     ["common/rpc", "coordinator/service", "server/service",
      "client/coordinator_client", "tests"]),
    # Until there are rooms for it: the default build needs no CUDA.
    (r"^(cuda|cublas|nccl)", ["tests"]),
    (r"^(dnnl|oneapi|hwy/)", ["server/device/cpu", "tests"]),
    # docs/decisions/0006: lines of .jsonl, and nothing else.
    (r"^simdjson", ["server/data", "tests"]),
    # docs/decisions/0001: common/digest wraps libcrypto's SHA-256.
    (r"^(uv\.h|openssl/)", ["server/transport/tcp", "common/digest",
                            "tests"]),
    (r"^yaml-cpp/", ["coordinator/spec", "tests"]),
    (r"^CLI/", ["client", "coordinator/main.cc", "server/main.cc", "tests"]),
    # Whoever needs time is given a Clock; these give it.
    (r"^common/time/real_clock\.h$",
     ["common/time", "coordinator/coordinator.cc", "coordinator/main.cc",
      "server/stage_daemon.cc",
      "client/main.cc", "tests"]),
]

# Nothing but the standard library, abseil and what ALLOWED names.
PURE = ["coordinator/schedule", "coordinator/planner"]
# Functions of plain values: no thread, lock, clock, file or stream.
PLAIN = PURE + ["coordinator/dispatch"]
IMPURE = re.compile(
    r"^(atomic|chrono|condition_variable|csignal|ctime|filesystem|fstream|"
    r"future|iostream|mutex|semaphore|shared_mutex|stop_token|thread|"
    r"absl/synchronization/.*|absl/time/clock\.h|fcntl\.h|unistd\.h|"
    r"sys/.*)$")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
ROOMS = ("common/", "coordinator/", "server/", "client/", "penstock/",
         "google/", "grpc/", "tests/")


def room_of(path):
  """The longest key of ALLOWED that is a prefix of path's folder."""
  folder = os.path.dirname(path)
  while folder:
    if folder in ALLOWED:
      return folder
    folder = os.path.dirname(folder)
  return None


def rows(room):
  """What `room` may include, as beginnings of headers."""
  return tuple(row if row.endswith(("/", ".h")) else row + "/"
               for row in ALLOWED[room])


def unused_arrows(root):
  """Rows of ALLOWED by which nothing is included."""
  included = {room: set() for room in ALLOWED}
  for path, text in sources(root, ("common", "coordinator", "server",
                                   "client")):
    for line in text.split("\n"):
      match = INCLUDE.match(line)
      if match and room_of(path):
        included[room_of(path)].add(match.group(2))
  for room, headers in included.items():
    for row in rows(room):
      if not any(header.startswith(row) for header in headers):
        yield f"include_check.py: {room} includes nothing of {row}"


def empty_rows(root):
  """Rooms and homes of the tables that do not exist."""
  for name in list(ALLOWED) + [h for _, homes in GUARDED for h in homes]:
    if not glob.glob(os.path.join(root, name) + "*"):
      yield f"include_check.py: there is no {name}"


def violations(root):
  for path, text in sources(
      root, ("common", "coordinator", "server", "client", "tests")):
    for number, line in enumerate(text.split("\n"), 1):
      match = INCLUDE.match(line)
      if match:
        where = f"{path}:{number}: includes {match.group(2)}"
        for what in faults(path, match.group(1), match.group(2)):
          yield where + what


def faults(path, bracket, header):
  """What is wrong with this #include in `path`."""
  for pattern, homes in GUARDED:
    if re.search(pattern, header) and not any(
        path.startswith(home) for home in homes):
      yield f", allowed only in {', '.join(homes)}"
  if path.startswith("tests/"):
    return
  room = room_of(path)
  if room in PLAIN and IMPURE.match(header):
    yield f": {room} is a function of plain values"
  if room is None:
    yield f": {path} is in no room of the architecture"
    return
  if room in PURE and bracket == "<" and "/" in header:
    yield f": {room} is pure"
  if header.startswith("tests/"):
    yield ": product code never includes tests"
  elif header.startswith(ROOMS) and (
      room_of(header) != room and not header.startswith(rows(room))):
    yield f": {room} may include only {', '.join(ALLOWED[room]) or 'itself'}"


def main():
  root = sys.argv[1]
  report([*empty_rows(root), *unused_arrows(root), *violations(root)])


if __name__ == "__main__":
  main()
