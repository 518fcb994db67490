#!/usr/bin/env python3
"""docs.py SOURCE_ROOT -- whatever the documentation names is there, as a test.

    links   lead to a file, and to a heading of it
    paths   in `backquotes` that begin with a folder of the tree
    names   weir_... in `backquotes` and in C are declared in include/, or are metrics, directives
            of nginx

Decisions are history: only their links are checked.
"""
import glob
import os
import re
import sys

LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
PATH = re.compile(r"`((?:lib|server|nginx|wire|include|examples|tests|scripts|bench|share|docs)/[\w./-]+)`")
NAME = re.compile(r"\bweir_(?!_|thing_verb)[a-z0-9_]+\b")
CODE = re.compile(r"^```c\n(.*?)^```|`([^`\n]+)`", re.M | re.S)
FENCED = re.compile(r"^( *)```.*?^\1```", re.M | re.S)
# Metrics and nginx's directives and variables are named weir_... too.
OTHERS = ["server/serve/events/metrics.c", "nginx/http.c", "nginx/module.c"]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)$", FENCED.sub("", read(path)), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def broken_links(page):
    for target, anchor in LINK.findall(FENCED.sub("", read(page))):
        if "://" in target:
            continue
        path = os.path.join(os.path.dirname(page), target) if target else page
        if not os.path.exists(path):
            yield "no such file: " + target
        elif anchor and anchor not in anchors(path):
            yield "no such heading: %s#%s" % (target, anchor)


def unknown_names(page, known):
    text = read(page)
    yield from ("no such file: " + path for path in PATH.findall(text) if not os.path.exists(path))
    code = " ".join(block or span for block, span in CODE.findall(text))
    yield from ("not declared: " + name for name in sorted(set(NAME.findall(code)) - known))


def main():
    os.chdir(sys.argv[1])
    known = {name for path in glob.glob("include/*.h") + OTHERS
             for name in NAME.findall(read(path))}
    pages = ["README.md", "tests/vectors/README.md"] + sorted(glob.glob("docs/*.md"))
    found = [(page, what) for page in pages for what in unknown_names(page, known)]
    found += [(page, what) for page in pages + sorted(glob.glob("docs/decisions/*.md"))
              for what in broken_links(page)]
    for page, what in found:
        print("%s: %s" % (page, what))
    print("%d pages, %d failed" % (len(pages), len(found)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
