#!/usr/bin/env python3
"""embed-list.py HEADER NAME OUTPUT INPUT... -- files as a C list of `struct weir__embedded`, by
name, ended by one without a name."""
import os
import sys


def main():
    if len(sys.argv) < 5:
        sys.exit("usage: embed-list.py HEADER NAME OUTPUT INPUT...")
    header, name, target = sys.argv[1:4]
    rows, texts = [], []
    for i, source in enumerate(sys.argv[4:]):
        data = open(source, "rb").read()
        lines = []
        for at in range(0, len(data), 24):
            lines.append("    " + "".join("%d," % (b if b < 128 else b - 256)
                                          for b in data[at : at + 24]))
        texts.append("static const char text_%d[] = {\n%s\n    0\n};\n" % (i, "\n".join(lines)))
        rows.append('    { "%s", text_%d, %d },\n' % (os.path.splitext(os.path.basename(source))[0],
                                                      i, len(data)))
    with open(target, "w") as out:
        out.write('#include "%s"\n\n%s\n' % (header, "\n".join(texts)))
        out.write("const struct weir__embedded %s[] = {\n%s    { 0 },\n};\n"
                  % (name, "".join(rows)))


if __name__ == "__main__":
    main()
