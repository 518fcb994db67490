#!/usr/bin/env python3
"""registry.py WEIR FOLDER [NAME...] -- the newest client libraries, as their registries have them:
npm, Go's proxy, Maven Central, PyPI.

Each is fetched and built in FOLDER/NAME, a copy of the folder of that name here; versions and
checksums are pinned there.  Without the tool, or where the registry does not answer, it is skipped,
and said so: tests must pass on a machine without a network.  A checksum that differs is no such
case."""
import os
import re
import shutil
import subprocess
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from clients.world import run_client, run_snippet  # noqa: E402

NPM = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1",
       "--fetch-timeout=60000"]
PIP = ["python3", "-m", "pip", "install", "--quiet", "--retries", "1", "--only-binary", ":all:",
       "--require-hashes", "--requirement",
       "requirements.txt", "--upgrade", "--target", "packages"]
MAVEN = ["mvn", "--quiet", "--batch-mode", "--no-transfer-progress", "dependency:copy-dependencies"]

CLASSES = "target:target/dependency/*"

# NAME: what fetches it, what builds it, what runs it, and what the last needs in its environment.
CLIENTS = {
    "ioredis": (NPM, None, ["node", "ioredis.js"], {}),
    "node-redis": (NPM, None, ["node", "node-redis.js"], {}),
    "go-redis": (["go", "mod", "download"], ["go", "build", "-o", "go-redis", "."], ["./go-redis"],
                 {}),
    "jedis": (MAVEN, ["javac", "-cp", CLASSES, "-d", "target", "JedisTest.java"],
              ["java", "-cp", CLASSES, "JedisTest"], {}),
    "redis-py": (PIP, None, ["python3", "-X", "dev", "redis-py.py"], {"PYTHONPATH": "packages"}),
}

# NAME: of docs/clients.md the heading, the language, where to put it and how to run it.
SNIPPETS = {
    "ioredis": ("ioredis", "javascript", "snippet.mjs", ["node", "snippet.mjs"]),
    "node-redis": ("node-redis", "javascript", "snippet.mjs", ["node", "snippet.mjs"]),
    "go-redis": ("go-redis", "go", "snippet/main.go", ["go", "run", "./snippet"]),
    "jedis": ("Jedis", "java", "Ask.java", ["java", "-cp", CLASSES, "Ask.java"]),
    "redis-py": ("redis-py", "python", "snippet.py", ["python3", "snippet.py"]),
}


class Skipped(Exception):
    pass


def why(output):
    """The first line that says error, or the last one."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip() for line in output.splitlines()]
    lines = [line for line in lines if line]
    return next((line for line in lines if "error" in line.lower()),
                lines[-1] if lines else "it did not say why")


def run(command, folder):
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        raise Skipped("%s took longer than ten minutes" % command[0])


def fetch(command, folder):
    done = run(command, folder)
    output = done.stdout + done.stderr
    if (done.returncode
        and any(word in output.lower()
                for word in ("checksum mismatch", "eintegrity", "do not match the hashes"))):
        raise AssertionError("not the pinned version:\n" + output)
    if done.returncode:
        raise Skipped("%s: %s" % (command[0], why(output)))


def build(command, folder):
    done = run(command, folder)
    assert done.returncode == 0, "%s:\n%s" % (" ".join(command), done.stdout + done.stderr)


def try_client(weir, name, folder):
    fetching, building, running, env = CLIENTS[name]
    for tool in [command[0] for command in (fetching, building, running) if command]:
        if "/" not in tool and not shutil.which(tool):
            raise Skipped("there is no " + tool)
    shutil.copytree(os.path.join(HERE, name), folder, dirs_exist_ok=True)
    fetch(fetching, folder)
    if building:
        build(building, folder)
    run_client(weir, running, env=env, cwd=folder)
    heading, language, file, command = SNIPPETS[name]
    path = os.path.join(folder, file)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    run_snippet(weir, heading, language, path, command, env=env, cwd=folder)


def main(weir, folder, *names):
    passed = failed = 0
    for name in names or CLIENTS:
        try:
            try_client(os.path.abspath(weir), name, os.path.join(os.path.abspath(folder), name))
            passed += 1
        except Skipped as reason:
            print("skipped: %s: %s" % (name, reason), flush=True)
        except Exception as problem:
            failed += 1
            traceback.print_exc()
            print("FAILED %s: %s" % (name, problem))
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
