#!/usr/bin/env python3
"""nginx-fleet.py MODULE [TEST...] -- rules across the fleet inside a real nginx, with a real
redis-server and weir serve on the same table and on another host's.  Windows of an hour: no test is
so slow that a unit comes back meanwhile."""
import json
import os
import re
import signal
import subprocess

from nginxing import Backend, nginx_with, program
from redising import Redis
from serving import Server, run_tests, until

RULES = """version: 1
rules:
  - name: hourly
    key: "{arg.user}"
    limit: fixed-window 20/1h
    across: fleet
    within: 10s
    when_alone: %s
"""
SERVER = """location / { try_files /index.html =404;
                         add_header What "$weir_outcome" always; }
            location /free { weir_check off; try_files /index.html =404; }
            location = /status { weir_check off; weir_status; }"""


def url(redis):
    return "redis://127.0.0.1:%d" % redis.port


def fleet_nginx(module, redis, alone="share", server=SERVER, rules="", **more):
    http = "weir_rules rules.yaml keys=1000; weir_fleet %s;" % url(redis)
    return nginx_with(module, RULES % alone + rules, http, server, **more)


def fleet_of(nginx):
    return json.loads(nginx.get("/status").body).get("fleet", {})


def joined(nginx, members=1):
    """The host has its part; whichever worker answers."""
    until("the host has joined", lambda: is_member(nginx, members), 60)


def is_member(nginx, members):
    found = fleet_of(nginx)
    return found.get("agent") and found["members"] == members and not found["alone"] and \
        found["connected"] and found["part"] == 1000000 // members


def test_N4_one_limit_over_hosts(module):
    """nginx is one of them, weir serve another."""
    with Redis() as redis, fleet_nginx(module, redis, workers=2) as nginx:
        other = Server(program(module), "--fleet", url(redis), rules=RULES % "share", clock=False)
        with other:
            joined(nginx, 2)
            with other.resp() as client:
                granted = 0
                for _ in range(15):
                    granted += nginx.get("/?user=ann").status == 200
                    granted += client("WEIR.CHECK", "arg.user", "ann")[0]
                assert granted == 20, granted
            refused = nginx.get("/?user=ann")
            assert refused.status == 429 and refused.headers["what"] == "limited", refused.headers
            assert nginx.get("/?user=bob").status == 200


def test_N4_one_limit_and_one_table_with_weir_serve(module):
    """The server may be the agent or a worker of nginx: on one table they are one host."""
    with Redis() as redis, fleet_nginx(module, redis, workers=2) as nginx:
        joined(nginx)
        server = Server(program(module), "--fleet", url(redis), rules=RULES % "share", clock=False,
                        table=nginx.path("nginx.weir"))
        with server, server.resp() as client:
            granted = 0
            for _ in range(15):
                granted += nginx.get("/?user=ann").status == 200
                granted += client("WEIR.CHECK", "arg.user", "ann")[0]
            assert granted == 20, granted
            assert client.json("WEIR.STATUS")["fleet"]["members"] <= 1  # the host


def test_N4_no_worker_is_blocked(module):
    """While Redis is stopped a request waits for units, and others are answered."""
    with Redis() as redis, fleet_nginx(module, redis, "open") as nginx:
        joined(nginx)
        redis.process.send_signal(signal.SIGSTOP)
        try:
            waits = nginx.send("/?user=ann")
            assert nginx.statuses(20, "/free") == [200] * 20
            gone = nginx.send("/?user=bob")
            gone.leave()
            assert nginx.statuses(20, "/free") == [200] * 20
            assert waits.answer().status == 200  # by when_alone, when it is clear
        finally:
            redis.process.send_signal(signal.SIGCONT)


def test_N4_permits_are_not_across_the_fleet(module):
    with Redis() as redis, fleet_nginx(module, redis) as nginx:
        with open(nginx.path("rules.yaml"), "a") as rules:
            rules.write("guards:\n  - name: db\n    concurrency: 10\n    across: fleet\n")
        code, said = nginx.test()
        assert code == 1 and "cannot be across the fleet" in said and "give each" in said, said


def test_N4_alone(module):
    """Redis is gone: nothing passes, everything, or the host's part."""
    for alone, statuses in [("closed", [503] * 3), ("open", [200] * 3), ("share", [200] * 3)]:
        with Redis() as redis, fleet_nginx(module, redis, alone) as nginx:
            joined(nginx)
            assert nginx.get("/?user=ann").status == 200
            redis.kill()
            until("it is noticed", lambda: fleet_of(nginx).get("alone"), 60)
            answers = [nginx.get("/?user=bob") for _ in range(3)]
            assert [answer.status for answer in answers] == statuses, (alone, answers[0].headers)
            redis.start()


def metrics_of(nginx):
    body = nginx.get("/status?format=prometheus").body.decode()
    return dict(re.findall(r"^(weir_fleet_\w+) (\S+)$", body, re.M))


def test_N4_what_is_known_about_the_fleet(module):
    """Whichever worker answers; and the error log says when Redis falls silent."""
    with Redis() as redis, fleet_nginx(module, redis, workers=3) as nginx:
        joined(nginx)
        seen = set()

        def all_answer():
            found = fleet_of(nginx)
            seen.add(found["agent"])
            assert found["part"] == 1000000 and not found["alone"], found
            assert ("members" in found, "connected" in found) == (found["agent"],) * 2, found
            said = metrics_of(nginx)
            assert said["weir_fleet_alone"] == "0", said
            assert said["weir_fleet_part_ratio"] == "1.000000", said
            assert said.get("weir_fleet_members", "1") == "1", said
            return len(seen) == 2
        until("the agent and another worker answer", all_answer, 60)
        assert nginx.logged("Redis") == 0, nginx.log()
        redis.kill()
        until("it is noticed", lambda: metrics_of(nginx)["weir_fleet_alone"] == "1", 60)
        until("the agent says why", lambda: fleet_of(nginx).get("why"), 60)
        until("it is logged", lambda: nginx.logged("Redis does not answer: .*when_alone") == 1, 60)
        redis.start()
        until("that is logged too", lambda: nginx.logged("Redis answers again") == 1, 60)
        assert nginx.logged("Redis does not answer") == 1, nginx.log()


def test_D5_draws_that_are_refused_are_logged(module):
    """Redis is not silent: its user may beat, and not draw."""
    with Redis() as redis, fleet_nginx(module, redis, "closed", workers=2) as nginx:
        joined(nginx)
        redis.ok("ACL", "SETUSER", "default", "resetkeys", "~weir:{fleet:default}*")
        until("it is logged", lambda: nginx.get("/?user=ann").status == 503 and nginx.logged(
            "Redis answers, but draws are refused: .*; rules go by when_alone"), 60)
        redis.ok("ACL", "SETUSER", "default", "~*")
        until("it passes", lambda: nginx.get("/?user=ann").status == 200, 60)
        assert nginx.logged("draws are refused") == 1, nginx.log()
        assert nginx.logged("Redis does not answer") == 0, nginx.log()


def test_N4_guards_of_requests_that_wait_for_units(module):
    rules = """guards: [{ name: backend, concurrency: { max: 2, queue: 9, wait: 1h } }]
"""
    server = """location / { proxy_pass http://unix:{folder}/backend; proxy_read_timeout 300s; }
                location = /status { weir_check off; weir_status; }"""
    with Redis() as redis, fleet_nginx(module, redis, "share", server, rules) as nginx:
        joined(nginx)
        with Backend(nginx) as backend:
            asks = [nginx.send("/?user=u%d" % i) for i in range(6)]  # each of them is dry first
            for _ in range(6):
                backend.answer(backend.accept())
            assert [ask.answer().status for ask in asks] == [200] * 6
        guard, = (guard for guard in json.loads(nginx.get("/status").body)["guards"])
        assert guard["in_flight"] == 0, guard


def test_G7_a_request_that_waits_for_units_is_asked_once_whether_it_is_shed(module):
    """A twentieth is let in.  Each is the first of its account, and waits for units."""
    rules = """guards: [{ name: work, system: { in_flight: 1 }, lease: 1h }]
"""
    server = """location / { try_files /index.html =404; }
                location /held { proxy_pass http://unix:{folder}/backend; }
                location = /status { weir_check off; weir_status; }"""
    with Redis() as redis, fleet_nginx(module, redis, "share", server, rules) as nginx:
        joined(nginx)
        with Backend(nginx) as backend:
            held = [nginx.send("/held?user=ann") for _ in range(10)]
            connections = [backend.accept() for _ in held]

            def is_shedding():
                nginx.get("/?user=bob")
                said = subprocess.run([program(module), "guards", "--table",
                                       nginx.path("nginx.weir"), "--json"],
                                      capture_output=True, text=True).stdout
                return json.loads(said)["guards"][0]["admitted_percent"] <= 6
            until("nearly all are shed", is_shedding, 60)
            statuses = [nginx.get("/?user=u%d" % i).status for i in range(100)]
            assert statuses.count(200) >= 3, statuses
            for connection in connections:
                backend.answer(connection)
            assert [ask.answer().status for ask in held] == [200] * 10


def test_N4_another_worker_goes_on(module):
    with Redis() as redis, fleet_nginx(module, redis, workers=1, kills=True) as nginx:
        joined(nginx)
        assert nginx.statuses(10, "/?user=ann") == [200] * 10
        nginx.reload()
        joined(nginx)
        assert nginx.statuses(5, "/?user=ann") == [200] * 5
        workers = nginx.workers()
        os.kill(workers[0], signal.SIGKILL)
        until("another runs", lambda: set(nginx.workers()) - set(workers), 60)
        joined(nginx)
        # what the killed one had drawn is in the table
        statuses = nginx.statuses(10, "/?user=ann")
        assert statuses == [200] * 5 + [429] * 5, statuses


def test_N4_a_worker_that_logs_everything(module):
    """nginx's debug log looks into the data of each timer."""
    with Redis() as redis, fleet_nginx(module, redis, log="debug") as nginx:
        joined(nginx)
        assert nginx.get("/?user=ann").status == 200
        assert nginx.logged("exited on signal") == 0, nginx.log()[:2000]


def test_N4_a_fleet_that_is_missing_or_misspelt(module):
    with nginx_with(module, RULES % "share", "weir_rules rules.yaml;", SERVER) as nginx:
        code, said = nginx.test()
        assert code == 0 and 'rule "hourly" is across the fleet' in said, said
        nginx.configure(http="weir_fleet redis://127.0.0.1:1;")
        code, said = nginx.test()
        assert code == 0 and "weir_fleet does nothing" in said, said
        assert nginx.statuses(21, "/?user=ann") == [200] * 20 + [429]  # this host's whole limit
        for wrong in ["nonsense"] + ["redis://127.0.0.1 " + word for word in (
                "parts=2", "weight=0", "weight=1000001", "nodes=0", "nodes=1000001",
                "'name=two words'", "name=a/b",
                "node=" + 65 * "n", "node=a weight=1 node=b")]:
            nginx.configure(http="weir_rules rules.yaml; weir_fleet %s;" % wrong)
            code, said = nginx.test()
            assert code == 1 and "weir_fleet" in said, said
            assert "weight=1 node" not in wrong or '"node=a" and "node=b": only one' in said, said


if __name__ == "__main__":
    run_tests(globals())
