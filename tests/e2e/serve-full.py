#!/usr/bin/python3
"""serve-full.py WEIR [TEST...] -- a table that is full: floods of keys free nobody, and a rule with
when_full: closed refuses new keys instead of forgetting others; a disk that is full."""
import os
import stat
import subprocess
import tempfile

from serving import Error, Server, run_tests, write

LOGIN = "version: 1\nrules:\n" \
        "  - { name: login, match: { uri: /login }, key: '{account}', limit: 5/1m }\n"


def check(account, uri="/"):
    return ("WEIR.CHECK", "account", account, "uri", uri)


def flood_and_count(weir, rules, flood):
    """How many of 40 spent logins pass again after the flood.  So few that chance does not give
    them more of the slots within reach than their share: a sixth."""
    logins = [check("bob%d" % i, "/login") for i in range(40)]
    with Server(weir, "--keys", "1000", rules=LOGIN + rules) as server, server.resp() as client:
        assert all(a[0] == 1 for _ in range(5) for a in client.many(logins))
        client.many(flood)
        assert server.metric('weir_table_evicted_total{when="early"}') > 1000
        return sum(a[0] for a in client.many(logins))


def test_T2_fresh_accounts_free_no_login(weir):
    rules = "  - { name: account, not: { uri: /login }, key: '{account}', limit: %s }\n"
    flood = [check("eve%d" % i) for i in range(5000)]
    for limit in ["1000/day", "sliding-window 1000/1d", "fixed-window 1/1d", "sliding-log 10/1d"]:
        assert flood_and_count(weir, rules % limit, flood) == 0, limit


def test_T2_keys_under_many_rules_free_no_login(weir):
    rules = "".join("  - { name: r%d, not: { uri: /login }, key: '{account}', limit: 1/%dh }\n"
                    % (i, 10 + i) for i in range(5))
    assert flood_and_count(weir, rules, [check("eve%d" % i) for i in range(3000)]) == 0


def test_T2_limits_that_come_with_the_ask_free_no_login(weir):
    assert flood_and_count(weir, "", [("CL.THROTTLE", "eve%d" % i, 999, 1000, 86400)
                                      for i in range(5000)]) == 0
    logins = [("CL.THROTTLE", "bob%d" % i, 4, 5, 60) for i in range(40)]
    flood = [("CL.THROTTLE", "eve%d" % i, 999, 1000, 86400) for i in range(5000)]
    with Server(weir, "--keys", "1000") as server, server.resp() as client:
        assert all(a[0] == 0 for _ in range(5) for a in client.many(logins))
        client.many(flood)
        assert all(a[0] == 1 for a in client.many(logins))


CLOSED = "version: 1\nrules:\n" \
         "  - name: login\n    key: '{account}'\n    limit: %s\n    when_full: closed\n" \
         "    ban: { refusals: 3/1h, for: 1h }\n"


def test_T2_closed_refuses_new_keys_and_forgets_none(weir):
    for limit in ["1/1h", "sliding-window 1/1h"]:
        with Server(weir, "--keys", "1000", rules=CLOSED % limit) as server, \
                server.resp() as client:
            server.clock(0)  # which also looks for events
            asks = [check("a%d" % i) for i in range(3000)]
            answers = client.many(asks)
            known = [ask for ask, a in zip(asks, answers) if a[0] == 1]
            refused = [a for a in answers if a[0] == 0]
            assert 1000 <= len(known) < 1300, len(known)
            assert {a[8] for a in refused} == {"no-room"}, refused[0]
            assert all(0 < a[4] <= 3960000 for a in refused)
            assert server.metric("weir_table_no_room_total") == len(refused)
            assert server.metric('weir_table_evicted_total{when="early"}') == 0
            assert {a[8] for a in client.many(known)} == {"limited"}  # nobody was forgotten

            new = next(ask for ask, a in zip(asks, answers) if a[0] == 0)
            answer = server.http().check(account=new[2], uri="/")
            assert answer.status == 503 and int(answer.headers["retry-after"]) > 0
            assert answer.json()["code"] == "weir-no-room", answer.body
            assert "no-room" in client("WEIR.EXPLAIN", *new[1:]), "explain says why"
            server.clock(1)
            told = [e for e in client.json("WEIR.EVENTS") if e["event"] == "table-full"]
            assert len(told) == 1 and "refused" in told[0]["text"], told
            assert client.json("WEIR.STATUS")["table"]["no_room"] > 0

            server.clock(7201)  # all are idle, so there is room
            assert all(a[0] == 1 for a in client.many(asks[:500]))


ON_A_FULL_DISK = """#!/bin/sh
mount -t tmpfs -o size=24m tmpfs {disk} &&
{weir} take -q --table {disk}/table --keys 20000 --limit 1/1s k || exit 77
cat /dev/zero >{disk}/rest 2>/dev/null
truncate -s -8K {disk}/rest # for its name, not for its permits
exec {weir} "$@"
"""


def test_T4_a_guard_on_a_full_disk_is_refused(weir):
    """In a tmpfs even reading bytes that have no space yet is a signal."""
    if subprocess.run(["unshare", "-rm", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: no disk of its own can be had")
        return
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "weir")
        write(script, ON_A_FULL_DISK.format(disk=folder + "/disk", weir=weir))
        os.chmod(script, stat.S_IRWXU)
        os.mkdir(folder + "/disk")
        start = os.path.join(folder, "start")
        write(start, "#!/bin/sh\nexec unshare -rm %s \"$@\"\n" % script)
        os.chmod(start, stat.S_IRWXU)
        with Server(start, table=folder + "/disk/table") as server, server.resp() as client:
            guard = "version: 1\nguards:\n  - { name: g, concurrency: { max: 9, key: '{ip}' } }\n"
            answer = client("WEIR.RULES.SET", guard)
            assert isinstance(answer, Error) and "guard 'g': cannot get" in str(answer), answer
            assert client("PING") == "PONG"


if __name__ == "__main__":
    run_tests(globals())
