#!/usr/bin/env python3
"""Checks that every target declares what its own files include.

DEPS are public, so that the compiler and the link tests accept a header that
comes in by way of another library. Here each file is in one target, and what
a target's files include of ours is in that target or in one of its DEPS; and
each of ours in DEPS is included.

Usage: target_check.py ROOT. Prints one line a violation and exits 1.
"""
import collections
import os
import re
import sys

from sources import report, sources

TOPS = ("common", "coordinator", "server", "client")
# What cmake/ itself compiles.
ELSEWHERE = ("common/sync/tsan_absl_locks.cc",)
TARGET = re.compile(r"penstock_(?:library|binary)\(\s*([\w-]+)\s([^)]*)\)")
LISTS = ("HDRS", "SRCS", "DEPS")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)


def targets(root):
  """Of each CMakeLists.txt: (name, {list: words}), files as paths."""
  for top in TOPS:
    for folder, _, files in os.walk(os.path.join(root, top)):
      if "CMakeLists.txt" not in files:
        continue
      with open(os.path.join(folder, "CMakeLists.txt"),
                encoding="utf-8") as file:
        text = re.sub(r"#.*", "", file.read())
      below = os.path.relpath(folder, root)
      for name, words in TARGET.findall(text):
        lists, current = collections.defaultdict(list), None
        for word in words.split():
          if word in LISTS:
            current = word
          elif not word.startswith("${"):  # generated
            lists[current].append(
                word if current == "DEPS" else f"{below}/{word}")
        yield name, lists


def owners_of(header, owners):
  """The targets that give `header`, of which one must be declared."""
  if header.endswith(".grpc.pb.h"):
    return ["penstock_proto_services"]
  if header.startswith(("penstock/", "google/rpc/")):
    return ["penstock_proto_messages", "penstock_proto_services"]
  return owners.get(header, [])


def violations(root):
  texts = dict(sources(root, TOPS))
  all_targets = list(targets(root))
  owners = collections.defaultdict(list)
  for name, lists in all_targets:
    for path in lists["HDRS"] + lists["SRCS"]:
      owners[path].append(name)
  for path in texts:
    if len(owners[path]) != 1 and path not in ELSEWHERE:
      yield f"{path}: in one target, not in {owners[path] or 'none'}"
  for name, lists in all_targets:
    included = set()
    for path in lists["HDRS"] + lists["SRCS"]:
      for header in INCLUDE.findall(texts.get(path, "")):
        givers = owners_of(header, owners)
        included.update(givers)
        if givers and not {name, *lists["DEPS"]}.intersection(givers):
          yield (f"{path}: includes {header}, but {name} does not declare "
                 f"{' or '.join(givers)}")
    for dep in lists["DEPS"]:
      if dep.startswith("penstock_") and dep not in included:
        yield f"{name}: declares {dep}, of which it includes nothing"


if __name__ == "__main__":
  report(violations(sys.argv[1]))
