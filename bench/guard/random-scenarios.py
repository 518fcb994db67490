#!/usr/bin/env python3
"""random-scenarios.py BUILD [--held-out] [--count N] [--seeds N] [--worst N] [--peers FILE]

Weir's own controller in random scenarios of `weir sim`, beside the published ones and a fixed limit
that fits the backend.  Its constants are chosen on the first set of scenarios; --held-out takes
another set, which shows how it does where nobody has looked.  The same N gives the same scenarios.

    --count N     scenarios; default 200
    --seeds N     of each; default 2.  Figures are means over them
    --worst N     show the N that it is worst in, with their text; default 10
    --peers FILE  keep the figures of the others there: they do not change with our constants
"""
import argparse
import collections
import json
import math
import os
import random
import subprocess
import tempfile

PUBLISHED = ("aimd", "vegas", "gradient2")
ATTEMPTS = 250000  # in a trial, about


def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def time_of(seconds):
    return "%dus" % max(1, round(seconds * 1e6))


def work_of(rng, mean):
    """The law of the work, and a time that few requests need."""
    shape = rng.choice(("exponential", "exponential", "floor", "constant", "lognormal", "heavy",
                        "bimodal"))
    text = "shape: %s, mean: %s" % (
        {"floor": "exponential", "heavy": "lognormal"}.get(shape, shape), time_of(mean))
    if shape == "floor":
        return text + ", floor: " + time_of(mean * rng.uniform(0.2, 0.8)), 5 * mean
    if shape in ("lognormal", "heavy"):
        spread = rng.uniform(0.2, 1) if shape == "lognormal" else rng.uniform(1, 2)
        return text + ", spread: %.2f" % spread, mean * math.exp(2.3 * spread - spread ** 2 / 2)
    if shape == "bimodal":
        times = rng.uniform(3, 12)
        return text + ", slow: %s, slow_share: %.1f%%" % (
            time_of(mean * times), rng.uniform(1, 50 / times)), times * mean
    return text, 5 * mean if shape == "exponential" else mean


FAULTS = ("none", "none", "none", "none", "none", "slower", "drift", "silent", "workers", "cold",
          "errors", "drops", "burst", "waves", "retry", "loop")


class Scenario:
    def __init__(self, name, rng):
        self.name, self.length = name, rng.choice((60, 90, 120))
        self.workers = round(log_uniform(rng, 1, 256))
        self.load = log_uniform(rng, 0.3, 20)
        self.fault = rng.choice(FAULTS)
        rate = ATTEMPTS / self.length / (3 if self.fault in ("workers", "retry", "waves") else 1)
        least = min(2, max(0.001, self.load * self.workers / rate))
        self.mean = log_uniform(rng, least, max(least, 1))
        self.work, long = work_of(rng, self.mean)
        self.timeout = min(30, max(0.01, long * log_uniform(rng, 1.5, 20)))
        self.target = self.mean * log_uniform(rng, 0.5, 15) if rng.random() < 0.5 else None
        self.contention = log_uniform(rng, 0.001, 0.4) / self.workers if rng.random() < 0.6 else 0
        self.even = rng.random() < 0.15
        self.text = self.write(rng)

    def changes(self, rng):
        start = self.length * rng.uniform(0.3, 0.5)
        end = start + self.length * rng.uniform(0.1, 0.4)
        what = {"slower": "slower: %.1fx" % log_uniform(rng, 1.5, 10),
                "drift": "drift: %.1fx" % log_uniform(rng, 1.5, 5),
                "silent": "silent: true",
                "errors": "errors: %d%%" % rng.uniform(5, 100),
                "workers": "workers: %d" % max(1, self.workers * log_uniform(rng, 0.25, 4))}
        if self.fault not in what:
            return ""
        return "  changes: [{ from: %dms, to: %dms, %s }]\n" % (1000 * start, 1000 * end,
                                                               what[self.fault])

    def rate(self, rng):
        peak = log_uniform(rng, 0.5, 5)
        if self.fault == "waves":
            return "rate: [%.3fx, { at: 10s, rate: %.3fx, over: 20s }, " \
                "{ at: 30s, rate: %.3fx, over: 20s }]" % (self.load / 2, peak, self.load / 2)
        if self.fault == "burst":
            return "rate: %.3fx, burst: { every: 10s, for: %dms, rate: %.3fx }" % (
                min(self.load, 1), rng.uniform(100, 2000), 2 * peak)
        if self.fault == "loop":
            return "loop: { clients: %d, think: %s }" % (
                max(1, self.workers * self.load * 2), time_of(self.mean))
        return "rate: %.3fx" % self.load

    def write(self, rng):
        backend = "backend:\n  workers: %d\n  work: { %s }\n" % (self.workers, self.work)
        if self.contention:
            backend += "  contention: %.4f%%\n" % (100 * self.contention)
        if self.fault == "cold":
            backend += "  cold: { factor: %.1fx, requests: %d }\n" % (
                rng.uniform(2, 8), max(1, 10 * self.workers / self.mean))
        if self.fault == "drops":
            backend += "  queue: %d\n" % rng.choice((0, 0, self.workers // 2, 2 * self.workers))
        client = "%s, timeout: %s" % (self.rate(rng), time_of(self.timeout))
        client += ", arrival: even" if self.even and self.fault != "loop" else ""
        if self.fault == "retry":
            client += ", retry: { times: %d, after: %s, jitter: true }" % (
                rng.randint(1, 3), time_of(max(0.05, self.mean)))
        guard = "guard: { target: %s }\n" % time_of(self.target) if self.target else ""
        return "length: %ds\nwarmup: %ds\n%s%sclients: [{ %s }]\n%s" % (
            self.length, self.length // 4, backend, self.changes(rng), client, guard)

    def fitting(self):
        """A limit set by somebody who knows the backend."""
        return "fixed:%d" % (self.workers + 2 + round(1.5 * math.sqrt(self.workers)))


def run(build, scenarios, controllers, seeds):
    """Means by scenario and controller: goodput, p99, share of attempts refused."""
    sums = collections.defaultdict(lambda: [0, 0, 0])
    with tempfile.TemporaryDirectory() as place:
        for scenario in scenarios:
            path = os.path.join(place, scenario.name + ".yaml")
            with open(path, "w") as file:
                file.write(scenario.text)
            names = ",".join(c or scenario.fitting() for c in controllers)
            for seed in range(1, seeds + 1):
                out = subprocess.run(
                    [os.path.join(build, "weir"), "sim", "--json", "--seed", str(seed),
                     "--controller", names, path], stdout=subprocess.PIPE, check=True).stdout
                for trial in json.loads(out):
                    who = "fitting" if ":" in trial["controller"] else trial["controller"]
                    m = trial["measured"]
                    for i, value in enumerate((
                            trial["goodput_percent"], trial["p99_ms"],
                            100 * m["busy"] / max(1, m["requests"] + m["retries"]))):
                        sums[scenario.name + " " + who][i] += value / seeds
    return dict(sums)


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def tell(title, values):
    print("%-44s mean %+6.2f  5%% %+6.1f  25%% %+6.1f  median %+6.1f  worst %+6.1f" % (
        title, sum(values) / len(values), quantile(values, 0.05), quantile(values, 0.25),
        quantile(values, 0.5), min(values)))


def report(scenarios, figures, worst):
    def goodput(scenario, who):
        return figures[scenario.name + " " + who][0]

    def gap(scenario, others):
        return goodput(scenario, "weir") - max(goodput(scenario, o) for o in others)

    print("%d scenarios; points of goodput" % len(scenarios))
    for who in PUBLISHED + ("fitting",):
        tell("ahead of %s" % who, [gap(s, [who]) for s in scenarios])
    tell("ahead of the best published of each", [gap(s, PUBLISHED) for s in scenarios])
    for fault in sorted(set(FAULTS)):
        some = [gap(s, PUBLISHED) for s in scenarios if s.fault == fault]
        if some:
            tell("  %s (%d)" % (fault, len(some)), some)
    calm = [s for s in scenarios if s.fault == "none" and s.load <= 0.75]
    if calm:
        print("refused with load of at most 0.75 and no fault (%d), %%:" % len(calm), end="")
        for who in ("weir",) + PUBLISHED:
            refused = [figures[s.name + " " + who][2] for s in calm]
            print("  %s %.3f, most %.2f" % (who, sum(refused) / len(refused), max(refused)), end="")
        print()
    for s in sorted(scenarios, key=lambda s: gap(s, PUBLISHED))[:worst]:
        print("\n%s: %+.1f; %s\n%s" % (s.name, gap(s, PUBLISHED), ", ".join(
            "%s %.1f (p99 %.0f ms)" % (who, *figures[s.name + " " + who][:2])
            for who in ("weir", "fitting") + PUBLISHED), s.text), end="")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--worst", type=int, default=10)
    parser.add_argument("--peers")
    a = parser.parse_args()
    which = "held-out" if a.held_out else "chosen"
    scenarios = [Scenario("%s-%d" % (which, i), random.Random("%s %d" % (which, i)))
                 for i in range(a.count)]
    if a.peers and os.path.exists(a.peers):
        with open(a.peers) as file:
            figures = json.load(file)
    else:
        figures = run(a.build, scenarios, PUBLISHED + ("",), a.seeds)
        if a.peers:
            with open(a.peers, "w") as file:
                json.dump(figures, file)
    figures.update(run(a.build, scenarios, ("weir",), a.seeds))
    report(scenarios, figures, a.worst)


main()
