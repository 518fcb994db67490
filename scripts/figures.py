#!/usr/bin/env python3
"""figures.py FIGURES.TSV -- docs/figures.md and docs/figures-keys.svg from a run of `make bench`.

A section shows the figures whose names begin as SECTIONS says.  A section without figures in this
run (bench/run.sh can measure parts) stays as it is in the page; goals are compared at the end.
"""
import math
import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def read(path):
    figures = {}
    for line in open(path):
        parts = line.rstrip("\n").split("\t")
        if len(parts) == 3:
            figures[parts[0]] = (float(parts[1]), parts[2])
    return figures


def number(value):
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def series(figures, kind, what):
    """[(keys, ns)] of keys.KIND.N.WHAT, in order of N."""
    points = []
    for name, (value, _) in figures.items():
        parts = name.split(".")
        if parts[0] == "keys" and parts[1] == kind and parts[2].isdigit() and parts[3:] == [what]:
            points.append((int(parts[2]), value))
    return sorted(points)


def plot(figures, path):
    lines = [
        ("narrow, one by one", "#d9480f", series(figures, "narrow", "one-by-one")),
        ("narrow, batches of 16", "#2b8a3e", series(figures, "narrow", "batch-16")),
        ("wide, one by one", "#e8a317", series(figures, "wide", "one-by-one")),
        ("wide, batches of 16", "#1c7ed6", series(figures, "wide", "batch-16")),
        ("bound: one dependent load", "#868e96", series(figures, "narrow", "dependent-load")),
        ("bound: load + swap, prefetched", "#adb5bd", series(figures, "narrow", "load-and-swap")),
    ]
    width, height, left, right, top, bottom = 800, 420, 60, 260, 30, 50
    xs = [x for _, _, points in lines for x, _ in points]
    ys = [y for _, _, points in lines for _, y in points]
    step = 50 if max(ys) > 150 else 20
    x0, x1 = math.log10(min(xs)), math.log10(max(xs))
    y1 = math.ceil(max(ys) / step) * step  # the axis ends above the peak

    def at(x, y):
        return (left + (math.log10(x) - x0) / (x1 - x0) * (width - left - right),
                height - bottom - y / y1 * (height - top - bottom))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
           '<text x="10" y="18" fill="#212529" font-size="14">Cost of a decision against the number of keys (ns of CPU, uniform random keys)</text>']
    for tick in range(0, y1 + 1, step):
        _, y = at(min(xs), tick)
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e9ecef"/>')
        out.append(f'<text x="{left - 8}" y="{y + 4:.1f}" fill="#495057" text-anchor="end">{tick}</text>')
    for power in range(round(x0), round(x1) + 1):
        x, _ = at(10 ** power, 0)
        out.append(f'<text x="{x:.1f}" y="{height - bottom + 18}" fill="#495057" text-anchor="middle">10<tspan dy="-5" font-size="9">{power}</tspan></text>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - 10}" fill="#495057" text-anchor="middle">keys in the table</text>')
    label_y = top + 20
    for name, colour, points in lines:
        if not points:
            continue
        path_d = " ".join(f"{'M' if i == 0 else 'L'}{at(*p)[0]:.1f},{at(*p)[1]:.1f}" for i,
                          p in enumerate(points))
        dash = ' stroke-dasharray="5 4"' if name.startswith("bound") else ""
        out.append(f'<path d="{path_d}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        for p in points:
            x, y = at(*p)
            out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
        out.append(f'<line x1="{width - right + 15}" x2="{width - right + 40}" y1="{label_y}" y2="{label_y}" stroke="{colour}" stroke-width="2"{dash}/>')
        out.append(f'<text x="{width - right + 46}" y="{label_y + 4}" fill="#212529">{name}</text>')
        label_y += 22
    out.append("</svg>")
    open(path, "w").write("\n".join(out) + "\n")


def row(figures, text, name, goal=""):
    """A line of a table, with a goal like "≤ 10 ns"."""
    if name not in figures:
        return f"| {text} | not measured here | {goal} |"
    value, unit = figures[name]
    return f"| {text} | {number(value)} {unit} | {goal} |"


GOALS = ["| what | measured | goal |", "|---|---|---|"]


def decision(f):
    return GOALS + [
        row(f, "bare step, granted (gcra)", "step.gcra.granted", "≤ 10 ns"),
        row(f, "bare step, refused", "step.gcra.refused", "≤ 5 ns"),
        row(f, "… granted, cheaper than Guava's RateLimiter", "step.cheaper-than-guava.granted",
            "≥ 4 times"),
        row(f, "… granted, cheaper than Go's x/time/rate", "step.cheaper-than-xrate.granted",
            "≥ 4 times"),
        row(f, "… refused, cheaper than Guava's RateLimiter", "step.cheaper-than-guava.refused",
            "≥ 4 times"),
        row(f, "… refused, cheaper than Go's x/time/rate", "step.cheaper-than-xrate.refused",
            "≥ 4 times"),
        row(f, "… granted, against Rust's governor (inlined there)",
            "step.cheaper-than-governor.granted"),
        row(f, "… granted, against a mutex bucket in C", "step.cheaper-than-mutex.granted"),
        row(f, "hash of a 16-byte key", "hash.16-bytes"),
        row(f, "take on a hot key, narrow", "take.hot.narrow"),
        row(f, "take on a hot key, refused", "take.hot.narrow.refused"),
        row(f, "take on a hot key, wide", "take.hot.wide"),
        row(f, "take on a hot key over hash + step, narrow", "take.hot.narrow.over-hash-and-step",
            "≤ 2 times"),
        row(f, "take on a hot key over hash + step, wide", "take.hot.wide.over-hash-and-step"),
        row(f, "take on a hot key, instructions", "take.hot.narrow.instructions", "≤ 250"),
        row(f, "hot key, cheaper than governor's keyed limiter",
            "take.hot.cheaper-than-governor-keyed"),
        row(f, "two threads, different keys, speed-up", "threads.two-keys.speed-up", "≥ 1.8 times"),
        row(f, "two threads, one key, all together", "threads.one-key"),
        row(f, "… a mutex bucket the same way", "threads.one-key.mutex"),
        row(f, "… cheaper than the mutex", "threads.one-key.mutex-over-weir", "≥ 1 times"),
    ]


def steps(f):
    out = ["| algorithm | granted | refused |", "|---|---|---|"]
    for name in f:
        if name.startswith("step.") and name.endswith(".granted") and "cheaper" not in name:
            refused = name.replace(".granted", ".refused")
            out.append(f"| {name[5:-8]} | {number(f[name][0])} ns | {number(f[refused][0])} ns |")
    return out


def many_keys(f):
    out = ["Uniform random keys, the worst case. `roomy` tables are filled to 75 %, the others to the promised",
           "82 %. The bounds are measured in a region of the same size in the same run: one dependent load, and",
           "batches of 16 prefetched loads, each with a compare-and-swap.", "",
           "| table | one by one | over a dependent load | batches of 16 | over load + swap | bytes a key | filling | evicted early |",
           "|---|---|---|---|---|---|---|---|"]
    for name in f:
        if name.startswith("keys.") and name.endswith(".one-by-one"):
            base = name[:-len(".one-by-one")]
            get = lambda what: number(f[f"{base}.{what}"][0])
            out.append(f"| {base[5:]} | {get('one-by-one')} ns | {get('one-by-one-over-dependent-load')} | {get('batch-16')} ns | "
                       f"{get('batch-over-load-and-swap')} | {get('bytes-per-key')} | {get('filling')} | {get('evicted-early')} |")
    return out + [
        "",
        "(Tables of 1,000 and 10,000 keys are mostly their fixed 1.7 MB of header, limiters and bans.)", "",
        "![cost against number of keys](figures-keys.svg)", "",
        "| 10 million keys | measured | goal |", "|---|---|---|",
        row(f, "one by one over a dependent load",
            "keys.narrow.10000000.one-by-one-over-dependent-load", "≤ 1.3 times"),
        row(f, "… filled to 75 %", "keys.narrow.10000000.roomy.one-by-one-over-dependent-load",
            "≤ 1.3 times"),
        row(f, "batches of 16 over load + swap", "keys.narrow.10000000.batch-over-load-and-swap",
            "≤ 2.5 times"),
        row(f, "… filled to 75 %", "keys.narrow.10000000.roomy.batch-over-load-and-swap",
            "≤ 2.5 times"),
        row(f, "a new key in a full table of 1,000,000, gcra", "take.full.gcra"),
        row(f, "… a sliding window of 10 buckets", "take.full.window-10"),
        row(f, "… of 60 buckets", "take.full.window-60"),
        row(f, "bytes a key, wide", "keys.wide.10000000.bytes-per-key", "≤ 40 bytes"),
        row(f, "bytes a key, narrow", "keys.narrow.10000000.bytes-per-key", "≤ 21 bytes"),
    ]


def rules(f):
    return ["A request of five attributes, to which three rules apply: by address, by path and account, by",
            "organisation. The other rules look for other paths, prefixes, organisations and networks. Unless",
            "stated, attribute names are resolved once (`weir_attribute`).", ""] + GOALS + [
        row(f, "check, 1 rule, and it applies", "check.rules.1"),
        row(f, "check, 3 rules, and all apply", "check.rules.3"),
        row(f, "check, 100 rules, 3 apply", "check.rules.100"),
        row(f, "check, 100 rules over 3", "check.rules.100.ratio", "≤ 1.2 x"),
        row(f, "check, 10,000 rules, 3 apply", "check.rules.10000"),
        row(f, "check, 10,000 rules over 3", "check.rules.10000.ratio", "≤ 1.2 x"),
        row(f, "4,096 different requests in turn, 3 rules", "check.varied.3"),
        row(f, "the same, 100 rules over 3", "check.varied.100.ratio"),
        row(f, "the same, 10,000 rules over 3", "check.varied.10000.ratio"),
        row(f, "check, 3 rules, attributes by their names", "check.by_name"),
        row(f, "three bare takes on the same keys", "check.three_takes"),
        row(f, "check, 3 rules, minus the three takes", "check.over_takes", "≤ 60 ns"),
        row(f, "check, 3 rules over the three takes", "check.takes.ratio", "≤ 2 x"),
        row(f, "… in instructions", "check.instructions-over-takes", "≤ 2 times"),
        row(f, "check, 3 rules, instructions", "check.check.instructions"),
        row(f, "check, one of the 3 with a sliding window, over token buckets only",
            "check.mixed.ratio", "≤ 1.5 x"),
        row(f, "… in instructions", "check.mixed.instructions-over-check", "≤ 1.5 times"),
        row(f, "check, refused", "check.refused"),
        row(f, "check, 3 rules, no lists", "check.lists.0"),
        row(f, "check, 3 rules, lists of 100,000 entries", "check.lists.100000"),
        row(f, "check, lists of 100,000 entries over none", "check.lists.ratio", "≤ 1.2 x"),
        row(f, "check, refused by a list of 100,000 entries", "check.denied"),
        row(f, "check, let through by a list of 100,000 entries", "check.allowed"),
    ]


def lists(f):
    """The figures of bench-lists, by the size of the list."""
    out = ["`hot` asks one value repeatedly, `random` many in turn, half of them on the list;",
           "`create` makes the whole list.", "",
           "| what | measured |", "|---|---|"]
    return (out + [f"| {name[6:]} | {number(value)} {unit} |" for name,
                   (value, unit) in f.items() if name.startswith("lists.")])


def logs(f):
    return GOALS + [
        row(f, "a line of the combined format, to attributes", "log.combined.line"),
        row(f, "a line of JSON, to attributes", "log.json.line"),
        row(f, "JSON, walked", "log.json.walk"),
    ]


def replay(f):
    count = f["replay.lines"][0]
    out = [f"`weir replay` on a log of {count:,.0f} lines (`bench/replay.sh`): two rules in force,",
           "one in shadow, a deny list, 20,000 clients.", "",
           "| log | CPU | clock | lines a second of CPU | memory at most |",
           "|---|---|---|---|---|"]
    for text, base in (("plain", "replay"), ("packed with gzip", "replay.gz")):
        if f"{base}.cpu" in f:
            get = lambda what: "%s %s" % (number(f[f"{base}.{what}"][0]), f[f"{base}.{what}"][1])
            out.append(f"| {text} | {get('cpu')} | {get('wall')} | {count / f[base + '.cpu'][0]:,.0f} | {get('memory')} |")
    return out


def serve(f):
    """CL.THROTTLE beside redis-server, rules beside CL.THROTTLE, HTTP beside nginx."""
    out = ["The server has one core, the load generator (redis-benchmark, wrk) the other; 50 connections; a",
           "million random keys, or one hot key. Ratios are the server's CPU per request, ours over theirs,",
           "measured by turns in one run.", "",
           "| | pipeline 1 | 16 | 64 |", "|---|---|---|---|"]
    seen = []
    for name in f:
        found = re.fullmatch(r"serve\.(.+)\.p(\d+)\.cpu", name)
        if found and found.group(1) not in seen:
            seen.append(found.group(1))
    for what in seen:
        def cell(p, k):
            name = f"serve.{what}.p{p}.{k}"
            return number(f[name][0]) if name in f else "-"

        out.append(f"| {what} | " + " | ".join(f"{cell(p, 'cpu')} s/million, {cell(p, 'rate')}/s"
                                               for p in (1, 16, 64)) + " |")
    ratios = [("CL.THROTTLE against INCR, random keys, P=1", "throttle-incr.random.p1", "≤ 0.85"),
              ("… P=16", "throttle-incr.random.p16", "≤ 0.42"),
              ("… P=64", "throttle-incr.random.p64", "≤ 0.2"),
              ("… one hot key, P=64", "throttle-incr.hot.p64", ""),
              ("CL.THROTTLE against EVALSHA token bucket, P=1", "throttle-token-bucket.random.p1",
               "≤ 0.357"), ("… P=16", "throttle-token-bucket.random.p16", "≤ 0.0588"),
              ("… P=64", "throttle-token-bucket.random.p64", "≤ 0.0222"),
              ("CL.THROTTLE against throttlecrab, P=1", "throttle-throttlecrab.random.p1", ""),
              ("… P=16", "throttle-throttlecrab.random.p16", ""),
              ("… P=64", "throttle-throttlecrab.random.p64", ""),
              ("WEIR.CHECK, 1,000 rules of which 3 apply, against CL.THROTTLE, P=64",
               "check-throttle.random.p64", "≤ 2"),
              ("HTTP check against nginx's return 200", "http-check-nginx", "≤ 1")]
    out += [""] + GOALS + [row(f, text, "serve.ratio." + name, goal) for text, name, goal in ratios]
    return out + [
        row(f, "instructions of a pipelined CL.THROTTLE, all of user space",
            "serve.instructions.throttle", "≤ 1000"),
        row(f, "instructions of a pipelined WEIR.CHECK, 1,000 rules", "serve.instructions.check"),
        row(f, "p99 with 8 connections, unpipelined: Weir", "serve.latency.weir.p99"),
        row(f, "… redis INCR", "serve.latency.redis.p99"),
    ]


def guards(f):
    """Enter and exit, beside Sentinel, Resilience4j and Netflix's limiter; a real server at ten
    times its capacity."""
    out = ["`weir_enter` and `weir_exit` in one thread; the time is supplied and runs as at 10,000 calls a",
           "second. `everything` is permits, a breaker over a time window and the adaptive limit `weir`. Sentinel",
           "has a rule by thread count and one by slow-call ratio, Resilience4j a semaphore bulkhead and a",
           "breaker over a time window. Netflix's concurrency-limits has permits alone, fixed or by",
           "Gradient2: no breaker, leases or times. It and Resilience4j count in a word of their own process,",
           "and keep no record of who is at work.", ""] + GOALS + [
        row(f, "enter + exit, permits", "guard.permits"),
        row(f, "… cheaper than Netflix's, fixed", "guard.permits.cheaper-than-netflix"),
        row(f, "enter + exit, permits by key", "guard.key", "≤ 60 ns"),
        row(f, "enter + exit, permits and breaker", "guard.breaker"),
        row(f, "enter + exit, everything", "guard.everything", "≤ 100 ns"),
        row(f, "… instructions", "guard.everything.instructions"),
        row(f, "… in shared memory", "guard.shared"),
        row(f, "… and the table's clock read twice", "guard.everything.clock"),
        row(f, "… cheaper than Sentinel's entry + exit", "guard.cheaper-than-sentinel",
            "≥ 5 times"),
        row(f, "… cheaper than Resilience4j's bulkhead + breaker",
            "guard.cheaper-than-resilience4j", "≥ 1 times"),
        row(f, "… the clock read twice on both sides, cheaper than Resilience4j's",
            "guard.clock.cheaper-than-resilience4j"),
        row(f, "… likewise, cheaper than Netflix's Gradient2 without a breaker",
            "guard.clock.cheaper-than-netflix"),
        row(f, "permits and breaker, cheaper than Resilience4j's bulkhead + breaker",
            "guard.breaker.cheaper-than-resilience4j"),
        row(f, "refused, all permits out", "guard.refused.busy", "≤ 8 ns"),
        row(f, "… cheaper than Sentinel", "guard.refused.busy.cheaper-than-sentinel"),
        row(f, "… cheaper than Resilience4j", "guard.refused.busy.cheaper-than-resilience4j"),
        row(f, "… cheaper than Netflix", "guard.refused.busy.cheaper-than-netflix"),
        row(f, "refused, all permits of the key out", "guard.refused.key"),
        row(f, "refused, breaker open", "guard.refused.open"),
        row(f, "… cheaper than Sentinel", "guard.refused.open.cheaper-than-sentinel"),
        row(f, "… cheaper than Resilience4j", "guard.refused.open.cheaper-than-resilience4j"),
        row(f, "two threads, a guard each, speed-up", "guard.threads.two-guards.speed-up"),
        row(f, "two threads, one guard, all together", "guard.threads.one-guard"),
        "", "| peer | measured |", "|---|---|"]
    out += [f"| {name[6:]} | {number(value)} {unit} |" for name,
            (value, unit) in f.items()
            if name.startswith(("guard.sentinel.", "guard.resilience4j.", "guard.netflix."))]
    return out + guarded_server(f) + simulated(f)


def guarded_server(f):
    """The table of bench/guard/run.py."""
    if "guard.http.capacity" not in f:
        return []
    def get(who, what):
        name = f"guard.http.{who}.{what}"
        return number(f[name][0]) if name in f else "-"

    out = ["",
           "A real server (`bench/guard/real-server.c`): four workers, 20 ms each, %s requests a "
           "second" % number(f["guard.http.capacity"][0]),
           "when nobody waits (p99 %s ms). 2,000 clients ask once a second each, ten times that; in the"
           % number(f["guard.http.unloaded.p99"][0]),
           "last row refused clients ask again at once. Goodput is answers within a second.", "",
           "| | goodput, of capacity | p50 | p99 | answered | refused | limit found |",
           "|---|---|---|---|---|---|---|"]
    for text, who in (("without a guard", "plain"), ("with a guard", "guard"),
                      ("… refused clients ask at once", "storm")):
        out.append(f"| {text} | {get(who, 'goodput')} % | {get(who, 'p50')} ms | {get(who, 'p99')} ms | {get(who, 'answered')}/s | {get(who, 'refused')}/s | {get(who, 'limit')} |")
    return out + [""] + GOALS + [row(f, "goodput at ten times the capacity, guarded",
                                     "guard.http.guard.goodput", "≥ 95 % of capacity")]


def simulated(f):
    """The goals of bench/guard/scenarios.py."""
    return ["",
            "On virtual time (`weir sim overload-10x`; [the other scenarios](guards-figures.md)):",
            ""] + GOALS + [
        row(f, "overload 10×, without control, goodput", "guard.sim.overload-10x.none.goodput"),
        row(f, "overload 10×, the default controller, goodput",
            "guard.sim.overload-10x.weir.goodput", "≥ 95 %"),
        row(f, "… p99 of the admitted over that of the work alone",
            "guard.sim.overload-10x.weir.p99", "≤ 2 times"),
        row(f, "the most it is behind the best published one in any scenario, goodput",
            "guard.sim.behind-best", "≤ 0 points"),
    ]


REDIS_ROWS = [
    ("memory of a key of the module, more than of a counter above 9,999",
     "redis.memory.module.over-counter", "≤ 40 bytes"),
    ("… than of one up to 9,999, which Redis shares", "redis.memory.module.over-small-counter",
     "≤ 40 bytes"),
    ("cluster of 1 master, CPU per decision", "redis.cluster.1.cpu", ""),
    ("… decisions a second with a core for each master", "redis.cluster.1.rate", ""),
    ("cluster of 2 masters, CPU per decision", "redis.cluster.2.cpu", ""),
    ("… decisions a second with a core for each master", "redis.cluster.2.rate", ""),
    ("cluster of 3 masters, CPU per decision", "redis.cluster.3.cpu", ""),
    ("… decisions a second with a core for each master", "redis.cluster.3.rate", ""),
]


def redis_ratio(name):
    """"module.over-incr.p1" for readers."""
    ours, theirs, pipeline = name.split(".")
    return f"{ours}, {theirs.replace('-', ' ', 1)}, P = {pipeline[1:]}"


def redis(f):
    """The table of bench/redis/run.py."""
    def get(who, pipeline):
        name = f"redis.{who}.p{pipeline}.cpu"
        return number(f[name][0]) if name in f else "-"

    out = ["CPU of redis-server per decision in us, 100,000 keys ([what is what](redis.md)):", "",
           "| | P = 1 | P = 16 | P = 64 |", "|---|---|---|---|"]
    for who in ("incr", "incr-ttl", "module", "cell", "usual-bucket", "script-bucket",
                "usual-window", "script-window", "usual-log", "script-log"):
        out.append(f"| {who} | {get(who, 1)} | {get(who, 16)} | {get(who, 64)} |")
    ratios = [("module.over-incr.p1", "≤ 1.1 times"), ("module.over-incr-ttl.p64", "≤ 2 times"),
              ("module.over-cell.p64", "≤ 0.6 times"),
              ("module.over-usual-bucket.p64", "≤ 0.2 times"),
              ("script-bucket.over-usual-bucket.p64", "≤ 0.6 times"),
              ("script-window.over-usual-window.p64", "≤ 1.5 times"),
              ("script-log.over-usual-log.p64", "≤ 1 times")]
    rows = [row(f, redis_ratio(name), "redis.ratio." + name, goal)
            for name, goal in ratios if "redis.ratio." + name in f]
    rows += [row(f, label, name, goal) for label, name, goal in REDIS_ROWS if name in f]
    return out + [""] + GOALS + rows


def peers(f):
    return ["| peer | measured |", "|---|---|"] + [
        f"| {name[5:]} | {number(value)} {unit} |" for name,
        (value, unit) in f.items() if name.startswith("peer.")]


SECTIONS = [  # title, beginnings of the names of its figures, its lines
    ("One decision", ("step.", "take.", "hash.", "threads."), decision),
    ("Every algorithm's bare step", ("step.",), steps),
    ("Many keys", ("keys.",), many_keys),
    ("Rules", ("check.",), rules),
    ("Lists", ("lists.",), lists),
    ("Reading logs", ("log.",), logs),
    ("Replaying logs", ("replay.",), replay),
    ("The server", ("serve.",), serve),
    ("Redis", ("redis.",), redis),
    ("Guards", ("guard.",), guards),
    ("Goals not met", (), None),
    ("The peers", ("peer.",), peers),
]

HEAD = """# Figures

Made by `make bench` and `scripts/figures.py`: CPU time, medians of five rounds. Each section comes
from one run, with the peers in it. The machine has two virtual cores of an AMD EPYC and is shared:
ratios and instruction counts are reliable, single times vary by 10 to 20 %. Ratios depend on the
processor too: on the one that was measured before it a bare step took 1.4 times as long, and an
enter with its exit, mostly locked operations, 0.65 times.
"""


def split(page):
    """{title: text} of a page's sections."""
    parts = re.split(r"^## (.*)\n", page, flags=re.M)
    return {title: text.strip("\n") for title, text in zip(parts[1::2], parts[2::2])}


def missed(sections):
    """The rows of all tables that miss their goal."""
    out = []
    for text in sections.values():
        for what, value, unit, sign, goal in re.findall(r"^\| ([^|]*) \| ([\d.,e+-]+) ?([^|]*) \| ([≤≥]) ([\d.]+)[^|]*\|$", text, re.M):
            value, goal = float(value.replace(",", "")), float(goal)
            if value > goal if sign == "≤" else value < goal:
                out.append(f"* {what}: {number(value)} {unit}, goal {sign} {goal:g} {unit}")
    return out


def page(figures, old):
    """The whole page, from the new figures and, where there are none, the old page."""
    sections = {}
    for title, begins, make in SECTIONS:
        if any(name.startswith(begins) for name in figures) and make:
            sections[title] = "\n".join(make(figures))
        elif title in old or make is None:
            sections[title] = old.get(title, "")
    sections["Goals not met"] = ""
    sections["Goals not met"] = "\n".join(missed(sections) or ["None."])
    return HEAD + "".join(f"\n## {title}\n\n{text}\n" for title, text in sections.items())


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: figures.py FIGURES.TSV")
    if not os.path.exists(sys.argv[1]):
        sys.exit(f"figures: there is no {sys.argv[1]}; run make bench first")
    figures = read(sys.argv[1])
    path = os.path.join(TOP, "docs", "figures.md")
    old = split(open(path).read()) if os.path.exists(path) else {}
    if any(name.startswith("keys.") for name in figures):
        plot(figures, os.path.join(TOP, "docs", "figures-keys.svg"))
    open(path, "w").write(page(figures, old))
    print("figures: docs/figures.md, docs/figures-keys.svg")


if __name__ == "__main__":
    main()
