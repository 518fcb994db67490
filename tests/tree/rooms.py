#!/usr/bin/env python3
"""rooms.py SOURCE_ROOT STATIC SHARED REDIS_STATIC REDIS_SHARED -- the tree's own rules, as a test.
The libraries are libweir and libweir-redis.

    includes   a room includes only rooms to its left:
                   lib/     base, algo, table, guard, queue, match, rulefile, engine
                   server/  base, describe, then import, replay, sim and serve side by side, then
                            cli; inside serve as SERVE_ROOMS has it
               the server may use lib, wire and cluster; wire uses lib/base, cluster uses wire
               and lib/algo, cluster/agent all of lib, redis-module uses cluster;
               examples, nginx and bindings see only the public headers
               server and wire include only those headers of lib that are listed here
    guards     a header's include guard is its path: WEIR_TABLE_BANS_H for lib/table/bans.h
    clock      is read in lib/base/clock.c and nowhere else
    numbers    no floating point in lib/algo, lib/table, cluster/account, cluster/fleet and
               redis-module
    vectors    every algorithm has tests/vectors/NAME.vec
    symbols    all begin with weir_ or weir__; the shared library exports what the public
               headers declare, and
    nothing else
    paths      no file names a place that only one machine has

Prints each violation as file:line: what, and ends with "N passed, M failed".
"""
import os
import re
import subprocess
import sys

PUBLIC = ["include/weir.h", "include/weir-admin.h", "include/weir-queue.h"]
PUBLIC_REDIS = ["include/weir-redis.h", "include/weir-fleet.h"]  # of a library of its own
LIB_ROOMS = ["base", "algo", "table", "guard", "queue", "match", "rulefile", "engine"]
SERVER_ROOMS = ["base", "describe", "import", "replay", "sim", "serve", "cli"]
# The rooms of server/serve: what each may include beside itself and server/serve/*.h.  Only the
# table of verbs includes a protocol.
SERVE_ROOMS = {
    "settings": ["net"],
    "net": ["settings", "decide"],
    "rules": ["events"],
    "events": ["net", "decide"],
    "decide": ["net", "events", "verbs"],
    "admin": ["net", "events", "decide", "verbs"],
    "resp": ["net", "events", "decide", "verbs"],
    "http": ["net", "events", "decide", "verbs"],
    "verbs": ["events", "decide", "admin", "resp", "http"],
}
CLOCK_FILE = "lib/base/clock.c"

# What each room may include beside itself; the public headers are open to all.
MAY_INCLUDE = {"lib/" + room: ["lib/" + left for left in LIB_ROOMS[:i]] for i,
               room in enumerate(LIB_ROOMS)}
LEFT_OF_SERVER = ["wire", "cluster", "cluster/agent"] + ["lib/" + room for room in LIB_ROOMS]
MAY_INCLUDE.update(
    {
        "wire": ["lib/base"],
        "cluster": ["wire", "lib/base", "lib/algo"],
        "cluster/agent": ["wire", "cluster"] + ["lib/" + room for room in LIB_ROOMS],
        "redis-module": ["cluster", "lib/base", "lib/algo"],
        "server/base": LEFT_OF_SERVER,
        "server/describe": LEFT_OF_SERVER + ["server/base"],
        "server/import": LEFT_OF_SERVER + ["server/base"],
        "server/replay": LEFT_OF_SERVER + ["server/base", "server/describe"],
        "server/sim": LEFT_OF_SERVER + ["server/base", "server/describe"],
        "server/serve": LEFT_OF_SERVER + ["server/base", "server/describe"],
        "server/cli": LEFT_OF_SERVER + ["server/" + room for room in SERVER_ROOMS],
        "examples": [],
        "nginx": [],
        "bindings": [],
    }
)
INSIDE_SERVE = ["server/serve/" + room for room in SERVE_ROOMS]
for room, left in SERVE_ROOMS.items():
    MAY_INCLUDE["server/serve/" + room] = (MAY_INCLUDE["server/serve"] + ["server/serve"]
                                           + ["server/serve/" + other for other in left])
MAY_INCLUDE["server/serve"] = MAY_INCLUDE["server/serve"] + INSIDE_SERVE
MAY_INCLUDE["server/cli"] = MAY_INCLUDE["server/cli"] + INSIDE_SERVE

# Headers of lib that the server and wire may use beside lib/base and the public ones, and why.
OPEN_TO_SERVER = {
    "algo/cl-throttle.h": "the limit, the seconds and the errors of CL.THROTTLE",
    "engine/level.h": "weir explain marks a limit that is nearly used up",
    "engine/explain.h": "weir explain and weir replay show what every rule says",
    "guard/options.h": "the rows of guard options, which are printed too",
    "match/address.h": "addresses of trusted proxies",
    "match/draft.h": "weir rules prints and compares rule files",
    "match/key-template.h": "the same, and lists by attribute",
    "rulefile/node.h": "YAML of settings and of simulations",
    "rulefile/problem.h": "what is wrong with them, and where",
    "rulefile/read.h": "guards as rule files write them, in simulations",
    "engine/waiting-lines.h": "where asks wait",
    "table/cl-throttle-limits.h": "the limits of CL.THROTTLE",
    "table/file.h": "a table's bytes: all there?, backups, upgrades",
}
# The insides of lib, and who still reaches into them.  Take names out; add none.
INSIDES = {
    "algo/algo.h": ["cli/take.c"],
    "engine/engine.h": ["replay/replay.h", "serve/decide/decide.c", "serve/decide/enter.h",
        "serve/rules/in-force-private.h"],
    "guard/guard.h": ["cli/guards.c", "serve/admin/admin-guards.c", "serve/decide/enter.c",
        "serve/decide/guard-keys.c", "serve/decide/guard-lookup.c", "serve/decide/waiting.c",
        "serve/events/metrics.c",
        "serve/events/events-from-counts.c", "sim/guard.c"],
    "match/lists.h": ["serve/rules/list-changes.h"],
    "match/rules.h": ["serve/http/http-forward-auth.c", "serve/verbs/arguments.c"],
    "table/bans.h": ["serve/events/metrics.c"],
    "table/table.h": ["cli/mode.c", "cli/table.c", "serve/decide/adhoc.c",
                      "serve/decide/reservations.c"],
}
# Where the time is an argument.
TIMELESS = ("lib/", "wire/", "cluster/", "redis-module/", "server/")
INTEGER = ("lib/algo/", "lib/table/", "cluster/account/", "cluster/fleet/",
           "redis-module/")

CLOCK_CALL = re.compile(
    r"(?<![\w.>])(clock|time|times|ftime|sleep|alarm|(?:u|nano|clock_nano)sleep|clock_get\w+|gettimeofday|timespec_get|localtime|mktime|"
    r"timer_\w+|timerfd_\w+|setitimer|__rdtscp?|_rdtsc|__builtin_ia32_rdtscp?|__builtin_readcyclecounter|pthread_cond_timedwait|"
    r"pthread_mutex_timedlock|sem_timedwait)\s*\("
)
CLOCK_ASM = re.compile(r"\b(rdtscp?|cntvct_el0)\b")
FLOATING = re.compile(r"\b(float|double|_Float\w+|__float\w+|long double)\b|(?<![\w.])(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?\w*|(?<![\w.])\d+[eE][+-]?\d+\b")
MACHINE_PATH = re.compile(r"(?<![\w.~*$})-])/(?:work|root|home)/[\w.]")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)

# What compilers add when they instrument.
INSTRUMENTED = re.compile(r"^(__odr_asan|__asan|__tsan|__ubsan|__sanitizer|__sancov|__start___|__stop___|__llvm|__prof|__gcov|__covrec|_init$|_fini$)")


class Report:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, violations):
        """One check of one thing: passed if it has no violations."""
        self.passed += not violations
        self.failed += bool(violations)
        for path, line, what in violations:
            print("%s:%d: %s" % (path, line, what))


def list_files(root):
    """Tracked files: others are a user's own; without git, all that are not in a build directory."""
    try:
        git = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True, check=True)
        names = git.stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        names = []
        for folder, folders, files in os.walk(root):
            folders[:] = [f
                          for f in folders if f[0] != "."
                          and not os.path.exists(os.path.join(folder, f, "build.ninja"))]
            names += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return sorted({n
                   for n in names if n and os.path.isfile(os.path.join(root, n))
                   and not os.path.islink(os.path.join(root, n))})


def read(root, path):
    """The text, or None if it is not text."""
    data = open(os.path.join(root, path), "rb").read()
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def blank(text, strings):
    """The text without comments, and without strings if told so; lines keep their numbers."""
    pattern = r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"

    def replace(m):
        return (m.group() if m.group()[0] in "\"'" and not strings
                else re.sub(r"[^\n]", " ", m.group()))

    return re.sub(pattern, replace, text, flags=re.S)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def find(path, text, pattern, what):
    return [(path, line_of(text, m.start()), what % m.group().strip(" ("))
            for m in pattern.finditer(text)]


def is_c(path):
    return path.endswith((".c", ".h", ".cc", ".cpp", ".hpp"))


def room_of(path):
    parts = path.split("/")
    if path.startswith("cluster/agent/"):
        return "cluster/agent"
    deep = 3 if path.startswith("server/serve/") and len(parts) > 3 else 2
    return "/".join(parts[:deep]) if parts[0] in ("lib", "server") else parts[0]


def is_open(path, target):
    """Whether a header of lib is open to this file: the server uses what every program can."""
    header, room = target[len("lib/"):], room_of(target)
    if not path.startswith(("server/", "wire/")) or room[:4] != "lib/" or room == "lib/base":
        return True
    return header in OPEN_TO_SERVER or path[len("server/"):] in INSIDES.get(header, [])


def check_includes(path, text, files):
    room, violations = room_of(path), []
    code = blank(text, False)
    for m in INCLUDE.finditer(code):
        name, line = m.group(2), line_of(code, m.start(1))
        near = os.path.normpath(os.path.join(os.path.dirname(path), name))
        places = (([near] if m.group(1) == '"' else []) + ["include/" + name, "lib/" + name,
                                                           os.path.normpath(name)])
        target = next((p for p in places if p in files), None)
        made = name.endswith("-text.h")  # by scripts/embed.py
        if target is None and m.group(1) == '"' and not made and room not in ("nginx", "bindings"):
            violations.append((path, line, '"%s" is not in the tree' % name))
        if target is not None and not is_open(path, target):
            violations.append((path, line, "%s is not open to the server: see weir.h" % name))
        if (target is None or target in PUBLIC + PUBLIC_REDIS
            or room_of(target) in [room] + MAY_INCLUDE[room]):
            continue
        violations.append((path, line,
                           "%s must not include %s: %s" % (room, room_of(target), name)))
    return violations


def check_include_guard(path, text):
    name = re.sub(r"^(lib|include)/(weir\b-?)?", "", path)
    guard = re.sub(r"\W+", "_", "WEIR_" + name).upper().replace("__", "_")
    right = "\n#ifndef %s\n#define %s\n" % (guard, guard) in text
    return [] if right else [(path, 1, "the include guard is not " + guard)]


def check_clock(path, text):
    what = "'%s' reads or waits for a clock; only " + CLOCK_FILE + " may"
    return (find(path, blank(text, True), CLOCK_CALL, what) + find(path, blank(text, False),
                                                                   CLOCK_ASM, what))


def check_vectors(path, text, files):
    row = re.search(r"^const struct weir__algo weir__\w+ = \{", text, re.M)
    vector = "tests/vectors/%s.vec" % os.path.splitext(os.path.basename(path))[0]
    missing = row is not None and vector not in files
    return [(path, line_of(text, row.start()), "there is no " + vector)] if missing else []


def check_sources(report, root, files):
    known = set(files)
    for path in files:
        text = read(root, path) if is_c(path) else None
        if text is None:
            continue
        if room_of(path) in MAY_INCLUDE:
            report.check(check_includes(path, text, known))
        elif path.startswith(("lib/", "server/")):
            report.check([(path, 1, "%s is no room: see docs/architecture.md" % room_of(path))])
        if path.endswith(".h"):
            report.check(check_include_guard(path, text))
        if path.startswith(TIMELESS) and path != CLOCK_FILE:
            report.check(check_clock(path, text))
        if path.startswith(INTEGER):
            report.check(find(path, blank(text, True), FLOATING, "floating point: '%s'"))
        if path.startswith("lib/algo/"):
            report.check(check_vectors(path, text, known))


def check_paths(report, root, files):
    for path in files:
        text = read(root, path)
        if text is not None:
            report.check(find(path, text, MACHINE_PATH, "'%s...' is a place on one machine"))


def symbols(library, *options):
    out = subprocess.run(["nm", "-g", "--defined-only", "-P", *options, library],
                         stdout=subprocess.PIPE, text=True).stdout
    names = {line.split()[0].split("@")[0] for line in out.splitlines() if len(line.split()) >= 3}
    return {n for n in names if not INSTRUMENTED.match(n)}


def check_symbols(report, root, paths, static, shared):
    headers = {path: blank(read(root, path), True) for path in paths}
    declared = re.compile(r"\bWEIR_API\b[^;{}#]*?\b(weir_\w+)\s*\(")
    public = {m.group(1): (path, line_of(code, m.start(1)))
              for path, code in headers.items() for m in declared.finditer(code)}
    kept, exported = symbols(static), symbols(shared, "-D")
    report.check([(static, 0, "no symbols: not a library of Weir")] if not kept else [])
    report.check([(static, 0, "'%s' does not begin with weir_" % n)
                  for n in sorted(kept) if not n.startswith("weir_")])
    report.check([(shared, 0, "exports '%s', which no public header declares" % n)
                  for n in sorted(exported - set(public))])
    report.check([(*public[n], "'%s' is not exported" % n)
                  for n in sorted(set(public) - exported)])
    plain = re.compile(r"^(?!WEIR_API\b)\w[\w *]*?\b(weir_\w+)\((?!\*).*;", re.M)
    for path, code in headers.items():
        report.check([(path, line_of(code, m.start(1)),
                       "'%s' is declared without WEIR_API" % m.group(1))
                      for m in plain.finditer(code)])


def main():
    if len(sys.argv) != 6:
        sys.exit("usage: rooms.py SOURCE_ROOT STATIC SHARED REDIS_STATIC REDIS_SHARED")
    root, static, shared, redis_static, redis_shared = sys.argv[1:]
    report, files = Report(), list_files(root)
    report.check([] if set(PUBLIC) <= set(files) and CLOCK_FILE in files
                 else [(root, 0, "not the sources of Weir")])
    check_sources(report, root, files)
    check_paths(report, root, files)
    check_symbols(report, root, PUBLIC, static, shared)
    check_symbols(report, root, PUBLIC_REDIS, redis_static, redis_shared)
    print("%d passed, %d failed" % (report.passed, report.failed))
    return report.failed > 0


if __name__ == "__main__":
    sys.exit(main())
