#!/usr/bin/python3
"""serve-clients.py WEIR [TEST...] -- clients as people have them: the Redis clients of five Debian packages, and curl.

Each library does the same things in its own language (clients/); world.py says which."""
import json
import os
import re
import subprocess
import tempfile

from clients.world import CHECK_TOKEN, GOLDEN, HERE, RULES, STEPS, TOKENS, World, make_certificate, run_client
from serving import Server, run_tests

RESP2 = [step for step in STEPS if step != "resp3"]


def test_S1_redis_py(weir):
    run_client(weir, ["/usr/bin/python3", "-X", "dev", os.path.join(HERE, "redis-py/redis-py.py")], RESP2)


def test_S1_node_redis(weir):
    run_client(weir, ["node", os.path.join(HERE, "node-redis/node-redis.js")], RESP2, env={"NODE_PATH": "/usr/share/nodejs"})


def test_S1_php_redis(weir):
    run_client(weir, ["php", os.path.join(HERE, "php-redis/php-redis.php")], RESP2)


def test_S1_ruby_redis(weir):
    run_client(weir, ["ruby", "-w", os.path.join(HERE, "ruby-redis/ruby-redis.rb")], RESP2)


if __name__ == "__main__":
    run_tests(globals())
