"""loads.py -- loads around the capacity, by workers and controllers: tables and a drawing for the
page that scenarios.py writes."""
import json
import os
import subprocess
import tempfile

WORKERS = (1, 2, 4, 8, 16, 32, 64)
LOADS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3)
CONTROLLERS = ("fixed", "weir", "percentile", "aimd", "vegas", "gradient2")
DRAWN = (1, 4, 16, 64)
COLOURS = ("#888888", "#c0392b", "#8e44ad", "#27ae60", "#2980b9", "#e67e22")

SCENARIO = """length: 60s
warmup: 10s
backend: { workers: %d, work: 20ms }
clients: [{ rate: %.1fx, timeout: 2s }]
guard: { target: 250ms }
"""


def run(build, seeds):
    """By controller, workers and load: per cent refused, goodput; each a list by seed."""
    found = {}
    with tempfile.TemporaryDirectory() as place:
        names = {}
        for workers in WORKERS:
            for load in LOADS:
                name = "w%d-l%d" % (workers, round(load * 10))
                names[name] = (workers, load)
                with open(os.path.join(place, name + ".yaml"), "w") as file:
                    file.write(SCENARIO % (workers, load))
        for seed in range(1, seeds + 1):
            out = subprocess.run(
                [os.path.join(build, "weir"), "sim", "--json", "--seed", str(seed), "--controller",
                 ",".join(CONTROLLERS)] + [os.path.join(place, n + ".yaml") for n in names],
                stdout=subprocess.PIPE, check=True).stdout
            for t in json.loads(out):
                where = (t["controller"],) + names[os.path.basename(t["scenario"])]
                refused, goodput = found.setdefault(where, ([], []))
                refused.append(100 * t["measured"]["busy"] / max(1, t["measured"]["requests"]))
                goodput.append(t["goodput_percent"])
    return found


def mean(values):
    return sum(values) / len(values)


def table(found, which, cell):
    out = ["| controller | workers | " + " | ".join("%.1fx" % load for load in LOADS) + " |",
           "|---|---|" + "---|" * len(LOADS)]
    for controller in CONTROLLERS:
        for workers in WORKERS:
            out.append("| %s | %d | " % (controller, workers) + " | ".join(
                cell(found[controller, workers, load][which]) for load in LOADS) + " |")
    return out


def worst(found):
    """Below the capacity, the number of workers at which most are refused."""
    some = [load for load in LOADS if load < 1]
    out = ["| controller | " + " | ".join("%.1fx" % load for load in some) + " |",
           "|---|" + "---|" * len(some)]
    for controller in CONTROLLERS:
        cells = []
        for load in some:
            workers = max(WORKERS, key=lambda w: mean(found[controller, w, load][0]))
            refused = mean(found[controller, workers, load][0])
            cells.append("%.2f (%d)" % (refused, workers) if refused >= 0.005 else "0.00")
        out.append("| %s | %s |" % (controller, " | ".join(cells)))
    return out


def tables(found):
    return (["Poisson arrivals, exponential work of 20 ms, no contention, a target of 250 ms.", "",
             "![refused and goodput by load](guards-load.svg)", "",
             "Refused below the capacity, in %, at the number of workers (in brackets) that refuses "
             "most:", ""]
            + worst(found)
            + ["", "Refused, in %: mean, and the most of any seed.", ""]
            + table(found, 0, lambda v: "%.2f, %.1f" % (mean(v), max(v)))
            + ["", "Goodput: mean, and the least of any seed.", ""]
            + table(found, 1, lambda v: "%.1f, %.1f" % (mean(v), min(v))))


# Title, which figure, the least and the most that fit, numbers beside the axis.
PANELS = (("refused, %", 0, 0, 50, (0, 25, 50)), ("goodput, %", 1, 60, 105, (60, 80, 100)))


def panel(found, left, top, workers, row):
    """One drawing of 220 by 160: a line for each controller."""
    title, which, low, high, ticks = row
    width, height = 220, 160

    def x(load):
        return left + width * (load - LOADS[0]) / (LOADS[-1] - LOADS[0])

    def y(value):
        return top + height * (1 - (value - low) / (high - low))

    out = ['<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#999"/>'
           % (left, top, width, height)]
    for value in ticks:
        out.append('<text x="%d" y="%.0f" text-anchor="end">%g</text>' % (left - 4, y(value) + 4,
                                                                        value))
    for load in LOADS[::2]:
        out.append('<text x="%.0f" y="%d" text-anchor="middle">%.1f</text>'
                   % (x(load), top + height + 14, load))
    out.append('<text x="%d" y="%d">%s, %d worker%s</text>' % (left, top - 7, title, workers,
                                                             "s" * (workers > 1)))
    for controller, colour in zip(CONTROLLERS, COLOURS):
        points = " ".join("%.1f,%.1f" % (x(load), y(mean(found[controller, workers, load][which])))
                          for load in LOADS)
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="%.1f"/>'
                   % (points, colour, 2.5 if controller == "weir" else 1.2))
    return out


def draw(found, path):
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1060 470" '
           'font-family="sans-serif" font-size="11">', '<rect width="1060" height="470" '
           'fill="white"/>']
    for i, (controller, colour) in enumerate(zip(CONTROLLERS, COLOURS)):
        out.append('<text x="%d" y="20" fill="%s" font-weight="bold">%s</text>'
                   % (50 + 100 * i, colour, controller))
    out.append('<text x="%d" y="20">across: load over capacity</text>' % (50 + 100 * len(COLOURS)))
    for i, workers in enumerate(DRAWN):
        for k, row in enumerate(PANELS):
            out += panel(found, 50 + 255 * i, 50 + 216 * k, workers, row)
    with open(path, "w") as file:
        file.write("\n".join(out + ["</svg>"]) + "\n")
