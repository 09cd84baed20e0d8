"""What the checks of this folder share: the files they look at, the report."""
import os
import sys

ENDINGS = (".h", ".cc", ".cu", ".cuh")


def sources(root, tops):
  """(path below root, its text) of each C++ file below the folders `tops`."""
  for top in tops:
    for folder, _, files in os.walk(os.path.join(root, top)):
      for name in sorted(files):
        if name.endswith(ENDINGS):
          full = os.path.join(folder, name)
          with open(full, encoding="utf-8") as source:
            yield os.path.relpath(full, root), source.read()


def report(found):
  """Prints one line a violation and exits: 1 where there are any."""
  lines = list(found)
  for line in lines:
    print(line)
  print(f"{len(lines)} violations")
  sys.exit(1 if lines else 0)
