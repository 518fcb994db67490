#!/usr/bin/env python3
"""thousand-picture.py FIGURES.TSV -- draws docs/picture-thousand.svg from what bench-thousand says.

Left: commands at Redis for a million asks per second, by nodes and keys.  Right: how many of a
thousand nodes know of a change, and of a death, by time.
"""
import math
import os
import re
import sys

from pictures import ADMITTED, BOUND, WAITED, Drawing, power_of_ten

HERE = os.path.dirname(os.path.abspath(__file__))
LEFT, RIGHT, TOP, WIDTH, HEIGHT = 70, 480, 50, 320, 220
LOAD = re.compile(r"thousand load, (\d+) nodes, (\d+) keys?, draws$")
KNOWN = re.compile(r"thousand (change|death), after (\d+) ms$")
CORE = 25000  # scripts of 40 us that one core of Redis runs in a second


def read(path):
    with open(path, encoding="utf-8") as file:
        return [(line.split("\t")[0], float(line.split("\t")[1])) for line in file]


def points_of(figures, pattern, group, key):
    """Of the figures whose name has `key` in that group of the pattern: the other group, value."""
    found = [(pattern.match(name), value) for name, value in figures]
    return sorted((int(m[3 - group]), value) for m, value in found if m and m[group] == key)


def grid(d, x, title, rows):
    d.text(x, TOP - 20, title, bold=True)
    for at, name in rows:
        d.line(x, at, x + WIDTH, at, opacity=0.3)
        d.text(x - 8, at + 4, name, "end")


def draw_load(d, figures):
    def across(nodes):
        return LEFT + WIDTH * (math.log10(nodes) - 1) / 2

    def up(commands):
        return TOP + HEIGHT * (1 - (math.log10(commands) - 2) / 4)

    grid(d, LEFT, "commands per second, for a million asks",
         [(up(10 ** e), power_of_ten(e)) for e in range(2, 7)])
    for nodes in (10, 100, 1000):
        d.text(across(nodes), TOP + HEIGHT + 18, f"{nodes:,}", "middle")
    d.text(LEFT + WIDTH / 2, TOP + HEIGHT + 36, "nodes", "middle")
    for keys, colour in (("1", ADMITTED), ("10", WAITED), ("100", BOUND)):
        points = points_of(figures, LOAD, 2, keys)
        d.path([(across(n), up(value)) for n, value in points], colour)
        d.text(across(10) + 6, up(points[0][1]) - 28, keys + (" key" if keys == "1" else " keys"),
               fill=colour)
    d.line(LEFT, up(CORE), LEFT + WIDTH, up(CORE), dash="4 3")
    d.text(across(15), up(CORE) + 12, "a core of Redis", size=11)


def draw_known(d, figures):
    def across(ms):
        return RIGHT + WIDTH * ms / 1000

    def up(nodes):
        return TOP + HEIGHT * (1 - nodes / 1000)

    grid(d, RIGHT, "nodes that know of it", [(up(n), f"{n:,}") for n in range(0, 1001, 250)])
    for ms in range(0, 1001, 250):
        d.text(across(ms), TOP + HEIGHT + 18, f"{ms:,}", "middle")
    d.text(RIGHT + WIDTH / 2, TOP + HEIGHT + 36, "milliseconds", "middle")
    for what, colour, name in (("change", ADMITTED, "rules published"),
                               ("death", BOUND, "a node died")):
        points = points_of(figures, KNOWN, 1, what)
        d.path([(across(ms), up(n)) for ms, n in points], colour)
        middle = next(p for p in points  # where the name has room beside the axis
                      if p[1] >= 500 and across(p[0]) >= RIGHT + 7 * len(name))
        d.text(across(middle[0]) - 8, up(middle[1]) + 4, name, "end", fill=colour)


def main():
    figures = read(sys.argv[1])
    d = Drawing(RIGHT + WIDTH + 30, TOP + HEIGHT + 50, "a thousand nodes")
    draw_load(d, figures)
    draw_known(d, figures)
    d.write(os.path.join(HERE, "..", "docs", "picture-thousand.svg"))
    print("docs/picture-thousand.svg")


if __name__ == "__main__":
    main()
