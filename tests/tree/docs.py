#!/usr/bin/env python3
"""docs.py SOURCE_ROOT -- whatever the documentation and comments name is there, as a test.

    links   lead to a file, and to a heading of it
    paths   in `backquotes` that begin with a folder of the tree
    names   weir_... in `backquotes` and in C are declared in include/, or are metrics, directives
            of nginx
    rooms   the sources that architecture.md lists for a room are in that room
    sources named in comments (take.c, table/take.h) are in the tree

    index   docs/decisions/README.md has a line for each decision, with its title

Decisions are history: apart from that only their links are checked.
"""
import glob
import os
import re
import sys

from rooms import list_files

LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
PATH = re.compile(r"`((?:lib|server|cluster|redis-module|nginx|wire|include|examples|tests|scripts|"
                  r"bench|share|docs)/[\w./-]+)`")
SOURCE = re.compile(r"(?<![\w/.<*{-])((?:[\w-]+/)*[a-z0-9][\w-]+\.(?:[ch]|lua|py|vec))(?![\w./(-])")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
MADE = ("weir.c",)  # by scripts/amalgamation.py
NAME = re.compile(r"\bweir_(?!_|thing_verb)[a-z0-9_]+\b")
CODE = re.compile(r"^```c\n(.*?)^```|`([^`\n]+)`", re.M | re.S)
FENCED = re.compile(r"^( *)```.*?^\1```", re.M | re.S)
# Metrics and nginx's directives and variables are named weir_... too.
OTHERS = ["server/serve/events/metrics.c", "nginx/http.c", "nginx/module.c", "nginx/status.c"]


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


def misplaced_sources(page, files):
    """Sources in the row of a room that are not in it."""
    for room, row in re.findall(r"^\| ([\w/-]+) \|(.*)\|$", read(page), re.M):
        for name in re.findall(r"`([\w-]+\.(?:[ch]|lua))`", row):
            if os.path.isdir(room) and os.path.join(room, name) not in files:
                yield "%s has no %s" % (room, name)


def unknown_sources(files):
    """(file, what) for each source that a comment names and the tree does not have."""
    known = {path[at:] for path in files for at in [0] + [m.end() for m in re.finditer("/", path)]}
    for path in files:
        if path.endswith((".c", ".h")) and "/corpus/" not in path:
            said = {name for text in COMMENT.findall(read(path)) for name in SOURCE.findall(text)}
            yield from ((path, "no such file: " + name) for name in sorted(said - known)
                        if name not in MADE)


def decision_line(path):
    """A decision's line in the index: its number, title, and the decision that overtook it."""
    text, name = read(path), os.path.basename(path)
    title = re.match(r"# (\d{4})\. (.+)\n", text)
    overtaken = re.search(r"^\*\*Overtaken( in part)?\*\* by\s\[(\d{4})\]", text, re.M)
    if not title or title[1] != name[:4]:
        return None
    return "* [%s](%s) %s%s" % (name[:4], name, title[2], " (overtaken%s by %s)" % (
        overtaken[1] or "", overtaken[2]) if overtaken else "")


def decisions(index):
    """(file, what) where a decision and the index do not agree."""
    lines = read(index).splitlines()
    for path in sorted(glob.glob("docs/decisions/[0-9]*.md")):
        line = decision_line(path)
        if line is None:
            yield path, "does not begin with # %s. and a title" % os.path.basename(path)[:4]
        elif lines.count(line) != 1:
            yield index, "needs once, under its subject: " + line


def main():
    os.chdir(sys.argv[1])
    files = list_files(".")
    known = {name for path in glob.glob("include/*.h") + OTHERS
             for name in NAME.findall(read(path))}
    pages = ["README.md", "tests/vectors/README.md"] + sorted(glob.glob("docs/*.md"))
    found = [(page, what) for page in pages for what in unknown_names(page, known)]
    found += [(page, what) for page in pages + sorted(glob.glob("docs/decisions/*.md"))
              for what in broken_links(page)]
    found += [("docs/architecture.md", what)
              for what in misplaced_sources("docs/architecture.md", set(files))]
    found += list(unknown_sources(files))
    found += list(decisions("docs/decisions/README.md"))
    for page, what in found:
        print("%s: %s" % (page, what))
    print("%d pages, %d failed" % (len(pages), len(found)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
