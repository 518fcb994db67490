#!/usr/bin/env python3
"""embed.py NAME INPUT OUTPUT -- a file as a C array: `const char NAME[]`, ended by a NUL, and
`const size_t NAME_len`.  Into a header goes the array alone, static.

JSON is checked and loses its spaces.  HTML takes in the style sheets and the script that it links,
and SCRIPT-HASH becomes the script's hash, for its Content-Security-Policy.  A Lua script has
`const char NAME_sha[]` too, the name that Redis calls it by.
"""
import base64
import hashlib
import json
import os
import re
import sys


def compact(source):
    with open(source) as file:
        return json.dumps(json.load(file), ensure_ascii=False, separators=(",", ":"))


def inline(source):
    def linked(m):
        with open(os.path.join(os.path.dirname(source), m.group(1))) as file:
            return file.read()

    with open(source) as file:
        page = file.read()
    script = re.search(r'<script src="(.*?)"></script>', page)
    code = linked(script)
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    page = page.replace(script.group(), "<script>%s</script>" % code)
    page = page.replace("SCRIPT-HASH", "sha256-" + digest)
    link = r'<link rel="stylesheet" href="(.*?)">'
    return re.sub(link, lambda m: "<style>\n%s</style>" % linked(m), page)


def read(source):
    if source.endswith(".json"):
        return compact(source).encode()
    if source.endswith(".html"):
        return inline(source).encode()
    with open(source, "rb") as file:
        return file.read()


def array(name, data):
    lines = []
    for at in range(0, len(data), 24):
        row = data[at : at + 24]
        lines.append("    " + "".join("%d," % (b if b < 128 else b - 256) for b in row))
    return "const char %s[] = {\n%s\n    0\n};\n" % (name, "\n".join(lines))


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: embed.py NAME INPUT OUTPUT")
    name, source, target = sys.argv[1:]
    data = read(source)
    with open(target, "w") as out:
        if target.endswith(".h"):
            out.write("static " + array(name, data))
            return
        out.write("#include <stddef.h>\n\n")
        out.write("extern const char %s[];\nextern const size_t %s_len;\n\n" % (name, name))
        out.write(array(name, data))
        out.write("const size_t %s_len = %d;\n" % (name, len(data)))
        if source.endswith(".lua"):
            out.write("extern const char %s_sha[];\nconst char %s_sha[] = \"%s\";\n"
                      % (name, name, hashlib.sha1(data).hexdigest()))


if __name__ == "__main__":
    main()
