#!/usr/bin/env python3
"""nginx-zone.py MODULE [TEST...] -- the table of a real nginx: shared by workers, kept over
reloads, restarts and a new binary."""
import os
import signal
import stat
import subprocess
import tempfile
import threading

from nginxing import Backend, Nginx, environment, is_gone, nginx_with
from serving import run_tests, until, write

ZONE = "weir_req_zone $arg_k zone=one:1m rate=1r/h;"
BURST = "location / { weir_req zone=one burst=%d nodelay; }"


def load(nginx, n, threads=8, path="/?k=a"):
    """Asks n times from several threads; the statuses."""
    found = []

    def ask(times):
        found.extend(nginx.statuses(times, path))

    running = [threading.Thread(target=ask, args=(n // threads,)) for _ in range(threads)]
    for thread in running:
        thread.start()
    return running, found


def finish(load):
    running, found = load
    for thread in running:
        thread.join()
    return found


def test_N3_workers_share_it_exactly(module):
    with Nginx(module, ZONE, BURST % 99, workers=3) as nginx:
        found = finish(load(nginx, 400))
        assert found.count(200) == 100 and found.count(429) == 300, found


def test_N3_a_reload_under_load_keeps_it(module):
    with Nginx(module, ZONE, BURST % 299, workers=2) as nginx:
        going_on = load(nginx, 800)
        for _ in range(3):
            nginx.reload()
        found = finish(going_on)
        assert found.count(200) == 300 and found.count(429) == 500, found


def test_N3_another_rate_comes_with_a_reload(module):
    with Nginx(module, ZONE, BURST % 1) as nginx:
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        nginx.configure(http=ZONE.replace("1r/h", "2r/h"))
        nginx.reload()
        # what a key has used stays used: two of two
        assert int(nginx.get("/?k=a").headers["retry-after"]) <= 1800
        nginx.configure(http=ZONE.replace("$arg_k", "$arg_k$arg_l"))
        nginx.reload()
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]  # another key, other states


def test_N3_a_reload_that_fails_changes_nothing(module):
    with Nginx(module, ZONE, BURST % 1) as nginx:
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        workers = nginx.workers()
        # the configuration is right, but the port is not to be had
        nginx.configure(http=ZONE.replace("1r/h", "1000000r/s"),
                        server=BURST % 1 + "} server { listen 192.0.2.1:1;")
        os.kill(nginx.pid(), signal.SIGHUP)
        until("it fails", lambda: nginx.logged(r"\[emerg\].*192.0.2.1:1"), 60)
        assert nginx.statuses(1, "/?k=a") == [429] and nginx.workers() == workers


def test_N3_a_restart_keeps_it(module):
    with Nginx(module, ZONE, BURST % 1) as nginx:
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        worker = nginx.workers()[0]
        os.kill(nginx.pid(), signal.SIGKILL)
        os.kill(worker, signal.SIGKILL)
        nginx.process.wait()
        until("both are gone", lambda: is_gone(worker), 60)
        assert nginx.start()
        assert nginx.statuses(2, "/?k=a") == [429, 429]
        assert nginx.statuses(3, "/?k=b") == [200, 200, 429]


def test_N3_a_new_binary_keeps_it(module):
    with Nginx(module, ZONE, BURST % 299, workers=2, orphan=True) as nginx:
        old = nginx.pid()
        going_on = load(nginx, 800)
        os.kill(old, signal.SIGUSR2)
        until("the new one runs", lambda: nginx.pid() not in (None, old) and nginx.workers(), 60)
        os.kill(old, signal.SIGQUIT)
        found = finish(going_on)
        assert found.count(200) == 300 and found.count(429) == 500, found
        until("the old one has ended", lambda: is_gone(old), 60)
        assert nginx.statuses(1, "/?k=a") == [429]
        new = nginx.pid()
        os.kill(new, signal.SIGQUIT)
        until("so has the new one", lambda: is_gone(new), 60)


def test_N3_a_daemon_keeps_it(module):
    """Its master is not the process that has opened the table."""
    http = ZONE + "weir_conn_zone $arg_c zone=c:1m;"
    server = BURST % 1 + "location /c { weir_conn c 1; proxy_pass http://unix:{folder}/backend; }"
    with Nginx(module, http, BURST % 1, workers=2, daemon=True, kills=True) as nginx:
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        nginx.configure(server=server.replace("{folder}", nginx.folder))
        nginx.reload()
        assert nginx.get("/?k=a").status == 429
        with Backend(nginx) as backend:
            ask = nginx.send("/c?c=x")
            connection = backend.accept()
            assert nginx.get("/c?c=x").status == 429
            workers = nginx.workers()
            for worker in workers:
                os.kill(worker, signal.SIGKILL)
            until("others run", lambda: set(nginx.workers()).isdisjoint(workers) and
                  len(nginx.workers()) == 2, 60)
            ask.leave()
            connection.close()
            until("its place is free", lambda: is_let_in(nginx, backend), 60)
        master = nginx.pid()
        os.kill(master, signal.SIGQUIT)
        until("it has ended", lambda: is_gone(master), 60)
        assert nginx.start() and nginx.get("/?k=a").status == 429
        master = nginx.pid()
        os.kill(master, signal.SIGQUIT)
        until("it has ended", lambda: is_gone(master), 60)


def is_let_in(nginx, backend):
    ask = nginx.send("/c?c=x")
    until("an answer, or let in", lambda: ask.is_answered() or backend.is_asked(), 60)
    if not ask.is_answered():
        backend.answer(backend.accept())
    return ask.answer().status == 200


def test_N3_killed_workers_give_nothing_away(module):
    with Nginx(module, ZONE, BURST % 299, workers=2, kills=True) as nginx:
        going_on = load(nginx, 800)
        for _ in range(3):
            workers = nginx.workers()
            os.kill(workers[0], signal.SIGKILL)
            until("another runs", lambda: set(nginx.workers()) - set(workers), 60)
        found = finish(going_on)
        # a request may have died with its worker, after it was granted
        assert 270 <= found.count(200) <= 300 and nginx.get("/?k=a").status == 429, found


def test_N3_belongs_to_the_workers_user(module):
    with Nginx(module, ZONE, BURST % 1) as nginx:
        found = os.stat(nginx.path("nginx.weir"))
        assert stat.S_IMODE(found.st_mode) == 0o600
        assert found.st_uid == os.stat("/proc/%d" % nginx.workers()[0]).st_uid


def test_N3_where_one_says(module):
    with Nginx(module, ZONE, BURST % 1, main="weir_table own.table;") as nginx:
        assert os.path.exists(nginx.path("own.table"))
        assert not os.path.exists(nginx.path("nginx.weir"))
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        nginx.configure(main="weir_table missing/own.table;")
        assert nginx.test()[0] == 0  # it cannot know yet
        os.kill(nginx.pid(), signal.SIGHUP)
        until("it fails", lambda: nginx.logged(r"\[emerg\].*missing/own.table"), 60)
        assert nginx.statuses(1, "/?k=a") == [429]


def test_N3_other_sizes_begin_anew(module):
    with Nginx(module, ZONE, BURST % 1) as nginx:
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        first = os.stat(nginx.path("nginx.weir"))
        for http in [ZONE.replace("1m", "900k"),  # as good as the same
                     ZONE + "weir_req_zone $arg_k zone=small:100k rate=1r/s;"]:
            nginx.configure(http=http)
            nginx.reload()
            assert nginx.get("/?k=a").status == 429
        nginx.configure(http=ZONE.replace("1m", "10m"))
        nginx.reload()
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        assert os.stat(nginx.path("nginx.weir")).st_ino != first.st_ino
        with open(nginx.path("nginx.weir"), "r+b") as file:
            file.write(b"no table")
        nginx.end()
        assert nginx.start() and nginx.statuses(3, "/?k=a") == [200, 200, 429]


def damage(path, name):
    """The algorithm of a limiter's record."""
    with open(path, "r+b") as file:
        file.seek(file.read().index(name) + 64 + 8)
        file.write(b"\xff" * 4)


def test_N3_a_damaged_table_begins_anew(module):
    """A disk may keep a part of it.  Whoever shares it must say so."""
    with Nginx(module, ZONE, BURST % 1) as nginx:
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        nginx.end()
        damage(nginx.path("nginx.weir"), b"nginx:one:")
        assert nginx.start() and nginx.logged(r"\[warn\].*makes no sense") == 1, nginx.log()
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        with open(nginx.path("nginx.weir"), "r+b") as file:
            file.write(bytes(os.path.getsize(nginx.path("nginx.weir"))))
        nginx.reload()
        assert nginx.statuses(3, "/?k=b") == [200, 200, 429]
        nginx.reload()
        assert nginx.statuses(1, "/?k=b") == [429]
    with Nginx(module, ZONE, BURST % 1, main="weir_table own.table;") as nginx:
        nginx.end()
        damage(nginx.path("own.table"), b"nginx:one:")
        code = subprocess.run(nginx.command(), env=environment(module), stderr=subprocess.DEVNULL,
                              timeout=60).returncode
        assert code == 1 and nginx.logged(r"\[emerg\].*makes no sense") == 1, nginx.log()
        os.unlink(nginx.path("own.table"))
        assert nginx.start()


def test_N3_a_reload_after_the_table_was_cut(module):
    """Its workers die of it; the master does not."""
    for size in (0, 4096, 100000):
        with Nginx(module, ZONE + "weir_conn_zone $arg_c zone=c:1m;", BURST % 1,
                   kills=True) as nginx:
            nginx.bad = "no sanitizer likes that"
            assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
            os.truncate(nginx.path("nginx.weir"), size)
            os.kill(nginx.pid(), signal.SIGHUP)
            until("it is seen", lambda: nginx.logged("was truncated"), 60)
            until("it goes on anew", lambda: nginx.logged("start worker process ") > 1, 60)
            until("it answers", lambda: nginx.get("/?k=a").status == 429, 60)
            until("a fresh key passes", lambda: nginx.get("/?k=b").status == 200, 60)


CUT = BURST % 1 + """
    location /dry { weir_req_dry_run on; weir_req zone=one; try_files /index.html =404; }
    location /free { try_files /index.html =404; }
    location = /status { weir_status; }"""


def cut(nginx, name, size=0):
    """Its one worker dies of it, and the next one refuses."""
    said, died = (nginx.logged(words) for words in ["are refused until", "exited on signal"])
    nginx.bad = "no sanitizer likes that"
    os.truncate(nginx.path(name), size)
    nginx.get("/?k=a")
    until("the next one knows", lambda: nginx.logged("are refused until") == said + 1, 60)
    assert nginx.statuses(5, "/?k=a") == [503] * 5 and nginx.get("/status").status == 503
    assert nginx.statuses(2, "/dry?k=a") == [200] * 2 and nginx.get("/free").status == 200
    assert nginx.logged("exited on signal") == died + 1, nginx.log()


def test_N3_workers_do_not_die_again_of_a_table_that_was_cut(module):
    with Nginx(module, ZONE, CUT, kills=True) as nginx:
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        cut(nginx, "nginx.weir")
        os.kill(nginx.workers()[0], signal.SIGKILL)  # as the next one, and the next
        until("another one refuses", lambda: nginx.logged("are refused until") == 2, 60)
        nginx.reload()
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        cut(nginx, "nginx.weir", 4096)
        nginx.configure(http="", server="location = /status { weir_status; }")
        nginx.reload()  # without a table
        assert nginx.get("/status").status == 200
        nginx.configure(http=ZONE, server=CUT)
        nginx.reload()
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        cut(nginx, "nginx.weir", 100)  # and it ends well


def test_N3_a_table_of_others_that_was_cut(module):
    """A reload is refused: others may use it.  If it was removed, it begins anew."""
    with Nginx(module, ZONE, CUT, kills=True, main="weir_table own.table;") as nginx:
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        cut(nginx, "own.table", 4096)
        for times in (1, 2):
            os.kill(nginx.pid(), signal.SIGHUP)
            until("it is seen", lambda: nginx.logged(r"truncated: stop everything") == times, 60)
            assert nginx.statuses(2, "/?k=a") == [503] * 2
        assert os.path.getsize(nginx.path("own.table")) == 4096  # it is as it was
        os.unlink(nginx.path("own.table"))
        nginx.reload()
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]


def test_N3_other_sizes_that_fail_change_nothing(module):
    rules = "version: 1\nrules: [{ name: r, key: '{arg.r}', limit: 1/1h }]\n"
    http = "weir_rules rules.yaml;" + ZONE
    with nginx_with(module, rules, http, BURST % 1) as nginx:
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        first = os.stat(nginx.path("nginx.weir"))
        for times in (1, 2):
            nginx.configure(http=http.replace("1m", "10m"),
                            server=BURST % 1 + "} server { listen 192.0.2.1:1;")
            os.kill(nginx.pid(), signal.SIGHUP)
            until("it fails", lambda: nginx.logged(r"\[emerg\].*192.0.2.1:1") == times, 60)
            assert nginx.statuses(1, "/?k=a") == [429]
            until("it is undone", lambda: not os.path.exists(nginx.path("nginx.weir.next")), 60)
            assert os.stat(nginx.path("nginx.weir")).st_ino == first.st_ino
            assert nginx.logged("begins anew") == 0, nginx.log()
            nginx.configure(http=http, server=BURST % 1)
            nginx.reload()
            assert nginx.statuses(1, "/?k=a") == [429]  # by the same table
        nginx.configure(http=http.replace("1m", "10m"))
        nginx.reload()
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        assert nginx.statuses(2, "/?r=a") == [200, 429]
        nginx.reload()
        assert nginx.statuses(1, "/?k=a") == [429]


def test_N3_one_process_and_a_reload(module):
    """A request that waits goes on with the rules that it came by.  (nginx takes the memory of a
    zone that is gone away at once, under all its modules.)"""
    zone = ZONE.replace("1r/h", "1r/s")
    server = "location / { weir_req zone=one burst=1; try_files /index.html =404; }"
    with tempfile.TemporaryDirectory() as folder:
        write(folder + "/rules.yaml", "version: 1\nrules: [{ name: r, limit: 1/1h }]\n")
        with Nginx(module, zone + "weir_rules %s/rules.yaml;" % folder, server, workers=0,
                   main="master_process off;") as nginx:
            assert nginx.get("/?k=a").status == 200
            waits = nginx.send("/?k=a")
            until("it waits", lambda: nginx.logged("delaying request"), 60)
            nginx.configure(http=zone)
            os.kill(nginx.pid(), signal.SIGHUP)
            assert waits.answer().status == 429


def test_N3_more_zones_than_room(module):
    """A table without room for them begins anew, and one with room is kept."""
    def conns(names):
        http = ZONE.replace("1m", "%dk" % (1024 - 32 * len(names)))
        return http + "".join("weir_conn_zone $arg_c zone=%s:32k;" % name for name in names)

    with Nginx(module, conns("a"), BURST % 1) as nginx:
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        nginx.configure(http=conns("ab"))
        nginx.reload()
        assert nginx.statuses(1, "/?k=a") == [429]
        for names in ["abcde", "fghij", "klmno", "pqrst", "uvwxy", "z"]:
            nginx.configure(http=conns(names))
            nginx.reload()
        nginx.get("/?k=b")
        nginx.end()
        assert nginx.start() and nginx.statuses(2, "/?k=b") == [200, 429]


def test_N3_renamed_zones_of_connections_keep_the_others(module):
    def conns(name):
        return ZONE + "weir_conn_zone $arg_c zone=%s:32k;" % name

    with Nginx(module, conns("first"), BURST % 1) as nginx:
        assert nginx.statuses(3, "/?k=a") == [200, 200, 429]
        file = os.stat(nginx.path("nginx.weir")).st_ino
        for i in range(10):
            nginx.configure(http=conns("zone%d" % i))
            nginx.reload()
            assert os.stat(nginx.path("nginx.weir")).st_ino == file, i
        assert nginx.statuses(1, "/?k=a") == [429]


def test_N3_absurd_sizes_are_refused(module):
    """By nginx -t, which makes no table."""
    with nginx_with(module, "version: 1\n", "", "") as nginx:
        for http, complaint in [
                (ZONE.replace("1m", "1048577m"), "is too large: 1048576m"),
                (ZONE.replace("1m", "9223372036854775807"), "is too large: 1048576m"),
                ("weir_conn_zone $arg_k zone=c:1048577m;", "is too large: 1048576m"),
                ("weir_rules rules.yaml keys=1073741825;", "N from 1 to 2^30"),
                ("weir_rules rules.yaml keys=9223372036854775807;", "N from 1 to 2^30"),
                ("weir_rules rules.yaml keys=0;", "N from 1 to 2^30")]:
            nginx.configure(http=http)
            code, said = nginx.test()
            assert code == 1 and complaint in said, said


def test_N3_more_than_a_thousand_zones(module):
    zones = "".join(ZONE.replace("one:1m", "z%d:32k" % i) for i in range(1100))
    server = "location / { weir_req zone=z0; weir_req zone=z1099; try_files /index.html =404; }"
    with nginx_with(module, None, ZONE, BURST % 1) as nginx:
        nginx.configure(http=zones, server=server)
        nginx.reload()
        assert nginx.statuses(2, "/?k=a") == [200, 429]


def test_N3_more_keys_than_room(module):
    """They make room for each other, and nobody is refused for that."""
    with Nginx(module, "weir_req_zone $arg_k zone=one:32k rate=1r/h;", BURST % 1) as nginx:
        for i in range(4000):
            assert nginx.get("/?k=%d" % i).status == 200, i
        assert nginx.logged("alert|crit") == 0


if __name__ == "__main__":
    run_tests(globals())
