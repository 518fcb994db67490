"""world.py -- the world of a client library under test: three servers, and a page of steps and
their results.

    plain    no token, time stands still until WEIR.CLOCK
    guarded  two tokens: WEIR_CHECK_TOKEN and WEIR_ADMIN_TOKEN
    tls      the same over TLS, with a certificate made for the test

The page (WEIR_WORLD, JSON) is the same for every language, and so is what a program does with it:
it goes through the steps that its client can do, prints a line "NAME VERSION: step step ..." and
ends with 0.  Anything else it prints, on either stream, is a complaint of the client about the
server, and fails the test.
"""
import json
import os
import re
import subprocess
import tempfile

from serving import Server, free_port, run_foreign, write

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
CHECK_TOKEN, ADMIN_TOKEN = "may-ask", "may-do-all"
TOKENS = {"WEIR_CHECK_TOKEN": CHECK_TOKEN, "WEIR_ADMIN_TOKEN": ADMIN_TOKEN}

RULES = """version: 1
rules:
  - name: per-ip
    key: "{ip}"
    limit: 5/10s
"""

# t in ms, quantity, reply: redis-cell's own test (max_burst 4, 1 per second)
GOLDEN = [
    (0, 6, [1, 5, 5, -1, 0]), (0, 1, [0, 5, 4, -1, 1]), (0, 1, [0, 5, 3, -1, 2]),
    (0, 1, [0, 5, 2, -1, 3]), (0, 1, [0, 5, 1, -1, 4]),
    (0, 1, [0, 5, 0, -1, 5]), (0, 1, [1, 5, 0, 1, 5]), (3000, 1, [0, 5, 2, -1, 3]),
    (3100, 1, [0, 5, 1, -1, 4]), (4000, 1, [0, 5, 1, -1, 4]),
    (8000, 1, [0, 5, 4, -1, 1]), (9500, 1, [0, 5, 4, -1, 1]), (9500, 0, [0, 5, 4, -1, 1]),
    (9500, 2, [0, 5, 2, -1, 3]), (9500, 5, [1, 5, 2, 3, 3]),
    (15000, 6, [1, 5, 5, -1, 0]),
]

# In this order; a client that cannot do one leaves it out, and its test says so.  resp3: the same
# list as with RESP2.
GUESSES = ["--auth-guesses", "1000"]  # redis-py tries a wrong token again and again
STEPS = ["connect", "throttle", "check", "errors", "pipeline", "multi", "resp3", "events", "auth",
         "tls"]


def make_certificate(folder):
    """A key and a certificate for 127.0.0.1, signed by itself: what a client must be told to
    trust."""
    key, certificate = os.path.join(folder, "key.pem"), os.path.join(folder, "certificate.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out",
         certificate],
        check=True, capture_output=True)
    return certificate, key


class World:
    """The servers, and the page."""

    def __init__(self, weir):
        self.weir = weir
        self.certificates = tempfile.TemporaryDirectory(prefix="weir-test-")
        self.certificate, self.key = make_certificate(self.certificates.name)
        self.servers = {}

    def __enter__(self):
        try:
            self.servers["plain"] = Server(self.weir, rules=RULES)
            self.servers["guarded"] = Server(self.weir, *GUESSES, rules=RULES, env=TOKENS)
            tls = ("--tls-certificate", self.certificate, "--tls-key", self.key)
            self.servers["tls"] = Server(self.weir, *tls, *GUESSES, rules=RULES, env=TOKENS)
        except BaseException:
            self.__exit__(RuntimeError, None, None)
            raise
        return self

    def __exit__(self, kind, value, trace):
        for server in self.servers.values():
            server.__exit__(kind, value, trace)
        self.certificates.cleanup()

    def port(self, name):
        return self.servers[name].ports["resp"]

    def page(self):
        golden = [{"now_ns": str(10**18 + ms * 10**6), "quantity": quantity, "reply": reply} for ms,
                  quantity, reply in GOLDEN]
        return {"host": "127.0.0.1", "ports": {name: self.port(name) for name in self.servers},
                "certificate": self.certificate,
                "check_token": CHECK_TOKEN, "admin_token": ADMIN_TOKEN, "golden": golden}


def run_client(weir, command, steps=STEPS, env=None, cwd=None):
    """Runs a program in a world of its own; returns "NAME VERSION"."""
    with World(weir) as world:
        page = os.path.join(world.certificates.name, "world.json")
        with open(page, "w") as file:
            json.dump(world.page(), file)
        env = dict(os.environ, WEIR_WORLD=page, **(env or {}))
        done = run_foreign(command, cwd=cwd, env=env)
        said = done.stdout
        assert done.returncode == 0, "%s:\n%s%s" % (command[0], said, done.stderr)
        line = re.fullmatch(r"([^\n:]+): ([^\n]*)\n", said)
        assert line, "not its one line:\n%s%s" % (said, done.stderr)
        assert line.group(2).split() == list(steps), "%s, not %s" % (line.group(2), steps)
        print("  " + said, end="", flush=True)
        return line.group(1)


def snippet(heading, language, page="docs/clients.md"):
    """The code below a heading of a page."""
    with open(os.path.join(ROOT, page)) as file:
        section = re.search(r"^## %s$(.*?)(?=^## |\Z)" % re.escape(heading), file.read(),
                            re.M | re.S).group(1)
    found = re.search(r"^```%s\n(.*?)^```$" % language, section, re.M | re.S)
    return found.group(1) if found else None


# Of a snippet the last words, and what goes on in their place: it asks again when it is told to,
# until it has an answer.
AGAIN = {
    "redis-py": ("", """
import sys
sys.stdout.flush()
sys.stdin.readline()
while True:
    try:
        answer = weir.execute_command("WEIR.CHECK", *request)
        break
    except redis.RedisError:
        pass
print(answer[0], answer[1], answer[3])
"""),
    "ioredis": ("weir.disconnect();\n", """
process.stdin.once('data', async () => {
  for (;;) {
    try {
      const answer = await weir.call('WEIR.CHECK', ...request);
      console.log(answer[0], answer[1], answer[3]);
      process.exit(0);
    } catch {}
  }
});
"""),
    "node-redis": ("await weir.close();\n", """
process.stdin.once('data', async () => {
  for (;;) {
    try {
      const answer = await ask('WEIR.CHECK', ...request);
      console.log(answer[0], answer[1], answer[3]);
      process.exit(0);
    } catch {}
  }
});
"""),
    "go-redis": ("// allowed, rule, remaining\n}\n", """
	fmt.Scanln()
	words := []any{"WEIR.CHECK", "ip", "192.0.2.7", "uri", "/login", "method", "POST"}
	for {
		answer, err = weir.Do(ctx, words...).Slice()
		if err == nil {
			break
		}
	}
	fmt.Println(answer[0], answer[1], answer[3])
}
"""),
    "Jedis": ("// allowed, rule, remaining\n", """
            try { System.in.read(); } catch (java.io.IOException problem) { return; }
            for (answer = null; answer == null;)
                try {
                    answer = ask(weir, "WEIR.CHECK", "ip", "192.0.2.7", "uri", "/login",
                                 "method", "POST");
                } catch (redis.clients.jedis.exceptions.JedisException problem) {
                }
            System.out.println(answer.get(0) + " " + answer.get(1) + " " + answer.get(3));
"""),
    "PHP": ("", """
fgets(STDIN);
for ($answer = false; $answer === false;) {
    try {
        $answer = $weir->rawCommand('WEIR.CHECK', ...$request);
    } catch (RedisException $problem) {
    }
}
echo "$answer[0] $answer[1] $answer[3]\\n";
"""),
    "Ruby": ("", """
$stdout.flush
$stdin.gets
begin
  answer = weir.call('WEIR.CHECK', *request)
rescue Redis::BaseError
  retry
end
puts "#{answer[0]} #{answer[1]} #{answer[3]}"
"""),
}


def snippet_for(heading, language, server):
    """With the server's ports, and with the patience that a busy machine needs."""
    text = snippet(heading, language)
    for port, door in (("7379", "resp"), ("7380", "http")):
        text = text.replace(port, str(server.ports[door]))
    return re.sub(r"\b50\b", "60000", re.sub(r"\b0\.05\b", "60", text))


def example_server(weir, **options):
    with open(os.path.join(ROOT, "examples/rules.yaml")) as file:
        return Server(weir, rules=file.read(), **options)


def run_snippet(weir, heading, language, path, command, env=None, cwd=None):
    """What docs/clients.md shows is true; and it goes on after a restart of the server, and ends if
    there is none."""
    expected = snippet(heading, "text") or "0 15\n1 login 4\n"
    env = dict(os.environ, **(env or {}))
    with example_server(weir) as server:
        write(path, snippet_for(heading, language, server))
        done = run_foreign(command, cwd=cwd, env=env)
        said = "docs/clients.md, %s:\n%s%s" % (heading, done.stdout, done.stderr)
        assert done.returncode == 0 and done.stdout == expected, said
    if heading in AGAIN:
        run_snippet_again(weir, heading, language, path, command, env, cwd)
        write(path, snippet(heading, language).replace("7379", str(free_port())))
        done = run_foreign(command, cwd=cwd, env=env)
        assert done.stdout == "", "docs/clients.md, %s:\n%s" % (heading, done.stdout)


def run_snippet_again(weir, heading, language, path, command, env, cwd):
    """The server is killed and started again at the same address; nothing of it is left."""
    last, again = AGAIN[heading]
    with example_server(weir, resp="127.0.0.1:%d" % free_port()) as server:
        text = snippet_for(heading, language, server)
        assert last in text, heading
        write(path, text[:len(text) - len(last)] + again if text.endswith(last)
              else text.replace(last, last + again))
        client = subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True)
        try:
            said = client.stdout.readline() + client.stdout.readline()
            assert said == "0 15\n1 login 4\n", "%s: %s" % (heading, said)
            server.process.kill()
            server.process.wait()
            server.process.stdout.close()
            server.errors.close()
            server.start()
            said = client.communicate("\n", timeout=300)[0]
            assert (client.returncode, said) == (0, "1 login 4\n"), "%s: %s" % (heading, said)
        finally:
            client.kill()
            client.wait()
