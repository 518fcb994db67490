#!/usr/bin/env python3
"""options.py WEIR [--check] -- the tables of options in docs/rules.md, from `weir rules schema`.

A line `<!-- options: breaker -->` stands before the table of what a breaker has.  With --check the
page is compared: a difference is printed, and the exit code is 1.
"""
import difflib
import json
import os
import re
import subprocess
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "rules.md")


def properties(definition):
    for form in [definition] + definition.get("anyOf", []):
        if "properties" in form:
            return form["properties"]
    sys.exit("options.py: no mapping: %s" % definition)


def table(definition):
    rows = ["| word | meaning |", "|---|---|"]
    for name, option in properties(definition).items():
        words = ", ".join("`%s`" % word for word in option.get("enum", []))
        meaning = option["description"] + (": " + words if words else "")
        rows.append("| `%s` | %s |" % (name, meaning[0].lower() + meaning[1:].rstrip(".")))
    return "\n".join(rows) + "\n"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: options.py WEIR [--check]")
    weir = sys.argv[1] if os.path.isfile(sys.argv[1]) else os.path.join(sys.argv[1], "weir")
    out = subprocess.run([weir, "rules", "schema"], stdout=subprocess.PIPE, check=True).stdout
    defs = json.loads(out)["$defs"]
    with open(PAGE, encoding="utf-8") as page:
        old = page.read()
    mark = r"(<!-- options: (\w+) -->\n)(?:\|.*\n)*"
    new = re.sub(mark, lambda m: m.group(1) + table(defs[m.group(2)]), old)
    if "--check" not in sys.argv:
        with open(PAGE, "w", encoding="utf-8") as page:
            page.write(new)
        return 0
    names = ["docs/rules.md", "as the schema says"]
    difference = list(difflib.unified_diff(old.splitlines(), new.splitlines(), *names, n=1))
    print("\n".join(difference))
    return len(difference) > 0


if __name__ == "__main__":
    sys.exit(main())
