#!/usr/bin/env python3
"""embed.py NAME INPUT OUTPUT -- a file as a C array: `const char NAME[]`, with a NUL behind it, and `const size_t NAME_len`.

JSON is checked, and loses its spaces.
"""
import json
import sys


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: embed.py NAME INPUT OUTPUT")
    name, source, target = sys.argv[1:]
    data = open(source, "rb").read()
    if source.endswith(".json"):
        data = json.dumps(json.loads(data), ensure_ascii=False, separators=(",", ":")).encode()
    lines = []
    for at in range(0, len(data), 24):
        lines.append("    " + "".join("%d," % (b if b < 128 else b - 256) for b in data[at : at + 24]))
    with open(target, "w") as out:
        out.write("#include <stddef.h>\n\nextern const char %s[];\nextern const size_t %s_len;\n\n" % (name, name))
        out.write("const char %s[] = {\n%s\n    0\n};\nconst size_t %s_len = %d;\n" % (name, "\n".join(lines), name, len(data)))


if __name__ == "__main__":
    main()
