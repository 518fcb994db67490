#!/usr/bin/env python3
"""schema.py WEIR SOURCE_ROOT [MUTANTS [SEED]] -- the schema and the reader agree on what a rule
file looks like.

Every file of tests/rules/good is right for both; they agree about each case in
tests/rules/wrong.txt.  Then good files are changed at random
(a key renamed, dropped or added, a value of another type) and both are asked:

    what the schema refuses, the reader refuses
    what the schema accepts, the reader accepts, or refuses for a reason that no schema can know
    (SENSE)
"""
import copy
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print("schema.py: %s; install python3-jsonschema and python3-yaml" % missing)
    sys.exit(77)  # skipped, to meson

# What only the reader can know: other parts of the file, the short syntax of limits and times,
# addresses, paths, time zones.
SENSE = re.compile(
    r"there is no list|unknown priority or class|has no entries of|two rules are named|"
    r"is here twice|one attribute too many|^limit: |^refusals: |^key: |^for: |^longest: |^forget: |"
    r"must be (more than 0|at least as long as for)|is not an IP address|is not a prefix|"
    r"bits set after its prefix|time zone|a path begins with /|no path looks like this|"
    r"no (host|method) looks like this|(uri|host) is the (path|name) alone|no host begins|"
    r"a key without an attribute|"
    r"can ever pass at once|"
    r"no rule names the list|cannot read the file|the most is|two guards are named|"
    r"a rule and a guard are named|"
    r"^(wait|within|slow|window|open_for|open_max|lease|target|mean_time|p\d\d|user|priority|class|"
    r"adaptive|breaker): |"
    r"must be from \d+[a-z%]* to|total must be at least max|version \'1.0\' is not known|"
    r"there is a NUL byte|keys must be a whole number|status must be at least 200|"
    r"an answer with status \d+ has no body|must be at least as long as open_for|"
    r"needs (weights|the classes there are|a breaker or system|a time to keep to)|only one of p50|"
    r"is for the controller percentile|the controller percentile has no target|lease must be 10ms|"
    r"the window never holds that many calls|a user without an attribute|"
    r"must be one attribute in braces|unknown (priority|class) |'type' is the type of a body|"
    r"type must be a media type|means nothing without across|across the fleet( has at most|:)"
)
OTHERS = [None, True, 7, -3, 2.5, "", "text", "a b", "{ip}", "*", [], ["text"], [7, 7], [[]], {},
          {"text": 1}, {"list": "vips"}, {"exact": "x"}, {"file": "bad.txt"}, "50%", "200ms",
          "weir", "-3"]
NAMES = ["version", "mode", "rules", "lists", "name", "limit", "match", "not", "key", "ban", "for",
         "refusals", "zone", "keys", "cost", "uri", "ip", "x.ip", "a b", "", "nonsense", "guards",
         "across", "list", "exact", "glob", "prefix", "file", "about", "algorithm", "longest",
         "escalate", "forget", "paths", "concurrency", "max", "total", "queue", "wait", "order",
         "weights", "adaptive", "controller", "p99", "rate", "breaker", "errors", "slow", "ratio",
         "window", "calls", "shed", "system", "cpu", "user", "priority", "priorities", "class",
         "degrade", "raises", "lease", "fallback", "status", "body", "body_file", "type"]


class Loader(yaml.SafeLoader):
    """YAML 1.2's core schema, as editors and Weir have it: `off` is text."""


Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("merge", r"<<", ["<"]),
):
    whole = re.compile("^(?:%s)$" % pattern)
    Loader.add_implicit_resolver("tag:yaml.org,2002:" + tag, whole, first)


class Report:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, good, what):
        self.passed += bool(good)
        self.failed += not good
        if not good and self.failed <= 20:
            print("schema.py: " + what)


def load(path):
    with open(path, encoding="utf-8") as f:
        return yaml.load(f, Loader)


LISTS = "version: 1\nlists: { vips: { account: [a] } }\n"
AROUND = {"file": "%s", "top": "version: 1\n%s\n",
          "rule": LISTS + "rules:\n  - name: r\n    limit: 1/s\n    %s\n",
          "guard": LISTS + "guards:\n  - name: g\n    degrade: 1\n    %s\n"}


def wrong_documents(path):
    """The cases of wrong.txt that are YAML."""
    documents = []
    with open(path, encoding="utf-8") as f:
        cases = [line.split(" | ") for line in f if " | " in line and line[0] != "#"]
    for place, text, _ in cases:
        try:
            text = text.encode().decode("unicode_escape").encode("latin-1").decode()
            document = yaml.load(AROUND[place.split()[0]].replace("%s", text), Loader)
            documents.append(json.loads(json.dumps(document)))
        except (yaml.YAMLError, UnicodeError, TypeError, ValueError):
            continue
    return documents


def places(value, path=()):
    """The paths of all that is in it, itself first."""
    yield path
    below = dict(enumerate(value)) if isinstance(value, list) else value
    for key, child in below.items() if isinstance(below, dict) else ():
        yield from places(child, path + (key,))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def rename(mapping, old, new):
    """In its place: the order of keys says nothing, but people read the file when this fails."""
    items = [(new if k == old else k, v) for k, v in mapping.items() if k == old or k != new]
    mapping.clear()
    mapping.update(items)


def mutate(random_, document):
    document = copy.deepcopy(document)
    path = random_.choice([p for p in places(document) if p])
    parent, key = at(document, path[:-1]), path[-1]
    kind = random_.randrange(5)
    if kind == 0 and isinstance(parent, dict):
        rename(parent, key, random_.choice(NAMES + [str(key) + "x", str(key)[1:]]))
    elif kind == 1:
        del parent[key]
    elif kind == 2 and isinstance(parent[key], dict):
        parent[key][random_.choice(NAMES)] = copy.deepcopy(random_.choice(OTHERS))
    elif kind == 3 and isinstance(parent[key], list):
        parent[key].append(copy.deepcopy(random_.choice(OTHERS)))
    else:
        parent[key] = copy.deepcopy(random_.choice(OTHERS))
    return document


def ask_reader(weir, folder, documents):
    """For each document what the reader finds wrong; JSON is YAML."""
    names = []
    for i, document in enumerate(documents):
        names.append("%d.yaml" % i)
        with open(os.path.join(folder, names[-1]), "w", encoding="utf-8") as f:
            json.dump(document, f)
    out = subprocess.run([weir, "rules", "check", "--json"] + names, cwd=folder,
                         stdout=subprocess.PIPE)
    answers = json.loads(out.stdout)
    assert [a["file"] for a in answers] == names, out
    return [(a["ok"], [p["text"] for p in a["problems"]]) for a in answers]


def compare(report, validator, document, answer):
    good, problems = answer
    accepted = validator.is_valid(document)
    excused = accepted and not good and all(SENSE.search(p) for p in problems)
    report.check(accepted == good or excused, "the schema %s, the reader says %s: %s" % (
        "accepts" if accepted else "refuses", problems or "nothing", json.dumps(document)))
    return accepted, good


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: schema.py WEIR SOURCE_ROOT [MUTANTS [SEED]]")
    weir, rules = os.path.abspath(sys.argv[1]), os.path.join(sys.argv[2], "tests", "rules")
    mutants = int(sys.argv[3]) if len(sys.argv) > 3 else 3000
    random_ = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    schema = json.loads(subprocess.check_output([weir, "rules", "schema"]))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator, report = jsonschema.Draft202012Validator(schema), Report()

    documents = []
    for name in sorted(n for n in os.listdir(os.path.join(rules, "good")) if n.endswith(".yaml")):
        documents.append(load(os.path.join(rules, "good", name)))
        report.check(validator.is_valid(documents[-1]), "%s: the schema says otherwise" % name)

    tally = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("bad.txt", "fallback.json"):
            shutil.copy(os.path.join(rules, "good", name), folder)
        wrong = wrong_documents(os.path.join(rules, "wrong.txt"))
        report.check(len(wrong) > 150, "only %d cases in wrong.txt" % len(wrong))
        for document, answer in zip(wrong, ask_reader(weir, folder, wrong)):
            compare(report, validator, document, answer)
        for _ in range(0, mutants, 250):
            batch = [mutate(random_, random_.choice(documents)) for _ in range(250)]
            for document, answer in zip(batch, ask_reader(weir, folder, batch)):
                both = compare(report, validator, document, answer)
                tally[both] = tally.get(both, 0) + 1
    # a test in which one of them always says the same would pass for nothing
    accepted, refused = tally.get((True, True), 0), tally.get((False, False), 0)
    report.check(accepted > mutants / 20 and refused > mutants / 5, "too few of a kind: %s" % tally)
    print("%d passed, %d failed" % (report.passed, report.failed))
    return report.failed > 0


if __name__ == "__main__":
    sys.exit(main())
