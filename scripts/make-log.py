#!/usr/bin/env python3
"""make-log.py OUT [--lines N] [--seed S] [--gzip] [--json] [--scenario NAME] ... -- an access log.

OUT is a file, or - for stdout; the same options always give the same bytes.  The format is nginx's
combined one, or with --json lines of JSON with nginx's names and milliseconds.  stderr says how
many lines each kind of client has, so that the effect of a rule can be worked out by hand.

Scenarios:

  day      (the default) --lines N over 24 hours from --start:
             flood     10 % of N  203.0.113.66, from 15:00 to 15:20, GET /api/search
             crawler    8 % of N  198.51.100.10 to .13, all day, pages in order
             login      3 % of N  203.0.113.7 to .9, 02:00 to 04:00, POST /login, 1 in 500 good
             noise      1 % of N  192.0.2.0/24: the bytes of port scanners, not requests
             ordinary   the rest  --clients (20000) addresses, shares of clients and pages by Zipf's
                                  law; four times as much in the evening as in the early morning;
                                  one in six is IPv6, one in twenty has a user name
  steady   --clients K, each exactly --rate R times a second for --seconds T: K * R * T lines
  burst    --clients K, each --rate R times at once in the seconds 0, P, 2P, ... (--every P) before
           --seconds T: K * R * ceil(T / P) lines
  flood    steady, and 203.0.113.66 exactly --flood F times a second in the middle third:
           F * (2T // 3 - T // 3) lines more

In steady, burst and flood the clients are 10.0.0.1 and up, the page is /, and a client's requests
of one second are spread evenly over it (burst: not at all), as only --json shows.  Times are UTC.

--late S: one line in a hundred stands up to S seconds behind its place (day only), as in logs that
servers write at the end of a request.
"""
import argparse
import gzip
import itertools
import math
import os
import random
import sys
from datetime import datetime, timedelta, timezone

MINUTES = 24 * 60
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
AGENTS = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15",
    "curl/8.5.0",
]
BOT = "examplebot/2.1 (+https://bot.example/about)"


class Format:
    """A line is before(client) + time + middle(page) + after(client): pieces that are made once and
    joined a million times."""

    def __init__(self, json):
        self.json = json

    def before(self, ip, user=None):
        return '{"time":"' if self.json else "%s - %s [" % (ip, user or "-")

    def middle(self, method, uri, status, size):
        if self.json:
            form = '","request_method":"%s","request_uri":"%s","server_protocol":"HTTP/1.1","status":%d,"body_bytes_sent":%d'
        else:
            form = ' +0000] "%s %s HTTP/1.1" %d %d "-" "'
        return form % (method, uri, status, size)

    def broken(self, text):
        """Bytes that were no request: `text` as nginx escapes it."""
        if self.json:
            return ('","request":"%s","status":400,"body_bytes_sent":157'
                    % text.replace("\\x", "\\u00"))
        return ' +0000] "%s" 400 157 "-" "' % text

    def after(self, ip, agent, user=None):
        if not self.json:
            return agent + '"\n'
        name = ',"remote_user":"%s"' % user if user else ""
        return ',"remote_addr":"%s"%s,"http_user_agent":"%s"}\n' % (ip, name, agent)

    def client(self, ip, agent, user=None):
        return self.before(ip, user), self.after(ip, agent, user)

    def minute(self, at):
        """The beginning of all times of a minute."""
        if self.json:
            return at.strftime("%Y-%m-%dT%H:%M:")
        return ("%02d/%s/%04d:%02d:%02d:" % (at.day, MONTHS[at.month - 1], at.year, at.hour,
                                             at.minute))

    def seconds(self):
        """The rest, for each millisecond of a minute."""
        if self.json:
            return ["%02d.%03dZ" % divmod(ms, 1000) for ms in range(60000)]
        return ["%02d" % (ms // 1000) for ms in range(60000)]


def zipf(n, exponent):
    """Weights, summed up."""
    return list(itertools.accumulate((i + 1) ** -exponent for i in range(n)))


def spread(total, weights):
    """`total` lines over the minutes by their weights: whole numbers whose sum is exact."""
    sums = list(itertools.accumulate(weights))
    marks = [round(total * s / sums[-1]) for s in sums]
    return [b - a for a, b in zip([0] + marks, marks)]


# ---------------------------------------------------------------- a day ----


def between(first_hour, last_hour):
    return [1.0 if first_hour * 60 <= m < last_hour * 60 else 0.0 for m in range(MINUTES)]


class Actor:
    """Clients and pages that belong together, and their lines in each minute."""

    def __init__(self, name, total, weights, clients, pages, client_sums=None, page_sums=None):
        self.name, self.total = name, total
        self.per_minute = spread(total, weights)
        self.clients, self.pages = clients, pages
        self.client_sums, self.page_sums = client_sums, page_sums

    def lines(self, rng, minute):
        n = self.per_minute[minute]
        return zip(
            rng.choices(self.clients, cum_weights=self.client_sums, k=n),
            rng.choices(self.pages, cum_weights=self.page_sums, k=n)
        )


class Crawler(Actor):
    def lines(self, rng, minute):
        n, first = self.per_minute[minute], sum(self.per_minute[:minute])
        return ((self.clients[i % len(self.clients)], self.pages[i % len(self.pages)])
                for i in range(first, first + n))


def ordinary_clients(rng, form, n):
    clients = []
    for i in range(n):
        ip = "2001:db8:%x:%x::%x" % (rng.randrange(65536), rng.randrange(65536), i + 1)
        if rng.randrange(6):
            ip = "10.%d.%d.%d" % (1 + i // 62500, i // 250 % 250, 1 + i % 250)
        clients.append(form.client(ip, rng.choice(AGENTS),
                                   "user%d" % i if rng.randrange(20) == 0 else None))
    rng.shuffle(clients)
    return clients


def ordinary_pages(rng, form, n):
    pages = []
    for i in range(n):
        kind = rng.choice(["/", "/article/", "/static/", "/api/items/", "/search?q="])
        uri = "/" if i == 0 else "/page/%d" % i if kind == "/" else "%s%d" % (kind, i)
        status = rng.choices([200, 304, 404, 500], weights=[90, 6, 3.5, 0.5])[0]
        pages.append(form.middle("GET" if rng.randrange(12) else "POST", uri, status,
                                 rng.randrange(200, 60000)))
    return pages


def actors_of_a_day(rng, form, options):
    n = options.lines
    rhythm = [1 - 0.6 * math.cos(2 * math.pi * (m - 4 * 60) / MINUTES) for m in range(MINUTES)]
    all_day = [1.0] * MINUTES
    searches = [form.middle("GET", "/api/search?q=%d" % i, 200, 5120) for i in range(100)]
    logins = ([form.middle("POST", "/login", 401, 512)] * 499
              + [form.middle("POST", "/login", 302, 0)])
    crawled = ([form.middle("GET", "/robots.txt", 200, 68)]
               + [form.middle("GET", "/page/%d" % i, 200, 8000 + i) for i in range(1, 10000)])
    broken = [form.broken(text)
              for text in ["-", "", "\\x16\\x03\\x01\\x02\\x00\\x01\\x00\\x01\\xFC\\x03\\x03",
                           "t3 12.1.2\\x0A", "\\x03"]]
    shares = {"flood": n * 10 // 100, "crawler": n * 8 // 100, "login": n * 3 // 100,
              "noise": n // 100}
    return [
        Actor("ordinary", n - sum(shares.values()), rhythm,
              ordinary_clients(rng, form, options.clients or 20000),
              ordinary_pages(rng, form, 2000), zipf(options.clients or 20000, 0.9),
              zipf(2000, 1.0)),
        Actor("flood", shares["flood"], between(15, 15 + 1 / 3),
              [form.client("203.0.113.66", "python-requests/2.31.0")], searches),
        Crawler("crawler", shares["crawler"], all_day,
                [form.client("198.51.100.%d" % (10 + i), BOT) for i in range(4)], crawled),
        Actor("login", shares["login"], between(2, 4),
              [form.client("203.0.113.%d" % (7 + i), "Go-http-client/1.1") for i in range(3)],
              logins),
        Actor("noise", shares["noise"], all_day,
              [form.client("192.0.2.%d" % i, "-") for i in range(256)], broken),
    ]


def places(rng, n, late):
    """(where the line stands, its time), both in ms of the minute, in the order of the first."""
    times = rng.choices(range(60000), k=n)
    if late:
        return sorted((t + rng.randrange(1, late * 1000 + 1) if rng.randrange(100) == 0 else t, t)
                      for t in times)
    return [(t, t) for t in sorted(times)]


def day(options, form, write):
    rng = random.Random(options.seed)
    actors = actors_of_a_day(rng, form, options)
    seconds = form.seconds()
    for m in range(MINUTES):
        requests = [line for actor in actors for line in actor.lines(rng, m)]
        rng.shuffle(requests)
        begin = form.minute(options.start + timedelta(minutes=m))
        where = places(rng, len(requests), options.late)
        write("".join([before + begin + seconds[t] + page + after for ((before, after), page),
                       (_, t) in zip(requests, where)]))
    return {actor.name: actor.total for actor in actors}


# ------------------------------------------------------ to be worked out ----


def numbered(form, n):
    if n > 16000000:
        sys.exit("make-log.py: at most 16000000 clients have addresses in 10.0.0.0/8")
    return [form.client("10.%d.%d.%d" % ((i >> 16) & 255, (i >> 8) & 255, i & 255), "curl/8.5.0")
            for i in range(1, n + 1)]


class Even:
    """Writes requests for / by all of some clients at a moment."""

    def __init__(self, options, form, write):
        self.form, self.write, self.start = form, write, options.start
        self.page, self.seconds = form.middle("GET", "/", 200, 612), form.seconds()

    def moment(self, clients, ms):
        stamp = (self.form.minute(self.start + timedelta(milliseconds=ms))
                 + self.seconds[ms % 60000] + self.page)
        self.write("".join([before + stamp + after for before, after in clients]))


def steady(options, form, write):
    clients, even = numbered(form, options.clients or 10), Even(options, form, write)
    for t in range(options.seconds):
        for i in range(options.rate):
            even.moment(clients, t * 1000 + i * 1000 // options.rate)
    return {"steady": len(clients) * options.rate * options.seconds}


def burst(options, form, write):
    clients, even = numbered(form, options.clients or 10), Even(options, form, write)
    moments = range(0, options.seconds, options.every)
    for t in moments:
        for _ in range(options.rate):
            even.moment(clients, t * 1000)
    return {"burst": len(clients) * options.rate * len(moments)}


def flood(options, form, write):
    clients, even = numbered(form, options.clients or 10), Even(options, form, write)
    flooder = [form.client("203.0.113.66", "python-requests/2.31.0")]
    for t in range(options.seconds):
        flooded = options.seconds // 3 <= t < 2 * options.seconds // 3
        moments = [(i * 1000 // options.rate, clients) for i in range(options.rate)]
        moments += [(i * 1000 // options.flood, flooder)
                    for i in range(options.flood if flooded else 0)]
        for ms, who in sorted(moments, key=lambda moment: moment[0]):
            even.moment(who, t * 1000 + ms)
    third = 2 * options.seconds // 3 - options.seconds // 3
    return {"steady": len(clients) * options.rate * options.seconds, "flood": options.flood * third}


SCENARIOS = {"day": day, "steady": steady, "burst": burst, "flood": flood}


# ------------------------------------------------------------------ main ----


def at_least(least):
    def number(text):
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError("'%s' is no whole number of at least %d"
                                             % (text, least))
        return int(text)

    return number


def moment(text):
    return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=timezone.utc)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--scenario", choices=SCENARIOS, default="day")
    parser.add_argument("--lines", type=at_least(0), default=1000000)
    parser.add_argument("--seed", type=at_least(0), default=1)
    parser.add_argument("--start", type=moment, default="2025-03-03",
                        help="the day it begins, as 2025-03-03")
    parser.add_argument("--clients", type=at_least(1))
    parser.add_argument("--rate", type=at_least(1), default=1)
    parser.add_argument("--flood", type=at_least(1), default=100)
    parser.add_argument("--every", type=at_least(1), default=60)
    parser.add_argument("--seconds", type=at_least(1), default=60)
    parser.add_argument("--late", type=at_least(0), default=0)
    parser.add_argument("--gzip", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main():
    options = read_options()
    out = sys.stdout.buffer if options.out == "-" else open(options.out, "wb")
    packed = gzip.GzipFile("", "wb", 5, out, mtime=0) if options.gzip else None
    target, pieces, size = packed or out, [], 0

    def write(text):
        nonlocal size
        pieces.append(text)
        size += len(text)
        if size > 1 << 20:
            target.write("".join(pieces).encode())
            pieces.clear()
            size = 0

    counts = SCENARIOS[options.scenario](options, Format(options.json), write)
    target.write("".join(pieces).encode())
    if packed:
        packed.close()
    out.flush()
    parts = ", ".join("%s %d" % item for item in counts.items())
    print("%s: %d lines (%s)" % (options.out, sum(counts.values()), parts), file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        # the reader has seen enough; Python would flush once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
