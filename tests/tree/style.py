#!/usr/bin/env python3
"""style.py SOURCE_ROOT [--fix] [PATH...] -- the house style, as a test.

    format     C is formatted by clang-format with the settings in .clang-format
    columns    no line of more than 100 columns in C, Python, shell and Meson, but for long texts
    length     no source of more than 700 lines; weir.h, which is the manual, 800
    sizeof     with parentheses
    blank      a blank line between a function's declarations and its statements
    comments   no line that the next line's first word would fit on with room to spare

Prints each violation as file:line: what, and ends with "N passed, M failed".  --fix formats, and
adds the blank lines.
"""
import os
import re
import subprocess
import sys
import time

from rooms import Report, list_files, read

COLUMNS = 100
LINES_MAX = 700
MANUAL, MANUAL_LINES_MAX = "include/weir.h", 800
SHORT = ("lib/", "wire/", "cluster/", "redis-module/", "server/", "include/", "nginx/")
SPARE = 12  # columns that the end of a comment's line may be short of a word
STAMP = "formatted"
FORMATTER = 14  # other versions of clang-format disagree about details
LONG_TEXT = re.compile(r"https?://|(?<!\")\"(?:\\.|[^\"\\]){50,}")
LONG_OTHER_TEXT = re.compile(LONG_TEXT.pattern + r"|'(?:\\.|[^'\\]){50,}")

KEYWORDS = {"return", "goto", "else", "case", "default", "if", "for", "while", "do", "switch",
            "break", "continue", "typedef"}
DECLARATION = re.compile(
    r"\s+(?:(?:static|const|volatile|unsigned|signed|long|short|extern|_Alignas\(\d+\)|_Atomic)\s+)*"
    r"(?:(?:struct|enum|union)\s+)?(\w+)(?:\s+const)?\s*(?:\*+\s*(?:const\s+)?|\s)\w+"
    r"(?:\[[^\]]*\])*\s*(?:=|;|,|$)")
POINTER_TO_FUNCTION = re.compile(r"\s+[\w\s*]+\(\*\w+(?:\[\w*\])?\)\(")
COMMENT = re.compile(r"(\s*(?:/\*|\*|//|#) )(\S.*)")


def is_c(path):
    return path.endswith((".c", ".h", ".cc"))


def is_code(path):
    return is_c(path) or path.endswith((".py", ".sh", "meson.build", "Makefile", ".ci/run"))


def check_columns(path, lines):
    text = LONG_TEXT if is_c(path) else LONG_OTHER_TEXT
    return [(path, i, "%d columns" % len(line)) for i, line in enumerate(lines, 1)
            if len(line) > COLUMNS and not text.search(line)]


def check_length(path, lines):
    count = len(lines) - 1
    most = MANUAL_LINES_MAX if path == MANUAL else LINES_MAX
    return [(path, count, "%d lines, of at most %d" % (count, most))] if count > most else []


def check_sizeof(path, lines):
    return [(path, i, "sizeof without parentheses") for i, line in enumerate(lines, 1)
            if re.search(r"\bsizeof [*&\w]", line)]


def is_declaration(line):
    found = DECLARATION.match(line)
    return POINTER_TO_FUNCTION.match(line) or (found and found.group(1) not in KEYWORDS)


def end_of_statement(lines, i):
    """The line after the one on which the statement that begins on line i ends."""
    depth = 0
    while i < len(lines):
        bare = re.sub(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|/\*.*?\*/", "", lines[i])
        depth += sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}"))
        i += 1
        if depth <= 0 and bare.rstrip().endswith(";"):
            break
    return i


def check_blank(path, lines):
    violations = []
    for i, line in enumerate(lines):
        at = i + 1
        while line == "{" and at < len(lines) and is_declaration(lines[at]):
            at = end_of_statement(lines, at)
        if at > i + 1 and at < len(lines) and lines[at].strip() not in ("", "}"):
            violations.append((path, at + 1, "a blank line is missing after the declarations"))
    return violations


def check_comments(path, lines):
    """A line within a paragraph that has ample room for the next line's first word."""
    violations = []
    for i in range(len(lines) - 1):
        line, after = (COMMENT.fullmatch(lines[k]) for k in (i, i + 1))
        if not line or not after or not after.group(1).strip() in ("*", "#", "//"):
            continue
        text, next_word = line.group(2), after.group(2).split()[0]
        if (next_word[0].isalnum() and text[-1] not in ".:;" and "*/" not in text
                and not re.search(r"\S {3,}\S|[^.:;?!)] {2,}\S", text + " " + after.group(2))
                and len(lines[i]) + 1 + len(next_word) <= COLUMNS - SPARE):
            violations.append((path, i + 1, "a comment broken by rewrapping"))
    return violations


def is_newer(path, stamp):
    return os.stat(path).st_ctime >= stamp


def check_format(root, paths):
    """Every file that clang-format would change.  In a build's folder a stamp tells when all were
    right: only files that have changed since are looked at."""
    began = time.time()
    built = os.path.exists("build.ninja")
    stamp = os.stat(STAMP).st_mtime if built and os.path.exists(STAMP) else 0
    if not is_newer(os.path.join(root, ".clang-format"), stamp):
        paths = [path for path in paths if is_newer(os.path.join(root, path), stamp)]
    try:
        said = subprocess.run(["clang-format", "--version"], capture_output=True, text=True).stdout
    except OSError:
        said = ""
    if " version %d." % FORMATTER not in said:
        print("format: skipped, it needs clang-format %d; here is %s" % (FORMATTER, said or "none"))
        return []
    if not paths:
        return []
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *paths], cwd=root,
                          stderr=subprocess.PIPE, text=True)
    if built and done.returncode == 0:
        open(STAMP, "w").close()
        os.utime(STAMP, (began, began))
    found = re.findall(r"^([^:\n]+):(\d+):\d+: error", done.stderr, re.M)
    return [(path, int(line), "clang-format would change it") for path, line in found]


def fix(root, path, lines):
    for _, at, _ in reversed(check_blank(path, lines)):
        lines.insert(at - 1, "")
    with open(os.path.join(root, path), "w") as file:
        file.write("\n".join(lines))
    subprocess.run(["clang-format", "-i", path], cwd=root, check=True)


def main():
    root, *paths = [word for word in sys.argv[1:] if word != "--fix"]
    report, files = Report(), paths or [f for f in list_files(root) if "/corpus/" not in f]
    for path in filter(is_code, files):
        lines = read(root, path).split("\n")
        if "--fix" in sys.argv and is_c(path):
            fix(root, path, lines)
        report.check(check_columns(path, lines))
        report.check(check_comments(path, lines))
        if is_c(path):
            report.check(check_sizeof(path, lines))
        if is_c(path) and path.startswith(SHORT):
            report.check(check_length(path, lines))
        if is_c(path):
            report.check(check_blank(path, lines))
    report.check(check_format(root, [f for f in files if is_c(f)]))
    print("%d passed, %d failed" % (report.passed, report.failed))
    return report.failed > 0


if __name__ == "__main__":
    sys.exit(main())
