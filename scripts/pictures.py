#!/usr/bin/env python3
"""pictures.py BUILD -- draws docs/picture-*.svg with the real code.

docs/picture-<algorithm>.svg and docs/picture-all.svg: BUILD/weir demo --csv (one key, one limit,
virtual time).  docs/picture-sim.svg: BUILD/weir sim, overload without a guard and with one.
docs/picture-replay.svg: BUILD/weir replay, a day of made traffic under the rules in docs/replay.md.
docs/picture-serve.svg is drawn by hand.  Plain SVG, colours for white and dark pages, the viewer's
own fonts.
"""
import csv
import os
import re
import subprocess
import sys
import tempfile

LIMIT, PERIOD_MS = 10, 1000  # of the scenario, WEIR__SCENARIO_LIMIT

TEXT, LINE, OFFERED = "#76808c", "#8b949e", "#8b949e"
ADMITTED, WAITED, BOUND = "#2f9e55", "#d08a17", "#d1495b"
FONT = 'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"'


def power_of_ten(n):
    return ["1", "10", "100", "1 k", "10 k", "100 k", "1 M", "10 M"][n]


class Series:
    """One algorithm's columns."""

    def __init__(self, name):
        self.name, self.time, self.offered, self.admitted, self.waited = name, [], [], [], []

    def add(self, row):
        self.time.append(int(row["time_ms"]))
        for column in ("offered", "admitted", "waited"):
            getattr(self, column).append(int(row[column]))

    def step_ms(self):
        return self.time[1] - self.time[0]

    def last_period(self):
        """Admitted in the period that ends with each column."""
        n = PERIOD_MS // self.step_ms()
        return [sum(self.admitted[max(0, i - n + 1) : i + 1]) for i in range(len(self.admitted))]

    def totals(self):
        text = "%d of %d passed" % (sum(self.admitted), sum(self.offered))
        return text + (", %d of them after a wait" % sum(self.waited) if any(self.waited) else "")


class Drawing:
    def __init__(self, width, height, title):
        self.parts = [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" '
            'role="img" %s font-size="13">' % (width, height, width, height, FONT),
            "<title>%s</title>" % title,
        ]

    def rect(self, x, y, width, height, fill, opacity=1.0):
        if height > 0:
            self.parts.append('<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s" '
                              'opacity="%.2f"/>' % (x, y, width, height, fill, opacity))

    def line(self, x1, y1, x2, y2, stroke=LINE, width=1.0, dash="", opacity=1.0):
        dash = ' stroke-dasharray="%s"' % dash if dash else ""
        self.parts.append(
            '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f" '
            'opacity="%.2f"%s/>' % (x1, y1, x2, y2, stroke, width, opacity, dash)
        )

    def text(self, x, y, text, anchor="start", fill=TEXT, size=0, bold=False):
        more = (' font-size="%d"' % size if size else "") + (' font-weight="600"' if bold else "")
        self.parts.append('<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s"%s>%s</text>'
                % (x, y, anchor, fill, more, text))

    def path(self, points, stroke, width=1.8):
        self.parts.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="%.1f"/>'
                % (" ".join("%.1f,%.1f" % p for p in points), stroke, width))

    def write(self, path):
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(self.parts + ["</svg>", ""]))


class Plot:
    """An area with its own scales: time across, a number up."""

    def __init__(self, drawing, series, x, y, width, height, most):
        self.d, self.s, self.x, self.y = drawing, series, x, y
        self.width, self.height, self.most = width, height, most
        self.span = series.time[-1] + series.step_ms()

    def across(self, ms):
        return self.x + self.width * ms / self.span

    def up(self, n):
        return self.y + self.height * (1 - n / self.most)

    def axes(self, ticks, seconds=True):
        for n in ticks:
            self.d.line(self.x, self.up(n), self.x + self.width, self.up(n),
                    opacity=0.6 if n == 0 else 0.25)
            self.d.text(self.x - 7, self.up(n) + 4, n, "end", size=12)
        for ms in range(0, self.span + 1, 1000):
            self.d.line(self.across(ms), self.y, self.across(ms), self.up(0) + 4, opacity=0.25)
            if seconds:
                self.d.text(self.across(ms), self.up(0) + 18, "%d s" % (ms // 1000), "middle",
                        size=12)

    def bars(self):
        s, wide = self.s, self.across(self.s.step_ms()) - self.across(0)
        for i, ms in enumerate(s.time):
            left, at_once = self.across(ms), s.admitted[i] - s.waited[i]
            self.d.rect(left + 0.5, self.up(s.offered[i]), wide - 1,
                    self.up(0) - self.up(s.offered[i]), OFFERED, 0.35)
            self.d.rect(left + 0.5, self.up(at_once), wide - 1, self.up(0) - self.up(at_once),
                    ADMITTED)
            self.d.rect(left + 0.5, self.up(s.admitted[i]), wide - 1,
                    self.up(at_once) - self.up(s.admitted[i]), WAITED)

    def steps(self, values):
        points = []
        for ms, value in zip(self.s.time, values):
            points += [(self.across(ms), self.up(value)),
                    (self.across(ms + self.s.step_ms()), self.up(value))]
        self.d.path(points, ADMITTED)

    def bound(self, n, label, values):
        """A line at n, its label in the middle of the longest stretch that stays well below it."""
        self.d.line(self.x, self.up(n), self.x + self.width, self.up(n), BOUND, 1.4, "5 4")
        best = run = (0, 0)
        for i, value in enumerate(values):
            run = (run[0], i + 1) if value < 0.8 * n else (i + 1, i + 1)
            best = run if run[1] - run[0] > best[1] - best[0] else best
        self.d.text(self.across(self.s.step_ms() * (best[0] + best[1]) / 2), self.up(n) - 5, label,
                "middle", BOUND, 12)


def legend(d, x, y, waits):
    entries = [(OFFERED, 0.35, "offered"), (ADMITTED, 1, "passed at once")]
    if waits:
        entries.append((WAITED, 1, "passed after a wait, drawn where it was used"))
    for colour, opacity, label in entries:
        d.rect(x, y - 10, 12, 12, colour, opacity)
        d.text(x + 18, y, label, size=12)
        x += 38 + 6.7 * len(label)


def round_up(n, step):
    return (n + step - 1) // step * step


def draw_one(series, most, most_in_period, path):
    d = Drawing(760, 372, "%s over one burst of traffic: %s" % (series.name, series.totals()))
    d.text(48, 22, series.name, bold=True, size=16)
    d.text(748, 22, series.totals(), "end")
    legend(d, 48, 44, any(series.waited))
    d.text(48, 72, "asks in each %d ms" % series.step_ms(), size=12)
    upper = Plot(d, series, 48, 80, 700, 130, most)
    upper.axes(range(0, most + 1, 2))
    upper.bars()
    d.text(48, 252, "passed in the last second", size=12)
    lower = Plot(d, series, 48, 262, 700, 80, most_in_period)
    lower.axes(range(0, most_in_period + 1, 10))
    lower.steps(series.last_period())
    lower.bound(LIMIT, "%d per second" % LIMIT, series.last_period())
    d.write(path)


def draw_all(all_series, most, path):
    columns, wide, high = 2, 372, 128
    rows = (len(all_series) + columns - 1) // columns
    d = Drawing(columns * wide + 16, rows * high + 56,
            "Every algorithm over the same burst of traffic")
    legend(d, 34, 20, True)
    for i, series in enumerate(all_series):
        x, y = 34 + i % columns * wide, 36 + i // columns * high
        d.text(x, y + 12, series.name, bold=True, size=14)
        d.text(x + wide - 38, y + 12, "%d of %d" % (sum(series.admitted), sum(series.offered)),
                "end", size=12)
        plot = Plot(d, series, x, y + 20, wide - 38, 72, most)
        plot.axes(range(0, most + 1, 4))
        plot.bars()
    d.text(34, rows * high + 48, "up: asks in each %d ms; across: time" % all_series[0].step_ms(),
            size=12)
    d.write(path)


def draw_sim(build, path):
    command = [os.path.join(build, "weir"), "sim", "overload-10x", "--controller", "none,weir",
            "--svg", path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def draw_replay(build, docs, path):
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(docs, "replay.md")) as page:
        log, rules = os.path.join(folder, "access.log"), os.path.join(folder, "rules.yaml")
        with open(rules, "w") as f:
            f.write(re.search("```yaml\n(.*?)```", page.read(), re.S).group(1))
        make = [sys.executable, os.path.join(here, "make-log.py"), log, "--lines", "200000",
                "--late", "3"]
        subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
        command = [os.path.abspath(os.path.join(build, "weir")), "replay", "--rules", "rules.yaml",
                "--svg", "picture.svg", log]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                cwd=folder)
        with open(os.path.join(folder, "picture.svg")) as made, open(path, "w") as f:
            f.write(made.read())


def read_series(build):
    out = subprocess.run([os.path.join(build, "weir"), "demo", "--csv"], check=True,
            stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for row in csv.DictReader(out.splitlines()):
        found.setdefault(row["algorithm"], Series(row["algorithm"])).add(row)
    return list(found.values())


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: pictures.py BUILD")
    docs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs")
    all_series = read_series(sys.argv[1])
    most = round_up(max(max(s.offered + s.admitted) for s in all_series), 2)
    most_in_period = round_up(max(max(s.last_period()) for s in all_series), 10)
    for series in all_series:
        draw_one(series, most, most_in_period, os.path.join(docs, "picture-%s.svg" % series.name))
    draw_all(all_series, most, os.path.join(docs, "picture-all.svg"))
    draw_sim(sys.argv[1], os.path.join(docs, "picture-sim.svg"))
    draw_replay(sys.argv[1], docs, os.path.join(docs, "picture-replay.svg"))
    print("%d pictures in docs/" % (len(all_series) + 3))


if __name__ == "__main__":
    main()
