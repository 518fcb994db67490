"""guarding.py -- shared by the tests of guards at a server: rules with guards, and one way to ask
over RESP and HTTP."""
from serving import Error, Server

RULES = """version: 1
rules:
  - name: per-ip
    match: { ip: "*" }
    key: "{ip}"
    limit: 3/10s
    ban: { refusals: 3/60s, for: 10m }
guards:
  - name: search
    match: { uri: /search }
    concurrency: { max: 2 }
    lease: 30s
    fallback: { status: 200, body: "[]", type: application/json }
  - name: shop
    match: { uri: /shop }
    concurrency: { max: 1, queue: 2, wait: 60s, order: weighted, weights: { gold: 3, free: 1 } }
    class: "{plan|free}"
  - name: db
    match: { uri: [/search, /db] }
    concurrency: { max: 3 }
    breaker: { errors: 50%, min_calls: 4, open_for: 5s, jitter: 0% }
  - name: extras
    match: { uri: /extras }
    concurrency: { max: 5 }
    degrade: 2
"""

BY_KEY = """version: 1
rules:
  - { name: all, limit: 1000/s }
guards:
  - name: site
    concurrency: { max: 2, key: "{ip}", total: 5, queue: 3, wait: 60s }
    lease: 30s
"""

NAMES = ["allowed", "rule", "limit", "remaining", "retry_ms", "reset_ms", "wait_ms", "level",
         "reason", "shadow", "guard", "permit", "lease_ms"]


class Doors:
    """A server with the rules, asked by RESP and by HTTP in the same words; answers as HTTP has
    them."""

    def __init__(self, weir, rules=RULES, **options):
        self.server = Server(weir, rules=rules, **options)
        if options.get("clock", True):
            self.server.clock(1000)
        self.resp = self.server.resp()
        self.web = self.server.http()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.resp.close()
        self.web.close()
        self.server.__exit__(*error)

    def enter(self, *words, client=None):
        answer = (client or self.resp)("WEIR.ENTER", *words)
        return answer if isinstance(answer, Error) else dict(zip(NAMES, answer))

    def exit(self, permit, outcome="ok", *more):
        return self.resp("WEIR.EXIT", permit, outcome, *more)

    def guard(self, name):
        return self.resp.json("WEIR.GUARDS", name)["guards"][0]

    def events(self, *kinds):
        return [e for e in self.resp.json("WEIR.EVENTS") if e["event"] in kinds]

    def open_breaker(self):
        """Of the guard db."""
        for _ in range(4):
            assert self.exit(self.enter("GUARD", "db")["permit"], "error") == 1
