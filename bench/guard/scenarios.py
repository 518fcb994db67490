#!/usr/bin/env python3
"""scenarios.py BUILD [DOCS] -- every scenario of `weir sim`, and the cases beside this file, with
every controller and ten seeds, with a target and without; and loads around the capacity (loads.py):
docs/guards-figures.md, docs/guards-load.svg.  What is said there about goals that are not met is
written by hand: not-met.md.

The trials are on virtual time and seeded: the page is the same on every machine.  What has a goal
is also printed, name<TAB>value<TAB>unit:

    guard.sim.overload-10x.none.goodput    in % of what was possible; nobody is refused
    guard.sim.overload-10x.weir.goodput    with Weir's own controller
    guard.sim.overload-10x.weir.p99        of the admitted, over the p99 of the work alone
    guard.sim.behind-best                  the most that Weir's own is behind the best published
    controller in any scenario of weir sim, in points of goodput
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import loads

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
OWN = "weir"
PUBLISHED = ("aimd", "vegas", "gradient2")
DRAWN = "overload-10x"
SEEDS = 10

HEAD = """# Guards: scenarios and controllers

Made by `make bench` (`bench/guard/scenarios.py`) from `weir sim --json`: the real guard on virtual
time, in front of a simulated backend; the same seeds give the same page on every machine. Figures
are means of ten seeds, or the least of them. `weir sim NAME` shows one scenario in full,
`weir sim NAME --svg FILE` draws it; the last ten are files in `bench/guard/cases`. `none` lets
everybody in; `fixed` is a limit of twice the workers there are at the beginning, as set by somebody
who knows them.
"""


def sim(build, *words):
    return subprocess.run([os.path.join(build, "weir"), "sim", *words], stdout=subprocess.PIPE,
                          text=True, check=True).stdout


def scenarios():
    """Files: those of weir sim, then the cases."""
    return (sorted(glob.glob(os.path.join(TOP, "examples", "sim", "*.yaml")))
            + sorted(glob.glob(os.path.join(TOP, "bench", "guard", "cases", "*.yaml"))))


def has_target(path):
    with open(path) as file:
        return "target:" in file.read()


def without_target(path, place):
    """A copy whose guard has no target."""
    with open(path) as file:
        text = re.sub(r"guard: \{ target: \w+ \}\n|guard:\n  target: \w+\n(?=\Z)", "", file.read())
    copy = os.path.join(place, os.path.basename(path))
    with open(copy, "w") as file:
        file.write(re.sub(r"\n  target: \w+", "", text))
    return copy


def run(build, paths, controllers):
    trials = []
    for path in paths:
        names = [c for c in controllers if c != "percentile" or has_target(path)]
        for seed in range(1, SEEDS + 1):
            trials += json.loads(sim(build, "--json", "--seed", str(seed), "--controller",
                                     ",".join(names), path))
    return Trials(trials, controllers)


class Trials:
    def __init__(self, trials, controllers):
        self.by = {}
        for t in trials:
            name = os.path.basename(t["scenario"])
            self.by.setdefault((name, t["controller"]), []).append(t)
        self.scenarios = list(dict.fromkeys(name for name, _ in self.by))
        self.controllers = controllers

    def get(self, scenario, controller, what, of=lambda v: sum(v) / len(v)):
        values = [t[what] for t in self.by.get((scenario, controller), [])]
        if values and isinstance(values[0], str):
            return values[0]
        values = [v for v in values if v is not None]
        return of(values) if values else None

    def best(self, scenario, what, controllers, choose=max, **of):
        values = [self.get(scenario, c, what, **of) for c in controllers]
        values = [v for v in values if v is not None]
        return choose(values) if values else None


def cell(value, form, marked):
    text = "-" if value is None else form % value
    return "**%s**" % text if marked else text


def table(trials, what, form, best=None, some=None, **of):
    """Scenarios by controllers; what is best is bold."""
    out = ["| scenario | " + " | ".join(trials.controllers) + " |",
           "|---|" + "---|" * len(trials.controllers)]
    for scenario in some or trials.scenarios:
        top = trials.best(scenario, what, trials.controllers, best, **of) if best else None
        values = [trials.get(scenario, c, what, **of) for c in trials.controllers]
        out.append("| %s | " % scenario
                   + " | ".join(cell(v, form,
                                     v is not None and top is not None and form % v == form % top)
                                     for v in values) + " |")
    return out


def behind(trials, scenario):
    """Points of goodput that Weir's own is behind the best published one; below 0: ahead."""
    return (trials.best(scenario, "goodput_percent",
                        PUBLISHED) - trials.get(scenario, OWN, "goodput_percent"))


def against(trials):
    """Weir's own beside the best of the published ones, and beside nothing."""
    out = ["| scenario | without control | best published | weir | ahead by | p99, weir | p99 of the work alone |", "|---|---|---|---|---|---|---|"]
    for s in trials.scenarios:
        best = trials.best(s, "goodput_percent", PUBLISHED)
        who = [c for c in PUBLISHED if trials.get(s, c, "goodput_percent") == best]
        out.append("| %s | %s | %.1f %% (%s) | %.1f %% | %+.1f | %s | %s |" % (
            s, cell(trials.get(s, "none", "goodput_percent"), "%.1f %%", False), best,
            ", ".join(who), trials.get(s, OWN, "goodput_percent"), -behind(trials, s),
            cell(trials.get(s, OWN, "p99_ms"), "%.0f ms", False),
            cell(trials.get(s, OWN, "work_p99_ms"), "%.0f ms", False)))
    return out


# Scenario, without a target, the least mean and minimum wanted; None: the best published.
WANTED = (("load-0.9", False, None, None), ("load-1.1", False, None, None),
          ("long-work", False, 99, None), ("drops-at-once", False, 96.5, None),
          ("one-worker", False, 97, None), ("cold-cache", True, 92, 88),
          ("deadline", False, 94, None), ("slow-work", False, 95.6, None),
          ("load-20x", False, 99, None), ("day-and-night", False, 98, None))


def reaches(trials, bare, found):
    """The goals, and how far Weir's own is from them."""
    out = ["| what | mean | least or most of a seed | goal | |", "|---|---|---|---|---|"]
    for text, some, most in (("refused at 0.5 to 0.7x, %, the worst number of workers",
                              (0.5, 0.6, 0.7), 0.1),
                             ("refused at 0.8x, %, likewise", (0.8,), 1)):
        worst = max((found[OWN, w, load][0] for w in loads.WORKERS for load in some),
                    key=lambda v: sum(v) / len(v))
        mean = sum(worst) / len(worst)
        out.append("| %s | %.2f | %.1f | ≤ %g | %s |" % (text, mean, max(worst), most,
                                                       "met" if mean <= most else "not met"))
    for name, without, least_mean, least in WANTED:
        t = bare if without else trials
        best = t.best(name, "goodput_percent", PUBLISHED)
        mean, low = (t.get(name, OWN, "goodput_percent"),
                     t.get(name, OWN, "goodput_percent", of=min))
        met = mean >= (least_mean or best) and low >= (least or 0)
        goal = ("≥ %g" % least_mean if least_mean else "≥ %.1f, the best published" % best) + (
            ", least %g" % least if least else "")
        out.append("| %s, goodput, %% | %.1f | %.1f | %s | %s |" % (
            name + (" without a target" if without else ""), mean, low, goal,
            "met" if met else "not met"))
    with open(os.path.join(TOP, "bench", "guard", "not-met.md")) as file:
        return out + [""] + file.read().rstrip().split("\n")


def about(trials):
    return ["* **%s**: %s" % (s, trials.get(s, trials.controllers[0], "about"))
            for s in trials.scenarios]


def page(trials, bare, found):
    fair = [s
            for s in trials.scenarios
            if trials.best(s, "unfairness", trials.controllers) is not None]
    sections = [
        ("The scenarios", about(trials)),
        ("Weir's own and the best of the others", against(trials)),
        ("Goals", reaches(trials, bare, found)),
        ("Goodput",
         ["Answers in time, as a percentage of what the backend could have answered.",
          ""] + table(trials, "goodput_percent", "%.1f", max)),
        ("Goodput, least of ten seeds", table(trials, "goodput_percent", "%.1f", max, of=min)),
        ("Goodput without a target", table(bare, "goodput_percent", "%.1f", max)),
        ("Goodput without a target, least of ten seeds",
         table(bare, "goodput_percent", "%.1f", max, of=min)),
        ("Load", loads.tables(found)),
        ("p99",
         ["Admitted requests, in ms, as their clients see it.",
          ""] + table(trials, "p99_ms", "%.0f")),
        ("Wasted work",
         ["Share of the workers' time, in %, spent for clients that had given up or for errors.",
          ""] + table(trials, "wasted_percent", "%.1f", min)),
    ]
    if fair:
        sections.append(("Unfairness",
                         ["Between classes of users; 1 is fair.",
                          ""] + table(trials, "unfairness", "%.2f", None, fair)))
    sections.append(("Ten times too much, over time",
                     ["![overload-10x without control and with it](picture-sim.svg)"]))
    return (HEAD + "".join("\n## %s\n\n%s\n" % (title, "\n".join(lines)) for title,
                           lines in sections))


def say(name, value, unit):
    if value is not None:
        print("guard.sim.%s\t%.4g\t%s" % (name, value, unit))


def tell(trials):
    say(DRAWN + ".none.goodput", trials.get(DRAWN, "none", "goodput_percent"), "%")
    say(DRAWN + ".weir.goodput", trials.get(DRAWN, OWN, "goodput_percent"), "%")
    p99, work = trials.get(DRAWN, OWN, "p99_ms"), trials.get(DRAWN, OWN, "work_p99_ms")
    if p99 and work:
        say(DRAWN + ".weir.p99", p99 / work, "times")
    built_in = [os.path.basename(p)[:-5] for p in scenarios() if "examples" in p]
    say("behind-best", max(behind(trials, s) for s in built_in), "points")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: scenarios.py BUILD [DOCS]")
    build, docs = sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else os.path.join(TOP, "docs")
    controllers = ["none", "fixed"] + [c for c in loads.CONTROLLERS if c != "fixed"]
    try:
        trials = run(build, scenarios(), controllers)
        with tempfile.TemporaryDirectory() as place:
            bare = run(build, [without_target(p, place) for p in scenarios() if has_target(p)],
                       [c for c in controllers if c != "percentile"])
        found = loads.run(build, SEEDS)
    except subprocess.CalledProcessError:
        print("skipped: the scenarios of guards: weir sim has failed", file=sys.stderr)
        return
    loads.draw(found, os.path.join(docs, "guards-load.svg"))
    with open(os.path.join(docs, "guards-figures.md"), "w") as file:
        file.write(page(trials, bare, found))
    tell(trials)


main()
