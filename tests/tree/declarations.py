#!/usr/bin/env python3
"""declarations.py SOURCE_ROOT -- what nginx/resty/weir.lua declares for LuaJIT is what the public
header declares: the same members, values and arguments, in the same order, of the same version."""
import os
import re
import sys


def plain(text, constants):
    """Declarations without comments, macros and layout."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^[ \t]*#.*(?:\\\n.*)*", "", text, flags=re.M)
    text = re.sub(r'\bWEIR_API\b|extern "C" \{', " ", text)
    text = re.sub(r"\[(\w+)\]", lambda m: "[%s]" % constants.get(m.group(1), m.group(1)), text)
    return re.sub(r" ?([{}();,*\[\]=]) ?", r"\1", re.sub(r"\s+", " ", text))


def split(text):
    """Declarations, each up to the ; that ends it."""
    found, depth, start = [], 0, 0
    for at, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        if c == ";" and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    return found


def main(root):
    with open(os.path.join(root, "include/weir.h")) as file:
        header = file.read()
    with open(os.path.join(root, "nginx/resty/weir.lua")) as file:
        script = file.read()
    lua = re.search(r"local declarations = \[\[\n(.*?)\]\]", script, re.S).group(1)
    constants = dict(re.findall(r"^#define (WEIR_\w+) +(\d+)\b", header, re.M))
    public = set(split(plain(header, constants)))
    ours = split(plain(lua, {}))
    wrong = [each for each in ours if each not in public]
    if re.search(r'WEIR_VERSION +(".*?")', header).group(1) not in script:
        wrong.append("VERSION")
    for each in wrong:
        print("nginx/resty/weir.lua: not as in weir.h: " + each)
    print("%d passed, %d failed" % (len(ours) - len(wrong), len(wrong)))
    return bool(wrong) or len(ours) < 20


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
