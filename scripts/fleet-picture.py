#!/usr/bin/env python3
"""fleet-picture.py FIGURES.TSV -- draws docs/picture-fleet.svg from the output of
bench/fleet-scale.py."""
import math
import os
import re
import sys

from pictures import ADMITTED, BOUND, Drawing, power_of_ten

HERE = os.path.dirname(os.path.abspath(__file__))
NODES = [1, 2, 4, 8]
WAYS = [("fleet", 1, ADMITTED, ""), ("fleet", 3, ADMITTED, "5 4"),
        ("EVALSHA", 1, BOUND, ""), ("EVALSHA", 3, BOUND, "5 4")]
PANELS = [("decisions", "Decisions a second", 1),
          ("decisions by CPU time", "Decisions a second of CPU", 1),
          ("CPU of Redis", "CPU of Redis for a decision, ns", 1000)]


def read(path):
    """{(way, nodes, masters, what): value}"""
    figures = {}
    for line in open(path, encoding="utf-8"):
        found = re.match(r"fleet scale, (\w+), (\d+) nodes, (\d+) masters: ([^\t]+)\t(\S+)", line)
        if found:
            way, nodes, masters, what, value = found.groups()
            figures[way, int(nodes), int(masters), what] = float(value)
    return figures


class Panel:
    """Both axes grow by factors."""

    def __init__(self, d, box, values):
        self.d, (self.x, self.y, self.width, self.height) = d, box
        self.low = math.floor(math.log10(min(values)))
        self.high = math.ceil(math.log10(max(values)))

    def at(self, nodes, value):
        return (self.x + self.width * math.log2(nodes) / math.log2(NODES[-1]),
                self.y + self.height * (self.high - math.log10(value)) / (self.high - self.low))

    def axes(self, title):
        self.d.text(self.x - 34, self.y - 16, title, bold=True)
        for power in range(self.low, self.high + 1):
            _, y = self.at(1, 10 ** power)
            self.d.line(self.x, y, self.x + self.width, y, opacity=0.25)
            self.d.text(self.x - 6, y + 4, power_of_ten(power), "end", size=11)
        for nodes in NODES:
            self.d.text(self.at(nodes, 10 ** self.low)[0], self.y + self.height + 16, nodes,
                        "middle", size=11)
        self.d.text(self.x + self.width / 2, self.y + self.height + 34, "nodes", "middle", size=11)

    def draw(self, values, colour, dash):
        points = [self.at(nodes, value) for nodes, value in zip(NODES, values)]
        for (x1, y1), (x2, y2) in zip(points, points[1:]):
            self.d.line(x1, y1, x2, y2, colour, 2.2, dash)
        for x, y in points:
            self.d.rect(x - 3, y - 3, 6, 6, colour)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: fleet-picture.py FIGURES.TSV")
    figures = read(sys.argv[1])
    d = Drawing(860, 330, "A fleet beside one EVALSHA for each request")
    for i, (what, title, factor) in enumerate(PANELS):
        rows = [[factor * figures[way, nodes, masters, what] for nodes in NODES]
                for way, masters, _, _ in WAYS]
        panel = Panel(d, (48 + 286 * i, 74, 224, 200), [value for row in rows for value in row])
        panel.axes(title)
        for row, (_, _, colour, dash) in zip(rows, WAYS):
            panel.draw(row, colour, dash)
    for i, (way, masters, colour, dash) in enumerate(WAYS):
        x = 14 + 212 * i
        d.line(x, 18, x + 26, 18, colour, 2.2, dash)
        d.text(x + 32, 22, "%s, %d master%s" % (
            "across: fleet" if way == "fleet" else way, masters,
            "s" if masters > 1 else ""), size=12)
    d.write(os.path.join(HERE, "..", "docs", "picture-fleet.svg"))


main()
