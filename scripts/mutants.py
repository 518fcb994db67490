#!/usr/bin/env python3
"""mutants.py -- changes one token of lib at a time, and sees that a test notices.

    mutants.py [ROOM...] [--files NAME...] [--lines FIRST LAST] [--limit N] [--seed N]
               [--jobs N] [--quick] [--report FILE] [--again FILE] [--list]

A room is a folder of lib: algo (the default), table, guard, queue, match, rulefile, engine.  ROOMS
names its tests.  They are built once, in a copy of the tree (build/mutants), so that nobody's edits
disturb a run; a mutant costs the compilation of its file and a link.  A mutant with the machine
code of the original, or of another mutant, needs no test.  The rest meet the tests one by one, the
unit test of the changed file first, then the fastest first, until one notices.

docs/mutants.md lists the survivors that are understood, with the reason for each.  Others get a
second look: slower tests, other seeds, and ASan and UBSan watching, as `make test` has them.  The
run ends well if none is left.
"""
import argparse
import collections
import concurrent.futures
import glob
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PLACE = os.path.join(ROOT, "build/mutants")
KNOWN = "docs/mutants.md"
MEMORY_MB = 8192  # of address space; a test sets its own bound of as much

# The tests of a room beside its unit tests, and those of the second look.  A pattern stands for the
# files that match it in tests/.
Room = collections.namedtuple("Room", "tests later")
STEP = "vectors/weir-vectors --door step vectors/*.vec"
RULES = ["property-rules 1 40", "property-enter 1 100", "unit-engine", "memory rules/good/*.yaml"]
RULES_LATER = ["property-rules 1000001 200", "property-enter 1000001 300"]
ROOMS = {
    "algo": Room([STEP, "laws 1 150", "unit-table take.c"], ["laws 1000001 300", "unit-table"]),
    "table": Room(["vectors/weir-vectors --door table vectors/*.vec", "laws 1 50",
                   "property-rules 1 20"],
                  ["exact 2", "vectors/weir-vectors --door shm vectors/*.vec", "kill 1 200"]),
    "guard": Room(["vectors/weir-vectors vectors/guards/*.vec", "property-breaker 1 2000",
                   "property-enter 1 100"],
                  ["thread-guard 1", "thread-breaker 1", "crash-guard 1 100", "unit-queue",
                   "unit-engine", "sim-shedding", "sim-adaptive"]),
    "queue": Room(["property-queue 1 100"], ["property-queue 1000001 100", "thread-wait 1",
                                             "thread-pool 1"]),
    "match": Room(RULES, ["unit-rulefile"] + RULES_LATER),
    "rulefile": Room(["unit-engine", "unit-match", "memory rules/good/*.yaml"],
                     ["property-rules 1 40", "unit-server_sim"]),
    "engine": Room(["property-rules 1 40", "property-enter 1 100", "memory rules/good/*.yaml"],
                   ["thread-rules 1"] + RULES_LATER),
}
FAST = ["-Doptimization=1", "-Ddebug=false"]
WATCHED = FAST + ["-Db_sanitize=address,undefined"]

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
    def __init__(self, name, function, source, start, end, new, change):
        self.name, self.function, self.change = name, function, change
        self.source, self.start, self.end = source, start, end
        # lines stay where they were
        self.new = new + "\n" * (source.count("\n", start, end) - new.count("\n"))
        self.line = source.count("\n", 0, start) + 1
        self.verdict, self.killer, self.reason = None, "", None

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
        return self.name + " " + self.function, self.change, self.excerpt()


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


def functions(tokens):
    """For each token the name of the function whose body it lies in, or None."""
    inside = [None] * len(tokens)
    for i, t in enumerate(tokens):
        if t.text == "{" and not inside[i] and tokens[i - 1].text == ")":
            name = tokens[tokens[i - 1].mate - 1].text
            inside[i + 1:t.mate] = [name] * (t.mate - i - 1)
    return inside


def find_mutants(name, source):
    tokens, found = tokenize(source), []
    inside = functions(tokens)

    def text_of(first, end):
        return source[tokens[first].start:tokens[end - 1].end]

    def add(first, end, new, change):
        found.append(Mutant(name, inside[first], source, tokens[first].start, tokens[end - 1].end,
                            new, change))

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

def run(command, seconds, directory=None, bounds=""):
    """Exit code (negative: a signal; None: too long) and what was said."""
    if bounds:
        command = ["sh", "-c", "ulimit -c 0; %s exec \"$@\"" % bounds, "sh"] + command
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=seconds, errors="replace", cwd=directory)
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return None, ""


def must(command, directory=None, bounds=""):
    code, said = run(command, 3600, directory, bounds)
    if code != 0:
        sys.exit("mutants: %s fails without any mutant: mend it first\n%s"
                 % (" ".join(command), said[-3000:]))
    return said


class Test:
    """A program with its arguments."""

    def __init__(self, words, tree):
        self.name, words = words, words.split()
        self.program = "tests/" + words[0]
        self.arguments = []
        for word in words[1:]:
            found = sorted(glob.glob(os.path.join(tree, "tests", word))) if "*" in word else []
            self.arguments += found or [word]
        self.seconds = 0


class Workshop:
    """A built copy of the tree, and how to build parts of it with a mutant."""

    def __init__(self, name, settings, tests):
        self.tree, self.build = os.path.join(PLACE, "tree"), os.path.join(PLACE, name)
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            must(["meson", "setup", self.build, self.tree, "-Dwerror=false"] + settings)
        programs = sorted({t.program for t in tests})
        must(["ninja", "-C", self.build] + programs)
        self.links = {p: self.link_command(p) for p in programs}
        self.sources = self.read_sources()

    def link_command(self, program):
        commands = must(["ninja", "-t", "commands", "-s", program], self.build)
        return shlex.split(commands.strip().split("\n")[-1])

    def read_sources(self):
        """{object: (source, command, files it includes)}"""
        commands = json.loads(must(["ninja", "-t", "compdb"], self.build))
        commands = {c["output"]: c for c in commands if c["file"].endswith(".c")}
        sources, output = {}, None
        for line in must(["ninja", "-t", "deps"], self.build).split("\n"):
            if not line.startswith(" "):
                output = line.split(":")[0]
                if output in commands:
                    c = commands[output]
                    sources[output] = (c["file"], shlex.split(c["command"]), set())
            elif output in sources:
                sources[output][2].add(os.path.relpath(os.path.join(self.build, line.strip()),
                                                       self.tree))
        return sources

    def users(self, path):
        """The objects made of a file, in the library and in the room's tests."""
        linked = {word for command in self.links.values() for word in command}
        return [o for o, (_, _, includes) in self.sources.items()
                if path in includes and (o.startswith("libweir.") or o in linked)]

    def compile(self, path, text, place):
        """{object: its replacement} with `text` in the place of a file; None if it fails."""
        changed = os.path.join(place, os.path.relpath(path, "lib"))
        os.makedirs(os.path.dirname(changed), exist_ok=True)
        with open(changed, "w") as f:
            f.write(text)
        made = {}
        for output in self.users(path):
            source, command, _ = self.sources[output]
            made[output] = os.path.join(place, output.replace("/", "_"))
            swap = {output: made[output], source: changed if path.endswith(".c") else source}
            words = [swap.get(w, w) for w in command if w != "ccache"]
            words[1:1] = ["-I" + place, "-ffile-prefix-map=%s=." % place, "-w"]
            code, _ = run(words, 300, self.build)
            if code != 0:
                return None
        return made

    def link(self, program, made, place):
        """The program with the replacements: those of the library come before it, which then has
        nothing left to give."""
        command, out = self.links[program], os.path.join(place, os.path.basename(program))
        swap = dict(made, **{program: out})
        extra = [made[o] for o in made if o.startswith("libweir.")]
        must(command[:1] + extra + [swap.get(w, w) for w in command[1:]], self.build)
        return out


def digest(made):
    h = hashlib.sha256()
    for output in sorted(made):
        with open(made[output], "rb") as f:
            h.update(f.read())
    return h.digest()


# ----------------------------------------------------------------- judging ----

def tests_of(room, tree, later):
    units = sorted(glob.glob(os.path.join(tree, "tests/unit", room, "*.c")))
    words = ["unit-%s %s" % (room, os.path.basename(u)) for u in units] + ROOMS[room].tests
    return [Test(w, tree) for w in words + (ROOMS[room].later if later else [])]


class Trial:
    """One way to put mutants of a room to the test."""

    def __init__(self, room, name, settings, later=False):
        self.tests = tests_of(room, os.path.join(PLACE, "tree"), later)
        self.shop = Workshop(name, settings, self.tests)
        self.memory = "" if settings is WATCHED else "ulimit -v %d;" % (MEMORY_MB * 1024)
        for t in self.tests:
            started = time.time()
            must([os.path.join(self.shop.build, t.program)] + t.arguments, bounds=self.memory)
            t.seconds = time.time() - started

    def order(self, mutant):
        own = os.path.basename(mutant.name).split(".")[0] + ".c"
        return sorted(self.tests, key=lambda t: (own not in t.arguments, t.seconds))

    def judge(self, mutant, made, place):
        programs = {}
        mutant.verdict = "survived"
        for t in self.order(mutant):
            if t.program not in programs:
                programs[t.program] = self.shop.link(t.program, made, place)
            bounds = self.memory + "ulimit -t %d;" % (3 + 4 * t.seconds)
            code, _ = run([programs[t.program]] + t.arguments, 15 + 15 * t.seconds, bounds=bounds)
            if code != 0:
                hangs = code in (None, -signal.SIGXCPU, -signal.SIGKILL)
                mutant.verdict, mutant.killer = "hang" if hangs else "noticed", t.name
                break


def copy_tree(to):
    """Times are kept, so that an earlier build serves again."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(ROOT, to, symlinks=True, ignore=lambda directory, names: [
        n for n in names if directory == ROOT and (n.startswith("build") or n == ".git")])


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


def set_aside_twins(mutants, digests):
    """Those whose machine code is that of the original, or of an earlier mutant."""
    seen = {(m.name, digests[m.name]): None for m in mutants}
    for m in mutants:
        if m not in digests:
            m.verdict = "compile"
            continue
        earlier = seen.setdefault((m.name, digests[m]), m)
        if earlier is not m:
            m.verdict = "twin" if earlier else "same"


def judge_room(room, mutants, options):
    trial = Trial(room, "fast", FAST)
    place = tempfile.mkdtemp(prefix="mutants-", dir=PLACE)
    digests, made = {}, {}

    def compile_one(m):
        where = os.path.join(place, str(id(m)))
        made[m] = trial.shop.compile("lib/" + m.name, m.text(), where)
        if made[m]:
            digests[m] = digest(made[m])

    def judge_one(m):
        where = os.path.join(place, str(id(m)))
        trial.judge(m, made[m], where)
        shutil.rmtree(where, ignore_errors=True)

    for m in {m.name: m for m in mutants}.values():
        where = os.path.join(place, m.name.replace("/", "-"))
        digests[m.name] = digest(trial.shop.compile("lib/" + m.name, m.source, where))
    for_each(mutants, options.jobs, room + ": compiled", compile_one)
    set_aside_twins(mutants, digests)
    for_each([m for m in mutants if not m.verdict], options.jobs, room + ": tested", judge_one)
    shutil.rmtree(place, ignore_errors=True)


def look_again(room, riddles, options):
    trial = Trial(room, "watched", WATCHED, later=True)

    def judge_one(m):
        with tempfile.TemporaryDirectory(prefix="mutants-", dir=PLACE) as where:
            trial.judge(m, trial.shop.compile("lib/" + m.name, m.text(), where), where)

    for_each(riddles, options.jobs, room + ": looked at again", judge_one)


def run_all(mutants, options):
    reasons = known_reasons(os.path.join(ROOT, KNOWN))
    for room in options.rooms:
        own = [m for m in mutants if m.name.startswith(room + "/")]
        judge_room(room, own, options)
        for m in own:
            m.reason = reasons.get(m.key())
        riddles = [m for m in own if m.verdict == "survived" and m.reason is None]
        if riddles and not options.quick:
            look_again(room, riddles, options)


# --------------------------------------------------------------- reporting ----

def cell(text):
    return text.replace("|", "\\|")


def known_reasons(path):
    """The survivors in docs/mutants.md, or in a report, by the change."""
    reasons = {}
    try:
        with open(path) as f:
            for line in f:
                cells = [c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1]]
                if (len(cells) == 4 and re.match(r"\w+/[\w-]+\.[ch] \w+$", cells[0])
                    and not cells[3].startswith("open")):
                    reasons[cells[0], cells[1], cells[2].strip("`")] = cells[3]
    except FileNotFoundError:
        pass
    return reasons


def figures(mutants):
    names = sorted({m.name for m in mutants})
    rooms = sorted({n.split("/")[0] for n in names}, key=list(ROOMS).index)
    rows = [["", "mutants", "noticed", "hang", "survived", "explained", "score"]]
    for name in names + rooms:
        real = [m for m in mutants if (m.name + "/").startswith(name + "/")
                and m.verdict not in ("same", "twin", "compile")]
        hang = sum(m.verdict == "hang" for m in real)
        survived = [m for m in real if m.verdict == "survived"]
        score = 100.0 * (len(real) - len(survived)) / max(1, len(real))
        rows.append([name, str(len(real)), str(len(real) - len(survived) - hang), str(hang),
                     str(len(survived)), str(sum(m.reason is not None for m in survived)),
                     "%.1f %%" % score])
    return rows


def markdown(mutants):
    rows = figures(mutants)
    lines = ["| " + " | ".join(rows[0]) + " |", "|---|" + "--:|" * (len(rows[0]) - 1)]
    lines += ["| " + " | ".join(r) + " |" for r in rows[1:]]
    lines += ["", "| where | change | it reads then | why it survives |", "|---|---|---|---|"]
    lines += ["| %s %s | %s | `%s` | %s |" % (m.name, m.function, cell(m.change), cell(m.excerpt()),
                                              cell(m.reason or "?"))
              for m in mutants if m.verdict == "survived"]
    return "\n".join(lines) + "\n"


def print_figures(mutants):
    rows = figures(mutants)
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for r in rows:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i,
                        (c, w) in enumerate(zip(r, widths))))


# -------------------------------------------------------------------- main ----

def parse_options():
    p = argparse.ArgumentParser(description="Changes one token of lib at a time, and sees that a "
                                            "test notices.")
    p.add_argument("rooms", nargs="*", metavar="ROOM", help="%s; default: algo" % " ".join(ROOMS))
    p.add_argument("--files", nargs="+", metavar="NAME", help="only these files of the rooms")
    p.add_argument("--lines", nargs=2, type=int, metavar=("FIRST", "LAST"),
                   help="only mutants of these lines of the files")
    p.add_argument("--limit", type=int, metavar="N",
                   help="only N mutants of each room, chosen by --seed")
    p.add_argument("--seed", type=int, default=1, metavar="N", help="of the choice (default 1)")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 2, metavar="N")
    p.add_argument("--quick", action="store_true", help="no second look at the survivors")
    p.add_argument("--report", metavar="FILE",
                   help="write the figures and the survivors there, as markdown")
    p.add_argument("--again", metavar="FILE", help="only the survivors listed in an earlier report")
    p.add_argument("--list", action="store_true",
                   help="list all mutants, not only the survivors, each with its fate")
    options = p.parse_args()
    options.rooms = options.rooms or ["algo"]
    for room in options.rooms:
        if room not in ROOMS:
            p.error("there is no room %s" % room)
    return options


def choose_mutants(room, options):
    tree, mutants = os.path.join(PLACE, "tree"), []
    for path in sorted(glob.glob(os.path.join(tree, "lib", room, "*.[ch]"))):
        if not options.files or os.path.basename(path) in options.files:
            with open(path) as f:
                mutants += find_mutants(os.path.relpath(path, tree + "/lib"), f.read())
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
    os.nice(10)
    copy_tree(os.path.join(PLACE, "tree"))
    mutants = [m for room in options.rooms for m in choose_mutants(room, options)]
    run_all(mutants, options)
    for m in mutants:
        if options.list or (m.verdict == "survived" and m.reason is None):
            print("%s:%d: %s: %s    %s    %s" % (m.name, m.line, m.verdict, m.change, m.excerpt(),
                                                 m.killer))
    print_figures(mutants)
    print("%d s" % (time.time() - started))
    if options.report:
        with open(options.report, "w") as f:
            f.write(markdown(mutants))
    new = sum(m.verdict == "survived" and m.reason is None for m in mutants)
    if new:
        print("%d survive without a reason in %s: a test is missing, or a reason" % (new, KNOWN))
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
