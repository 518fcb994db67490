#!/usr/bin/env python3
"""amalgamation.py OUTDIR -- the whole library as weir.c with its public headers, to drop into any
project.

The order is meson.build's lib_sources.  In the one translation unit that results, names that were
private to a file would meet: step is defined eight times.  So each file-scope name that is not
weir_... gets its file's name in front (step in gcra.c: gcra__step), each macro of a .c file ends
with it, and what files share among themselves (weir__...) becomes static: the object file exports
the headers' functions and nothing else.

Why not #define step gcra__step around each file: the macro would also rename the member .step of
struct weir__algo.  So the script reads tokens, and knows that tags and members have name spaces of
their own.  It knows only as much C as the library uses, and stops with an error at a declaration
that it cannot read.
"""
import os
import re
import sys

import embed

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PUBLIC = ["weir.h", "weir-admin.h", "weir-queue.h"]

# Headers that the build makes.
EMBEDDED = {"lib/schema-text.h": ("weir__schema_text", "lib/rulefile/schema.json")}

HEAD = """\
/* weir.c -- Weir %s as one file, made by scripts/amalgamation.py from lib/: change that, not this.
 *
 * To use it, put weir.c, weir.h, weir-admin.h and weir-queue.h into your project.  Nothing to
 * configure:
 *
 *     cc -O2 -c weir.c
 *     cc -O2 your.c weir.o -lpthread
 *
 * Made for Linux; tried with gcc 12 and clang 14.  On x86-64 it turns the instruction cmpxchg16b
 * on by itself: no -mcx16 is needed.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

"""

# After the system's headers, so that it is about this file's functions only.
OPEN = """
#include "weir-admin.h"
#include "weir-queue.h"

#if defined(__x86_64__) && defined(__clang__)
#pragma clang attribute push(__attribute__((target("cx16"))), apply_to = function)
#elif defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("cx16")
#endif

#define WEIR__LOCAL static __attribute__((unused)) /* some are there for the tests only */
"""

CLOSE = """
#if defined(__x86_64__) && defined(__clang__)
#pragma clang attribute pop
#elif defined(__x86_64__)
#pragma GCC pop_options
#endif
"""

TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)
      | (?P<directive>(?:(?<=\n)|\A)[ \t]*\#(?:/\*.*?\*/|\\\n|[^\n])*)
      | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<space>\s+)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
      | (?P<mark>->|.)""",
    re.S | re.X,
)

KEYWORDS = set(
    "auto break case char const continue default do double else enum extern float for goto if "
    "inline int long register restrict return short signed sizeof static struct switch typedef "
    "union unsigned void volatile while _Alignas _Atomic _Bool _Thread_local _Noreturn bool "
    "__extension__ __attribute__ _Static_assert".split()
)
TAGGED = ("struct", "union", "enum")
PAIRS = {"(": ")", "[": "]", "{": "}"}


def fail(path, what):
    sys.exit("amalgamation.py: %s: %s" % (path, what))


class Token:
    def __init__(self, kind, text):
        self.kind, self.text = kind, text
        self.member = False  # declared as a member of a struct or union


def read_tokens(text):
    tokens, at = [], 0
    for m in TOKEN.finditer(text):
        tokens.append(Token(m.lastgroup, m.group()))
        at = m.end()
    assert at == len(text)
    return tokens


def meaningful(tokens):
    return [t for t in tokens if t.kind not in ("comment", "space", "directive")]


def group_end(tokens, i):
    """The index after the bracket that closes the one at i."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += tokens[j].text in PAIRS
        depth -= tokens[j].text in PAIRS.values()
        if depth == 0:
            return j + 1
    raise ValueError("a bracket is not closed")


def declarations(tokens):
    """The file-scope declarations, each a list of tokens; a function's is its head and body."""
    i, begin = 0, 0
    while i < len(tokens):
        text = tokens[i].text
        if text == ";":
            i += 1
            yield tokens[begin:i]
            begin = i
        elif text in PAIRS:
            body = text == "{" and tokens[i - 1].text == ")"
            i = group_end(tokens, i)
            if body:
                yield tokens[begin:i]
                begin = i
        else:
            i += 1


def mark_members(tokens):
    """In the bodies of structs and unions, what is not a tag or a type is a member's name."""
    for i, t in enumerate(tokens):
        if t.text in ("struct", "union"):
            body = i + 1 + (i + 1 < len(tokens) and tokens[i + 1].kind == "word")
            if body < len(tokens) and tokens[body].text == "{":
                for member in tokens[body : group_end(tokens, body)]:
                    member.member = True


def fold(tokens):
    """The declaration with what is in brackets left out: pairs of the opening token's text, or the
    word, and its tokens."""
    out, i = [], 0
    while i < len(tokens):
        end = group_end(tokens, i) if tokens[i].text in PAIRS else i + 1
        if (tokens[i].text == "("
            and tokens[i - 1].text in ("__attribute__", "_Alignas", "__aligned__")):
            out.pop()
        else:
            out.append((tokens[i].text, tokens[i:end]))
        i = end
    return out


def declarator(part, path):
    """The name that one declarator declares; None if it only declares a tag."""
    name, before = None, None
    for text, group in part:
        if text == "(" and len(group) > 3 and group[1].text == "*":
            return group[2].text  # a pointer to a function
        if text in ("(", "[", "=", ";"):
            break
        if text == "{":
            name = None
        elif group[0].kind == "word" and text not in KEYWORDS:
            name = None if before in TAGGED else text
        before = text
    if name is None and not any(text in ("{", ";") for text, _ in part):
        fail(path, "cannot read the declaration '%s'" % " ".join(text for text, _ in part))
    return name


def declared(declaration, path):
    """The names that a file-scope declaration declares: of objects and functions, of types and
    constants, and tags."""
    words = [t.text for t in declaration]
    function = words[-1] == "}"
    names, types, tags = [], [], []
    for i in range(len(words) - 2):
        if not function and words[i] in TAGGED and words[i + 2] == "{":
            tags.append(words[i + 1])
    for i, word in enumerate(words):
        body = i + 1 + (words[i + 1] != "{") if word == "enum" and not function else len(words)
        if body < len(words) and words[body] == "{":
            inside = fold(declaration[body + 1 : group_end(declaration, body) - 1])
            types += [t for j, (t, _) in enumerate(inside) if j == 0 or inside[j - 1][0] == ","]
    parts = [[]]
    for text, group in fold(declaration):
        if text == ",":
            parts.append([])
        else:
            parts[-1].append((text, group))
    if words[0] not in ("_Static_assert", ";"):
        (types if "typedef" in words[:2] else names).extend(n
                                                            for n in (declarator(p, path)
                                                                      for p in parts if p)
                                                                      if n is not None)
    return names, types, tags


def private(name):
    return name != "weir" and not name.lower().startswith("weir_")  # struct weir is the engine


def read_text(path):
    if path in EMBEDDED:
        name, source = EMBEDDED[path]
        return "static " + embed.array(name, embed.read(os.path.join(ROOT, source)))
    return open(os.path.join(ROOT, path), encoding="utf-8").read()


class File:
    """A source or header of lib/: what it includes and declares, and its text for the
    amalgamation."""

    def __init__(self, path, is_header):
        self.path, self.is_header = path, is_header
        self.prefix = os.path.splitext(os.path.basename(path))[0].replace("-", "_") + "__"
        self.text = read_text(path)
        self.tokens = read_tokens(self.text)
        self.names, self.types, self.tags = set(), set(), set()
        self.macros, self.system, self.internal = [], [], []
        self.read_directives()
        self.read_declarations()

    def read_directives(self):
        depth = 0
        for t in self.tokens:
            if t.kind != "directive":
                continue
            line = re.sub(r"/\*.*?\*/", "", t.text, flags=re.S)
            word, rest = re.match(r"\s*#\s*(\w*)\s*(.*)", line, re.S).groups()
            depth += word in ("if", "ifdef", "ifndef")
            depth -= word == "endif"
            if word == "include" and depth == self.is_header:
                (self.system if rest[0] == "<" else self.internal).append(rest.strip()[1:-1])
                t.kind, t.text = "space", ""
            elif word == "include" and rest[0] != "<":
                fail(self.path, "an include of the library under a condition")
            elif word == "define" and not self.is_header:
                self.macros.append(re.match(r"\w+", rest).group())

    def read_declarations(self):
        code = meaningful(self.tokens)
        mark_members(code)
        for declaration in declarations(code):
            names, types, tags = declared(declaration, self.path)
            self.names.update(filter(private, names))
            self.types.update(filter(private, types))
            self.tags.update(filter(private, tags))
            if any(n.startswith("weir__") for n in names):
                self.make_local(declaration[0])
        strangers = self.names | self.types | self.tags
        if self.is_header and strangers:
            fail(self.path,
                 "a header's names must begin with weir__: %s" % ", ".join(sorted(strangers)))

    def make_local(self, first):
        if first.text == "extern":
            first.text = "static"
        elif first.text != "static":
            first.text = ("WEIR__LOCAL " if self.is_header else "static ") + first.text

    def rename(self, tokens):
        last = ""
        for t in tokens:
            if t.kind == "directive":
                t.text = self.rename_define(t.text)
            elif t.kind == "word" and self.is_private(t, last):
                t.text = self.prefix + t.text
            if t.kind not in ("comment", "space"):
                last = t.text
        return "".join(t.text for t in tokens)

    def is_private(self, token, last):
        if last in TAGGED:
            return token.text in self.tags
        if last in (".", "->"):
            return False
        return token.text in self.types or (token.text in self.names and not token.member)

    def rename_define(self, text):
        if not re.match(r"\s*#\s*define\b", text):
            return text
        hash_at = text.index("#") + 1
        return text[:hash_at] + self.rename(read_tokens(text[hash_at:]))

    def write(self):
        body = re.sub(r"\n{3,}", "\n\n", self.rename(self.tokens)).strip("\n")
        undefs = "".join("#undef %s\n" % m for m in self.macros)
        return ("\n/* %s %s */\n\n%s\n%s" % ("=" * (120 - len(self.path)), self.path, body,
                                             undefs and "\n" + undefs))


def lib_sources():
    meson = open(os.path.join(ROOT, "meson.build"), encoding="utf-8").read()
    found = re.search(r"^lib_sources = files\((.*?)\)", meson, re.S | re.M)
    if found is None:
        fail("meson.build", "there is no lib_sources = files(...)")
    return re.findall(r"'([^']+)'", found.group(1))


def gather_headers(file, headers):
    """The internal headers that a file needs, each after those that it needs itself."""
    for name in file.internal:
        path = "lib/" + name
        if name in PUBLIC or path in headers:
            continue
        header = File(path, True)
        gather_headers(header, headers)
        headers[path] = header


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: amalgamation.py OUTDIR")
    out = sys.argv[1]
    public = [(name, open(os.path.join(ROOT, "include", name), encoding="utf-8").read())
              for name in PUBLIC]
    version = re.search(r'WEIR_VERSION\s+"(.*?)"', public[0][1]).group(1)
    sources = [File(path, False) for path in lib_sources()]
    prefixes = [f.prefix for f in sources]
    for source in sources:
        if prefixes.count(source.prefix) > 1:
            fail(source.path, "another source has this name, so their private names would meet")
    headers = {}
    for source in sources:
        gather_headers(source, headers)
    files = list(headers.values()) + sources
    system = sorted({name for f in files for name in f.system})
    whole = (HEAD % version + "".join("#include <%s>\n" % name
                                      for name in system) + OPEN + "".join(f.write() for f in files)
                                      + CLOSE)
    os.makedirs(out, exist_ok=True)
    written = [("weir.c", whole)] + public
    for name, text in written:
        with open(os.path.join(out, name), "w", encoding="utf-8", newline="\n") as f:
            f.write(text)
    sizes = ", ".join("%s %d lines %d KiB" % (n, t.count("\n"), (len(t.encode()) + 1023) // 1024)
                      for n, t in written)
    print("%s: %s, from %d files" % (out, sizes, len(files)))


if __name__ == "__main__":
    main()
