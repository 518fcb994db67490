#!/usr/bin/env python3
"""capabilities.py [--check] -- the column `tests` of docs/capabilities.md, from the tests.

A row's tests are the folders with tests named test_ID_..., the vector files of the algorithms and
the unit tests of the files that its column `code` names.  --check compares instead of writing, and
fails if a row has no test or no page, a path leads nowhere, or a test has an id without a row.
"""
import collections
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = "docs/capabilities.md"
TEST = re.compile(r"\btest_([A-Z]\d+)_\w")
ROW = re.compile(r"^\| ([A-Z]\d+) \| (.*) \| (.*) \|(.*)\|(.*)\|$")
NOT_YET = "not yet"


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def exists(path):
    return os.path.exists(os.path.join(ROOT, path))


def named_tests():
    """Id -> the folders with tests of that id."""
    found = collections.defaultdict(set)
    for folder, _, files in os.walk(os.path.join(ROOT, "tests")):
        for name in files:
            if name.endswith((".c", ".py")):
                for test in TEST.findall(read(os.path.join(folder, name))):
                    found[test].add(os.path.relpath(folder, ROOT))
    return found


def own_tests(path):
    """The vector file and the unit test that a source has by its name."""
    room, name = os.path.split(path)
    subject = os.path.splitext(name)[0]
    room = re.sub(r"^lib/|^server/(?=serve/)", "", room)
    candidates = ["tests/unit/%s/%s.c" % (room, subject)]
    if room == "algo":
        candidates.append("tests/vectors/%s.vec" % subject)
    return [each for each in candidates if exists(each)]


def fill(row, named, problems):
    """The row with its tests."""
    key, what, code, _, docs = row.groups()
    paths = re.findall(r"`([^`]+)`", code)
    tests = named.get(key, set()) | {test for path in paths for test in own_tests(path)}
    complaints = ["no such file: " + path for path in paths if not exists(path)]
    if NOT_YET in code and key in named:
        complaints.append("has tests, so it is built: say where")
    if NOT_YET not in code and not (paths and tests):
        complaints.append("no test has its id")
    if NOT_YET not in code and not docs.strip():
        complaints.append("no page is named for it")
    problems += ["%s: %s" % (key, complaint) for complaint in complaints]
    folders = {test for test in tests if "." not in os.path.basename(test)}
    shown = sorted(folders | {test for test in tests if os.path.dirname(test) not in folders})
    cell = ", ".join(test[len("tests/"):] for test in shown)
    return "| %s | %s | %s | %s | %s |" % (key, what, code, cell, docs.strip())


def main():
    check = sys.argv[1:] == ["--check"]
    named, problems, lines, keys = named_tests(), [], [], set()
    old = read(PAGE)
    for line in old.split("\n"):
        row = ROW.match(line)
        if row:
            keys.add(row.group(1))
            line = fill(row, named, problems)
        lines.append(line)
    problems += ["%s: tests have this id, the page does not" % key for key in named.keys() - keys]
    new = "\n".join(lines)
    if check and new != old:
        problems.append("%s is out of date: run scripts/capabilities.py" % PAGE)
    if not check:
        with open(os.path.join(ROOT, PAGE), "w", encoding="utf-8") as file:
            file.write(new)
    for problem in sorted(problems):
        print("capabilities: " + problem)
    print("%d rows, %d problems" % (len(keys), len(problems)))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
