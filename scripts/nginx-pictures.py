#!/usr/bin/env python3
"""nginx-pictures.py BUILD -- draws docs/picture-nginx.svg from real runs of nginx with the module.

Above: the same 34 requests under four settings of `weir_req`; each is drawn from its arrival to its
answer, as the access log has it.  Below: `ab -n 110 -c 10` under the same settings at 100r/s.
"""
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "tests", "e2e"))

from nginxing import Nginx  # noqa: E402
from pictures import ADMITTED, BOUND, LINE, WAITED, Drawing  # noqa: E402
from serving import until  # noqa: E402

SETTINGS = ["", "burst=10", "burst=10 nodelay", "burst=10 delay=5"]
RATE = 10  # a second, above; 100 below
CROWD, CROWD_AGAIN, AGAIN_AT, STRAGGLERS = 16, 10, 2.0, 8
SPAN = 3.6  # seconds
AB, AB_AT_ONCE, AB_RATE, AB_SPAN = 110, 10, 100, 1.2
COLOURS = [LINE, WAITED, ADMITTED, "#3b7dd8"]


class Request:
    """A line of the log."""

    def __init__(self, line):
        end, took, status, self.outcome = line.split()
        self.end, self.passed = float(end), status == "200"
        self.begin = self.end - float(took)


def start(module):
    http = "log_format l '$msec $request_time $status $weir_req_status';"
    server = ""
    for i, setting in enumerate(SETTINGS):
        for name, rate in [("above", RATE), ("below", AB_RATE)]:
            http += "weir_req_zone $binary_remote_addr zone=%s%d:1m rate=%dr/s;" % (name, i, rate)
            server += ("location /%s%d { weir_req zone=%s%d %s; access_log {folder}/%s%d l; "
                       "empty_gif; }" % (name, i, name, i, setting, name, i))
    nginx = Nginx(module, http, "")
    nginx.configure(server=server.replace("{folder}", nginx.folder))
    nginx.reload()
    return nginx


def requests_of(nginx, name, count):
    def read():
        with open(nginx.path(name)) as file:
            lines = file.read().splitlines()
        return lines if len(lines) == count else None

    requests = sorted(map(Request, until("nginx logs %d requests" % count, read)),
                      key=lambda r: r.begin)
    first = requests[0].begin
    for r in requests:
        r.begin, r.end = r.begin - first, r.end - first
    return sorted(requests, key=lambda r: (round(10 * r.begin), not r.passed, r.end))


def run_crowds(nginx, i):
    """A crowd at once, single requests, another crowd."""
    times = [0.0] * CROWD + [0.2 * (k + 1) for k in range(STRAGGLERS)] + [AGAIN_AT] * CROWD_AGAIN
    begun, asks = time.monotonic(), []
    for at in times:
        time.sleep(max(0.0, begun + at - time.monotonic()))
        asks.append(nginx.send("/above%d" % i))
    for ask in asks:
        ask.answer()
    return requests_of(nginx, "above%d" % i, len(times))


def run_ab(nginx, i):
    url = "http://127.0.0.1:%d/below%d" % (nginx.port, i)
    subprocess.run(["ab", "-q", "-n", str(AB), "-c", str(AB_AT_ONCE), url], check=True,
                   stdout=subprocess.DEVNULL)
    return requests_of(nginx, "below%d" % i, AB)


def draw_panel(d, x, y, width, height, setting, requests):
    at_once = sum(r.outcome == "PASSED" for r in requests)
    waited = sum(r.outcome == "DELAYED" for r in requests)
    d.text(x, y - 10, setting or "without burst", bold=True, size=13)
    d.text(x + width, y - 10, "%d at once, %d waited, %d refused"
           % (at_once, waited, len(requests) - at_once - waited), "end", size=12)

    def across(seconds):
        return x + width * seconds / SPAN

    for second in range(int(SPAN) + 1):
        d.line(across(second), y, across(second), y + height, opacity=0.25)
        d.text(across(second), y + height + 15, "%d s" % second, "middle", size=11)
    step = height / len(requests)
    for row, r in enumerate(requests):
        up = y + step * row
        if not r.passed:
            d.rect(across(r.begin) - 2, up, 4, step - 0.8, BOUND)
        else:
            d.rect(across(r.begin), up, across(r.end) - across(r.begin), step - 0.8, WAITED, 0.6)
            d.rect(across(r.end) - 2, up, 4, step - 0.8, ADMITTED)


def draw_ab(d, x, y, width, height, runs):
    for n in range(0, AB + 1, 20):
        up = y + height * (1 - n / AB)
        d.line(x, up, x + width, up, opacity=0.25)
        d.text(x - 6, up + 4, n, "end", size=11)
    for tenth in range(0, int(AB_SPAN * 10) + 1, 2):
        across = x + width * tenth / 10 / AB_SPAN
        d.text(across, y + height + 15, "%.1f s" % (tenth / 10), "middle", size=11)
    for i, requests in enumerate(runs):
        points, passed = [(x, y + height)], 0
        for end in sorted(r.end for r in requests if r.passed):
            across = x + width * end / AB_SPAN
            points += [(across, y + height * (1 - passed / AB)),
                       (across, y + height * (1 - (passed + 1) / AB))]
            passed += 1
        d.path(points, COLOURS[i], 2.2)
        d.rect(x + width - 270, y + 104 + 17 * i, 12, 12, COLOURS[i])
        d.text(x + width - 252, y + 114 + 17 * i, "%s: %d of %d passed"
               % (SETTINGS[i] or "without burst", passed, AB), size=12)


def legend(d, x, y):
    for colour, label in [(ADMITTED, "answered"), (WAITED, "waits in nginx"), (BOUND, "refused")]:
        d.rect(x, y - 10, 12, 12, colour, 0.6 if colour == WAITED else 1)
        d.text(x + 18, y, label, size=12)
        x += 46 + 6.7 * len(label)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: nginx-pictures.py BUILD")
    module = os.path.join(sys.argv[1], "nginx/ngx_http_weir_module.so")
    with start(module) as nginx:
        crowds = [run_crowds(nginx, i) for i in range(len(SETTINGS))]
        abs_ = [run_ab(nginx, i) for i in range(len(SETTINGS))]
    d = Drawing(860, 760, "weir_req with burst, nodelay and delay")
    d.text(30, 22, "rate=%dr/s: %d requests at once, %d one by one, %d at once"
           % (RATE, CROWD, STRAGGLERS, CROWD_AGAIN), bold=True, size=15)
    legend(d, 530, 22)
    for i, requests in enumerate(crowds):
        draw_panel(d, 30 + i % 2 * 420, 62 + i // 2 * 215, 390, 160, SETTINGS[i], requests)
    d.text(30, 500, "ab -n %d -c %d on rate=%dr/s: answers with 200, over time"
           % (AB, AB_AT_ONCE, AB_RATE), bold=True, size=15)
    draw_ab(d, 50, 520, 780, 200, abs_)
    d.write(os.path.join(HERE, "..", "docs", "picture-nginx.svg"))
    for setting, requests in zip(SETTINGS, abs_):
        print("ab -n %d -c %d, %s: %d passed" % (AB, AB_AT_ONCE, setting or "without burst",
                                                 sum(r.passed for r in requests)))


if __name__ == "__main__":
    main()
