"""What the documentation names is there: links, paths, flags, tests, presets.

Usage: docs_check.py ROOT. It reads README.md, CONTRIBUTING.md and docs/. Paths
may be short (`dispatch/core.h`) and without their ending; they may have braces.
"""
import itertools
import json
import os
import re
import sys

from sources import report

# Words that look like a path of ours and are none.
NO_PATHS = {
    "bits/move.h": "the C++ library's",
    "bits/std_function.h": "the C++ library's",
    "common/util": "an alternative not taken",
    "corpus.txt": "a user's",
    "tokens/s": "a unit",
    "coordinator/schedule/NAME.{h,cc}": "for the reader to fill in",
    "docs/decisions/NNNN-title.md": "for the reader to fill in",
}
# Paragraphs that begin so name what does not exist.
NOT_BUILT = "**Not built yet.**"
ENDINGS = (".h", ".cc", ".py", ".md", ".proto", ".cmake", ".txt", ".yaml")
SPAN = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
# `FILE.cc` (`Suite`): the file has tests of that suite.
SUITE = re.compile(r"`([\w./]+\.cc)` \(`(\w+)`\)")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
# Of the machine or of a run, not of the tree.
ELSEWHERE = ("build/", "runs/", "logs/", "/", "~", "http", "-")


class Tree:
  """What there is below `root`."""

  def __init__(self, root):
    self.root = root
    self.paths, self.tests, self.flags = set(), set(), set()
    self.targets, self.cases, self.suites = set(), set(), set()
    for folder, folders, files in os.walk(root):
      folders[:] = [f for f in folders
                    if f not in (".git", "build", "runs", "__pycache__")]
      for name in folders + files:
        self.paths.add(os.path.relpath(os.path.join(folder, name), root))
      for name in files:
        if name.endswith((".h", ".cc", ".py", ".json", ".cmake", "dev")) or (
            name == "CMakeLists.txt"):
          self.read(os.path.join(folder, name))
    # Every tail of a path, with its ending and without.
    self.tails = set()
    for path in self.paths:
      parts = path.split("/")
      for start in range(len(parts)):
        tail = "/".join(parts[start:])
        self.tails.update((tail, os.path.splitext(tail)[0]))
    self.presets = set()
    presets = os.path.join(root, "CMakePresets.json")
    if os.path.exists(presets):
      with open(presets, encoding="utf-8") as file:
        for each in json.load(file).values():
          if isinstance(each, list):
            self.presets.update(preset["name"] for preset in each)

  def read(self, path):
    with open(path, encoding="utf-8", errors="replace") as file:
      text = file.read()
    self.flags.update(FLAG.findall(text))
    if path.endswith(("CMakeLists.txt", ".cmake")):
      self.targets.update(re.findall(
          r"(?:penstock_\w+|add_\w+)\(\s*(?:NAME\s+)?(\w+)", text))
      self.targets.update(re.findall(r"foreach\(\w+ ([^)]*)\)", text))
      self.targets.update(  # tests_LABEL
          "tests_" + label for labels in re.findall(r"LABELS ([\w\" ]+)", text)
          for label in labels.replace('"', "").split())
    elif path.endswith(".cc"):
      for suite, name in re.findall(
          r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", text):
        self.cases.add(f"{suite}.{name}")
        self.suites.add((os.path.relpath(path, self.root), suite))
    elif os.path.basename(path) == "dev":
      for line in re.findall(r"^  ([a-z |]+)\)", text, re.MULTILINE):
        self.tests.update("./dev " + verb.strip() for verb in line.split("|"))


def expand(word):
  """a{b,c}d -> abd, acd."""
  parts = [part.split(",") if i % 2 else [part]
           for i, part in enumerate(re.split(r"[{}]", word))]
  return ["".join(each) for each in itertools.product(*parts)]


def looks_like_a_path(word, tree):
  if word.startswith(ELSEWHERE) or word in NO_PATHS or "*" in word or (
      not re.fullmatch(r"[\w.{},+-]+(/[\w.{},+-]+)*/?", word)):
    return False
  if word.endswith(ENDINGS) or re.search(r"\.\{[a-z,]+\}$", word):
    return not word.startswith(".") and len(word) > 5
  return "/" in word.rstrip("/") and word.split("/")[0] in tree.tails


def anchors(path):
  with open(path, encoding="utf-8") as file:
    for heading in re.findall(r"^#+ (.*)$", file.read(), re.MULTILINE):
      yield re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def bad_links(tree, page, line):
  for target in LINK.findall(line):
    if "://" in target:
      continue
    path, _, anchor = target.partition("#")
    full = os.path.normpath(os.path.join(tree.root, os.path.dirname(page),
                                         path)) if path else os.path.join(
                                             tree.root, page)
    if not os.path.exists(full):
      yield f"no such file: {target}"
    elif anchor and anchor not in anchors(full):
      yield f"no such heading: {target}"


def bad_suites(tree, line):
  for file, suite in SUITE.findall(line):
    if not any(suite == has and path.endswith(file)
               for path, has in tree.suites):
      yield f"no such suite: {suite} in {file}"


def bad_words(tree, code):
  """`code`: what stands in a span, or a line of a block."""
  for word in code.split():
    word = word.strip(",;:()\"'")
    if looks_like_a_path(word, tree) and not all(
        each.rstrip("/") in tree.tails for each in expand(word)):
      yield f"no such path: {word}"
    if re.fullmatch(r"\w+Test\.\w+", word) and word not in tree.cases:
      yield f"no such test: {word}"
  for flag in FLAG.findall(code):
    if flag not in tree.flags:
      yield f"no such flag: {flag}"
  for preset in re.findall(r"--preset (\w+)", code):
    if preset not in tree.presets:
      yield f"no such preset: {preset}"
  for name in re.findall(r"(?:--target|ctest .*-R) (\w+)", code):
    if name != "NAME" and not any(
        name in target for target in tree.targets):
      yield f"no such target: {name}"
  for verb in re.findall(r"\./dev [a-z]+", code):
    if verb not in tree.tests:
      yield f"no such command: {verb}"


def violations(root):
  tree = Tree(root)
  pages = [page for page in sorted(tree.paths) if page.endswith(".md") and
           (page.startswith("docs/") or "/" not in page)]
  for page in pages:
    with open(os.path.join(root, page), encoding="utf-8") as file:
      lines = file.read().split("\n")
    block = skipped = False
    for number, line in enumerate(lines, 1):
      if line.startswith("```"):
        block = not block
        continue
      skipped = (skipped or line.startswith(NOT_BUILT)) and line.strip() != ""
      if skipped:
        continue
      # In blocks the part after a comment sign is prose.
      codes = [line.split(" # ")[0]] if block else SPAN.findall(line)
      found = [what for code in codes for what in bad_words(tree, code)]
      if not block:
        found += [*bad_links(tree, page, line), *bad_suites(tree, line)]
      for what in found:
        yield f"{page}:{number}: {what}"


if __name__ == "__main__":
  report(violations(sys.argv[1]))
