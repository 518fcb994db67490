#!/usr/bin/env python3
"""mutants.py -- changes one token of an algorithm at a time, and sees that a test notices.

    mutants.py [--files NAME...] [--lines FIRST LAST] [--limit N] [--seed N] [--rounds N]
               [--jobs N] [--quick] [--report FILE] [--again FILE] [--list]

A copy of the tree is taken first, so that nobody's edits disturb a run.  Each mutant is compiled;
one that comes out as the machine code of the original, or of another mutant, needs no test.  The
rest meet the tests: the laws (tests/property/laws.c), the vectors (tests/vectors/*.vec) at the step
door, and the unit tests of the room (tests/unit/algo).

docs/mutants.md lists the survivors that are understood, with the reason for each.  Others get a
second look: other seeds, more rounds, the unit tests of tables and limiters, and ASan and UBSan
watching, as `make test` has them.  The run ends well if none is left.
"""
import argparse
import concurrent.futures
import glob
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILES = ["algo.h", "debt.h", "window.h", "algo.c", "debt.c", "fixed-window.c", "sliding-window.c",
         "sliding-log.c", "leaky-bucket.c", "token-bucket.c",
         "gcra.c", "smooth.c", "warm-up.c", "calendar.c"]
KNOWN = "docs/mutants.md"
ROOMS = ("base", "algo", "table", "guard", "queue")  # what the tests link
READERS = ["tests/vectors/runner/%s.c" % name
           for name in ("vectors", "replay", "door", "breaker", "controller")]
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-mcx16", "-w"]
FAST = ["-O1"]
WATCHED = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

# Replays the files it is given at the step door: `weir vectors` without the rest of the command.
REPLAY_MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include "vectors/runner/replay.h"

static void mismatch(void *context, int line, const char *text)
{
    printf("%s:%d: %s\n", (const char *)context, line, text);
}

int main(int argc, char **argv)
{
    static char text[1 << 22];
    int failed = 0;
    for (int i = 1; i < argc; i++) {
        struct weir__vectors v;
        struct weir_error error;
        int line = 0;
        FILE *file = fopen(argv[i], "rb");
        size_t len = file ? fread(text, 1, sizeof text, file) : 0;
        if (!file || weir__vectors_parse(&v, text, len, &line, &error) != WEIR_OK) {
            printf("%s:%d: cannot be read: %s\n", argv[i], line, file ? error.text : "no file");
            return 1;
        }
        for (size_t c = 0; c < v.case_count; c++)
            failed += !weir__vectors_replay(weir__door_find("step"), &v, &v.cases[c], mismatch,
                                            argv[i]);
        weir__vectors_clear(&v);
        fclose(file);
    }
    return failed > 0;
}
"""

# ------------------------------------------------------------------ tokens ----

TOKEN = re.compile(r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/|(?m:^)[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*)
  | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
  | (?P<number>\d[\w.]*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<op><<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.X | re.S)

OPENERS = {"(": ")", "[": "]", "{": "}"}
COMPARISONS = {"<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"],
               "==": ["!="], "!=": ["=="]}
FLIPS = {"&&": ["||"], "||": ["&&"], "+=": ["-="], "-=": ["+="], "++": ["--"], "--": ["++"],
         "true": ["false"], "false": ["true"]}
# what they say is no behaviour
SILENT = ("_Static_assert", "assert", "weir__fail", "weir__fail_at", "weir__fail_errno",
          "__attribute__")
LITERAL_MAX = 64


class Token:
    def __init__(self, kind, text, start):
        self.kind, self.text, self.start, self.end = kind, text, start, start + len(text)
        self.mate = None     # of a bracket: the index of the other one
        self.silent = False


def tokenize(source):
    tokens, stack = [], []
    for m in TOKEN.finditer(source):
        if m.lastgroup == "skip":
            continue
        t = Token(m.lastgroup, m.group(), m.start())
        if t.text in OPENERS:
            stack.append(len(tokens))
        elif t.text in OPENERS.values() and t.kind == "op":
            t.mate = stack.pop()
            tokens[t.mate].mate = len(tokens)
        tokens.append(t)
    for i, t in enumerate(tokens):
        if t.text in SILENT and tokens[i + 1].text == "(":
            for inner in tokens[i:tokens[i + 1].mate + 1]:
                inner.silent = True
        if t.text == "__builtin_expect":  # a hint only
            tokens[tokens[i + 1].mate - 1].silent = True
    return tokens


# ----------------------------------------------------------------- mutants ----

class Mutant:
    def __init__(self, name, source, start, end, new, change):
        self.name, self.source, self.start, self.end, self.change = name, source, start, end, change
        # lines stay where they were
        self.new = new + "\n" * (source.count("\n", start, end) - new.count("\n"))
        self.line = source.count("\n", 0, start) + 1
        self.verdict, self.detail, self.killers, self.reason, self.seconds = None, "", [], None, 0

    def text(self):
        return self.source[:self.start] + self.new + self.source[self.end:]

    def excerpt(self):
        """The changed place with a little of its line around it: what tells it from others,
        wherever its line goes."""
        left = self.source.rfind("\n", 0, self.start) + 1
        right = self.source.find("\n", self.end)
        before, after = self.source[left:self.start].lstrip(), self.source[self.end:right]
        before = re.sub(r"^\S*\s", "", before[-41:]) if len(before) > 40 else before
        after = re.sub(r"\s\S*$", "", after[:41]) if len(after) > 40 else after
        return (re.sub(r"\s+", " ", before + self.new + after).strip()
                if not self.change.startswith("dropped") else "nothing")

    def key(self):
        return self.name, self.change, self.excerpt()


def is_operand(t):
    return (t.kind in ("number", "string")
            or (t.kind == "word" and t.text not in ("return", "case", "sizeof", "else"))
            or t.text in (")", "]"))


def span_end(tokens, i, stops):
    """From token i on to the first of `stops` that lies outside all brackets opened on the way; its
    index."""
    while i < len(tokens) and tokens[i].text not in stops:
        i = tokens[i].mate + 1 if tokens[i].text in OPENERS else i + 1
    return i


def span_start(tokens, i, stops):
    while i >= 0 and tokens[i].text not in stops and tokens[i].text not in OPENERS:
        i = tokens[i].mate - 1 if tokens[i].text in OPENERS.values() else i - 1
    return i + 1


def is_lone(tokens, first, end):
    """A single comparison, or a single negation: turning its operator around negates the whole."""
    top, i = [], first
    while i < end:
        top.append(tokens[i].text)
        i = tokens[i].mate + 1 if tokens[i].text in OPENERS else i + 1
    if "&&" in top or "||" in top or "?" in top:
        return False
    return sum(t in COMPARISONS for t in top) == 1 or top[:1] == ["!"]


def operators(tokens, i):
    t, before = tokens[i], tokens[i - 1]
    if t.text in COMPARISONS:
        return [(n, "`%s` → `%s`" % (t.text, n)) for n in COMPARISONS[t.text]]
    if t.text in FLIPS:
        return [(n, "`%s` → `%s`" % (t.text, n)) for n in FLIPS[t.text]]
    if t.text in "+-" and is_operand(before):
        n = "-" if t.text == "+" else "+"
        return [(n, "`%s` → `%s`" % (t.text, n))]
    if t.text in ("-", "!"):
        return [("", "no `%s`" % t.text)]
    if t.kind == "number" and t.text.isdigit() and int(t.text) <= LITERAL_MAX:
        n = int(t.text)
        return [(str(m), "`%d` → `%d`" % (n, m)) for m in (n + 1, n - 1) if m >= 0]
    return []


def conditions(tokens, i):
    """The condition of an if or a while, negated."""
    if tokens[i].text not in ("if", "while") or tokens[i + 1].text != "(":
        return None
    first, end = i + 2, tokens[i + 1].mate
    return None if is_lone(tokens, first, end) else (first, end)


def ternary(tokens, i):
    """c ? a : b as the indexes of a, of the colon, and of what follows b."""
    if tokens[i].text != "?":
        return None
    if is_lone(tokens, span_start(tokens, i - 1, ("=", "return", ",", ";", ":", "?")), i):
        return None
    colon, depth = i + 1, 0
    while True:
        colon = span_end(tokens, colon, ("?", ":"))
        if tokens[colon].text == ":" and depth == 0:
            break
        depth += 1 if tokens[colon].text == "?" else -1
        colon += 1
    end, depth = colon + 1, 0
    while True:
        end = span_end(tokens, end, ("?", ":", ",", ";", ")", "]", "}"))
        if tokens[end].text == "?":
            depth += 1
        elif tokens[end].text == ":" and depth > 0:
            depth -= 1
        else:
            return i + 1, colon, end
        end += 1


def statement(tokens, i):
    """A statement that is an assignment or a call and no more: the index of its semicolon."""
    before = tokens[i - 1]
    begins = (before.text in (";", "{", "}", "else")
              or (before.text == ")" and tokens[before.mate - 1].text in ("if", "for", "while")))
    if (not begins or (tokens[i].kind != "word" and tokens[i].text != "*")
        or tokens[i].text in ("return", "if", "for", "while", "do", "else")):
        return None
    j = i
    while (tokens[j].text in ("*", "(", "[", ".", "->")
           or (tokens[j].kind == "word" and not (j > i and tokens[j - 1].kind == "word"))):
        j = tokens[j].mate + 1 if tokens[j].text in ("(", "[") else j + 1
    is_call = tokens[j].text == ";" and tokens[j - 1].text == ")" and tokens[i].text != "*"
    if not is_call and tokens[j].text not in ("=", "+=", "-=", "&=", "|="):
        return None
    end = span_end(tokens, j, (";", "{", "}"))
    return end if tokens[end].text == ";" else None


def depth_of_code(tokens):
    """For each token whether it lies in the body of a function."""
    inside = [False] * len(tokens)
    for i, t in enumerate(tokens):
        if t.text == "{" and not inside[i] and tokens[i - 1].text == ")":
            inside[i + 1:t.mate] = [True] * (t.mate - i - 1)
    return inside


def find_mutants(name, source):
    tokens, found = tokenize(source), []
    inside = depth_of_code(tokens)

    def text_of(first, end):
        return source[tokens[first].start:tokens[end - 1].end]

    def add(first, end, new, change):
        found.append(Mutant(name, source, tokens[first].start, tokens[end - 1].end, new, change))

    for i, t in enumerate(tokens):
        if t.silent or not inside[i]:
            continue
        for new, change in operators(tokens, i):
            add(i, i + 1, new, change)
        negated = conditions(tokens, i)
        if negated:
            add(*negated, "!(%s)" % text_of(*negated), "condition negated")
        arms = ternary(tokens, i)
        if arms:
            a, colon, end = arms
            add(a, end, "(%s) : (%s)" % (text_of(colon + 1, end), text_of(a, colon)),
                "arms swapped")
        end = statement(tokens, i)
        if end:
            add(i, end, "", "dropped `%s`" % re.sub(r"\s+", " ", text_of(i, end)))
    return found


# ---------------------------------------------------------------- building ----

def run(command, seconds, memory_mb=None):
    """Exit code (negative: a signal; None: too long) and what was said."""
    if memory_mb:
        command = (["sh", "-c", 'ulimit -c 0; ulimit -v %d; exec "$@"' % (memory_mb * 1024),
                    "sh"] + command)
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=seconds, errors="replace")
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return None, ""


class Workshop:
    """A copy of the tree, its objects, and the programs that test them."""

    def __init__(self, place, flags, jobs, with_tables):
        self.tree, self.flags = os.path.join(place, "tree"), flags
        self.jobs, self.with_tables = jobs, with_tables
        self.objects = tempfile.mkdtemp(prefix="objects-", dir=place)
        self.programs = {}  # name: its own sources

    def path(self, *parts):
        return os.path.join(self.tree, *parts)

    def compile(self, source, out, overlay=None):
        includes = ["-I" + d
                    for d in ([overlay] if overlay else []) + [self.path("include"),
                                                               self.path("lib"),
                                                               self.path("tests")]]
        return run(["gcc", "-c"] + FLAGS + self.flags + includes + [source, "-o", out], 120)

    def object_of(self, source):
        return os.path.join(self.objects, source.replace("/", "_") + ".o")

    def unit_tests(self):
        """Those of the files that are changed; with tables, of all that decides."""
        if (run(["sh", "-c",
                 "echo 'int main(void) { return 0; }' | gcc -x c - -lcmocka -o "
                 + os.path.join(self.objects, "probe")], 30)[0] != 0):
            return []
        rooms = ("algo", "table") if self.with_tables else ("algo",)
        return [os.path.relpath(p, self.tree)[:-2] for room in rooms
                for p in sorted(glob.glob(self.path("tests", "unit", room, "*.c")))]

    def build(self):
        self.library = sorted(os.path.relpath(p, self.tree) for room in ROOMS
                              for p in glob.glob(self.path("lib", room, "*.c")))
        self.programs = {"vectors": ["replay-main.c"] + READERS, "laws": ["tests/property/laws.c"]}
        for u in self.unit_tests():
            self.programs["unit-" + u.split("/", 2)[2].replace("/", "-")] = [u + ".c",
                                                                             "tests/unit/test.c"]
        sources = self.library + [s for own in self.programs.values() for s in own]
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            results = pool.map(lambda s: self.compile(self.path(s), self.object_of(s)), sources)
            for source, (code, said) in zip(sources, results):
                if code != 0:
                    sys.exit("mutants: %s does not compile as it is:\n%s" % (source, said))
        self.users = {name: [s for s in sources if self.uses(s, name)] for name in FILES}

    def includes(self, source, header):
        directories = ["-I" + self.path(d) for d in ("include", "lib", "tests")]
        return header in run(["gcc", "-MM"] + directories + [self.path(source)], 60)[1]

    def uses(self, source, name):
        """Whether a change of `name` reaches a test through `source`; through a table only if
        tables are tested."""
        if name.endswith(".c"):
            return source == "lib/algo/" + name
        tested = self.with_tables or not source.startswith("lib/table/")
        return tested and self.includes(source, "lib/algo/" + name)

    def make_objects(self, mutant, place):
        """Compiles what the mutant touches; {source: object}, or None if it does not compile."""
        os.makedirs(os.path.join(place, "algo"), exist_ok=True)
        changed = os.path.join(place, "algo", mutant.name)
        with open(changed, "w") as f:
            f.write(mutant.text())
        made = {}
        for source in self.users[mutant.name]:
            made[source] = os.path.join(place, source.replace("/", "_") + ".o")
            code, mutant.detail = self.compile(changed if mutant.name.endswith(".c")
                                               else self.path(source), made[source], overlay=place)
            if code != 0:
                return None
        if mutant.name.endswith(".h"):
            made["itself"] = self.compile_header(mutant.name, place)
        return made

    def compile_header(self, name, place):
        """What a header's inline functions are by themselves, so that one which only a table uses
        is not taken for unchanged."""
        out = os.path.join(place, "itself.o")
        with open(os.path.join(place, "itself.c"), "w") as f:
            f.write('#include "base/base.h"\n#define static\n#define inline\n#include "algo/%s"\n'
                    % name)
        self.compile(os.path.join(place, "itself.c"), out, overlay=place)
        return out

    def original_objects(self, name):
        made = {s: self.object_of(s) for s in self.users[name]}
        if name.endswith(".h"):
            made["itself"] = self.compile_header(name, self.objects)
        return made

    def link(self, program, made, out):
        objects = [made.get(s, self.object_of(s)) for s in self.programs[program] + self.library]
        libraries = ["-lcmocka"] if program.startswith("unit-") else []
        code, said = run(["gcc"] + self.flags + objects + ["-o", out, "-pthread"] + libraries, 120)
        if code != 0:
            sys.exit("mutants: cannot link %s:\n%s" % (program, said))
        return out


def digest(made):
    h = hashlib.sha256()
    for source in sorted(made):
        with open(made[source], "rb") as f:
            h.update(f.read())
    return h.digest()


# ----------------------------------------------------------------- judging ----

class Trial:
    """One way to put mutants to the test."""

    def __init__(self, shop, seed, rounds, seconds, memory_mb, to_the_end):
        self.shop, self.seed, self.rounds = shop, seed, rounds
        self.seconds, self.memory_mb = seconds, memory_mb
        # all programs, to see which notice; else one that does is enough
        self.to_the_end = to_the_end
        self.vectors = sorted(glob.glob(shop.path("tests", "vectors", "*.vec")))

    def arguments(self, program):
        return {"laws": [str(self.seed), str(self.rounds)],
                "vectors": self.vectors}.get(program, [])

    def test(self, made, place):
        """(program, exit code, what it said) for each that does not end well."""
        failed = []
        for program in self.shop.programs:
            binary = self.shop.link(program, made, os.path.join(place, program))
            code, said = run([binary] + self.arguments(program), self.seconds, self.memory_mb)
            os.unlink(binary)
            if code != 0:
                failed.append((program, code, said))
            if code is None or (code != 0 and not self.to_the_end):
                break
        return failed

    def judge(self, mutant, made, place):
        failed = self.test(made, place)
        mutant.killers = [program for program, _, _ in failed]
        if not failed:
            mutant.verdict = "survived"
        elif any(code is not None and code < 0 or code and code > 128 for _, code, _ in failed):
            mutant.verdict = "crash"
        elif all(code is None for _, code, _ in failed):
            mutant.verdict = "hang"
        else:
            kinds = {"unit" if p.startswith("unit-") else p for p, code,
                     _ in failed if code is not None}
            mutant.verdict = "both" if {"laws", "vectors"} <= kinds else sorted(kinds)[0]
        if failed:
            mutant.detail = failed[0][2].strip()


def copy_tree(to):
    for part in ("include", "lib", "tests/property", "tests/vectors", "tests/unit"):
        if os.path.isdir(os.path.join(ROOT, part)):
            shutil.copytree(os.path.join(ROOT, part), os.path.join(to, part))
    shutil.copy(os.path.join(ROOT, "tests/random.h"), os.path.join(to, "tests"))
    with open(os.path.join(to, "replay-main.c"), "w") as f:
        f.write(REPLAY_MAIN)


class Progress:
    def __init__(self, what, total):
        self.what, self.total, self.done, self.shown = what, total, 0, 0

    def tick(self):
        self.done += 1
        if sys.stderr.isatty() and time.time() - self.shown > 0.5 or self.done == self.total:
            self.shown = time.time()
            sys.stderr.write("\r%s %d/%d%s" % (self.what, self.done, self.total,
                                               "\n" if self.done == self.total else ""))
            sys.stderr.flush()


def for_each(mutants, jobs, what, work):
    progress = Progress(what, len(mutants))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(work, m) for m in mutants]):
            done.result()
            progress.tick()


def set_aside_twins(mutants, shop, objects):
    """Those whose machine code is that of the original, or of an earlier mutant."""
    seen = {(name, digest(shop.original_objects(name))): None for name in {m.name for m in mutants}}
    for m in mutants:
        if m not in objects:
            m.verdict = "compile"
            continue
        earlier = seen.setdefault((m.name, digest(objects[m])), m)
        if earlier is not m:
            m.verdict = "twin" if earlier else "same"


def baseline(shop, trial):
    failed = trial.test({}, shop.objects)
    return "\n".join("%s: exit code %s\n%s" % (p, code, said[-1500:]) for p, code, said in failed)


def run_all(mutants, options, place):
    shop = Workshop(place, FAST, options.jobs, with_tables=False)
    shop.build()
    trial = Trial(shop, options.seed, options.rounds, 3, 1024, to_the_end=True)
    wrong = baseline(shop, trial)
    if wrong:
        sys.exit("mutants: a test fails without any mutant: mend it first\n" + wrong)
    objects = {}

    def compile_one(m):
        made = shop.make_objects(m, tempfile.mkdtemp(dir=place))
        if made:
            objects[m] = made

    def judge_one(m):
        where = os.path.dirname(next(iter(objects[m].values())))
        started = time.time()
        trial.judge(m, objects[m], where)
        m.seconds = time.time() - started
        shutil.rmtree(where, ignore_errors=True)

    for_each(mutants, options.jobs, "compiled", compile_one)
    set_aside_twins(mutants, shop, objects)
    for_each([m for m in mutants if not m.verdict], options.jobs, "tested", judge_one)
    reasons = known_reasons(os.path.join(ROOT, KNOWN))
    for m in mutants:
        m.reason = reasons.get(m.key())
    riddles = [m for m in mutants if m.verdict == "survived" and m.reason is None]
    if riddles and not options.quick:
        look_again(riddles, options, place)
    return sorted(os.path.basename(v) for v in trial.vectors), sorted(p
                                                                      for p in shop.programs
                                                                      if p.startswith("unit-"))


def look_again(riddles, options, place):
    shop = Workshop(place, WATCHED, options.jobs, with_tables=True)
    shop.build()
    trial = Trial(shop, options.seed + 1000000, options.rounds * 2, 60, None, to_the_end=False)
    wrong = baseline(shop, trial)
    if wrong:
        sys.exit("mutants: a test fails under sanitizers without any mutant: mend it first\n"
                 + wrong)

    def judge_one(m):
        where = tempfile.mkdtemp(dir=place)
        trial.judge(m, shop.make_objects(m, where), where)
        if m.verdict != "survived":
            m.verdict = "second"
        shutil.rmtree(where, ignore_errors=True)

    for_each(riddles, options.jobs, "looked at again", judge_one)


# --------------------------------------------------------------- reporting ----

COLUMNS = [("compile", "does not compile"), ("both", "laws and vectors"), ("laws", "laws only"),
           ("vectors", "vectors only"), ("unit", "unit test only"),
           ("crash", "crash"), ("hang", "hang"), ("second", "second look"),
           ("survived", "survived")]


def cell(text):
    return text.replace("|", "\\|")


def code_cell(text):
    return "`%s`" % cell(text)


def known_reasons(path):
    """The table of survivors in docs/mutants.md, or in a report, by what was changed."""
    reasons = {}
    try:
        with open(path) as f:
            for line in f:
                cells = [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1]]
                if (len(cells) == 4 and re.match(r"[\w-]+\.[ch](:\d+)?$", cells[0])
                    and not cells[3].startswith("open")):
                    reasons[cells[0].split(":")[0], cells[1], cells[2].strip("`")] = cells[3]
    except FileNotFoundError:
        pass
    return reasons


def figures(mutants):
    rows = [["file", "mutants"] + [title for _, title in COLUMNS] + ["score"]]
    names = sorted({m.name for m in mutants}, key=FILES.index)
    for name in names + ["all"]:
        real = [m for m in mutants if name in (m.name, "all") and m.verdict not in ("same", "twin")]
        counts = [sum(m.verdict == v for m in real) for v, _ in COLUMNS]
        survived = sum(m.verdict == "survived" for m in real)
        score = "%.1f %%" % (100.0 * (len(real) - survived) / len(real)) if real else "-"
        rows.append([name, str(len(real))] + [str(c) if c else "" for c in counts] + [score])
    return rows


def summary(mutants):
    real = [m for m in mutants if m.verdict not in ("same", "twin")]
    survived = [m for m in real if m.verdict == "survived"]
    explained = sum(m.reason is not None for m in survived)
    return "%d changes; %d give the same machine code and %d repeat another; of the %d left %d are noticed (%.1f %%) and %d survive, %d of them explained" % (
        len(mutants), sum(m.verdict == "same" for m in mutants),
        sum(m.verdict == "twin" for m in mutants), len(real), len(real) - len(survived),
        100.0 * (len(real) - len(survived)) / max(1, len(real)), len(survived), explained)


def markdown(mutants, vectors, units, seconds):
    lines = [summary(mutants) + ".", "",
             "Vectors: %s.  Unit tests: %s.  %d s." % (", ".join(vectors) or "none",
                                                       ", ".join(units) or "none", seconds), ""]
    rows = figures(mutants)
    lines += ["| " + " | ".join(rows[0]) + " |", "|---|" + "--:|" * (len(rows[0]) - 1)]
    lines += ["| " + " | ".join(r) + " |" for r in rows[1:]]
    lines += ["", "| where | change | it reads then | why it survives |", "|---|---|---|---|"]
    for m in mutants:
        if m.verdict == "survived":
            lines.append("| %s:%d | %s | %s | %s |" % (m.name, m.line, cell(m.change),
                                                       code_cell(m.excerpt()),
                                                       cell(m.reason or "?")))
    return "\n".join(lines) + "\n"


def print_figures(mutants):
    rows = figures(mutants)
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for r in rows:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i,
                        (c, w) in enumerate(zip(r, widths))))


# -------------------------------------------------------------------- main ----

def parse_options():
    p = argparse.ArgumentParser(description="Changes one token of an algorithm at a time, and sees that a test notices.")
    p.add_argument("--files", nargs="+", default=FILES, choices=FILES, metavar="NAME",
                   help="of lib/algo: " + " ".join(FILES))
    p.add_argument("--lines", nargs=2, type=int, metavar=("FIRST", "LAST"),
                   help="only mutants of these lines of the files")
    p.add_argument("--limit", type=int, metavar="N", help="only N mutants, chosen by --seed")
    p.add_argument("--seed", type=int, default=1, metavar="N",
                   help="of the choice and of the laws (default 1)")
    p.add_argument("--rounds", type=int, default=150, metavar="N",
                   help="of the laws (default 150; twice as many in the second look)")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 2, metavar="N")
    p.add_argument("--quick", action="store_true", help="no second look at the survivors")
    p.add_argument("--report", metavar="FILE",
                   help="write the figures and the survivors there, as markdown")
    p.add_argument("--again", metavar="FILE", help="only the survivors listed in an earlier report")
    p.add_argument("--list", action="store_true",
                   help="list the mutants, with what became of each, not the survivors only")
    return p.parse_args()


def choose_mutants(options, tree):
    mutants = []
    for name in options.files:
        with open(os.path.join(tree, "lib", "algo", name)) as f:
            mutants += find_mutants(name, f.read())
    if options.lines:
        first, last = options.lines
        mutants = [m for m in mutants if first <= m.line <= last]
    if options.again:
        earlier = known_reasons(options.again)
        mutants = [m for m in mutants if m.key() in earlier]
    if options.limit and options.limit < len(mutants):
        chosen = set(random.Random(options.seed).sample(range(len(mutants)), options.limit))
        mutants = [m for i, m in enumerate(mutants) if i in chosen]
    return mutants


def main():
    options, started = parse_options(), time.time()
    place = tempfile.mkdtemp(prefix="weir-mutants-")
    try:
        copy_tree(os.path.join(place, "tree"))
        mutants = choose_mutants(options, os.path.join(place, "tree"))
        vectors, units = run_all(mutants, options, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    for m in mutants:
        if options.list or (m.verdict == "survived" and m.reason is None):
            print("%s:%d: %s: %s    %s%s" % (m.name, m.line, m.verdict, m.change, m.excerpt(),
                                             "    " + ",".join(m.killers) if m.killers else ""))
    print_figures(mutants)
    print("%s; %d s" % (summary(mutants), time.time() - started))
    if options.report:
        with open(options.report, "w") as f:
            f.write(markdown(mutants, vectors, units, time.time() - started))
    new = sum(m.verdict == "survived" and m.reason is None for m in mutants)
    if new:
        print("%d survive without a reason in %s: a test is missing, or a reason" % (new, KNOWN))
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
