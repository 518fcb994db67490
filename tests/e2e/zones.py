#!/usr/bin/env python3
"""zones.py WINDOWS SEED ZONES -- calendar windows against Python's own reader of the time zone
database.

WINDOWS is built from windows.c.  Random times from 1970 to 2262, and times around each zone's
changes, in every zone or a random choice: the windows must begin and end where the plainest
possible search says.  A day begins at the first moment at which clocks there show its date or a
later one; exit code 77 (skipped) where there is no database.
"""
import datetime
import random
import subprocess
import sys

try:
    import zoneinfo
except ImportError:
    sys.exit(77)

EPOCH = datetime.date(1970, 1, 1).toordinal()
UTC = datetime.timezone.utc
ZERO = datetime.datetime(1970, 1, 1, tzinfo=UTC)
HOUR, DAY, REACH = 3600, 86400, 26 * 3600


class Zone:
    def __init__(self, name):
        self.name, self.info, self.starts = name, zoneinfo.ZoneInfo(name), {}

    def offset(self, t):
        local = (ZERO + datetime.timedelta(seconds=t)).astimezone(self.info)
        return round(local.utcoffset().total_seconds())

    def date(self, t):
        return (t + self.offset(t)) // DAY

    def first(self, day, low, high, step):
        """The first of low, low + step, ... at which it is that day; the search goes on inside the
        step before it."""
        for t in range(low, high + 1, step):
            if self.date(t) >= day:
                return (t if step == 1
                        else self.first(day, max(low, t - step), t, 60 if step == HOUR else 1))
            if step == HOUR and self.offset(t) != self.offset(t + step):
                found = self.first(day, t, t + step, 60)  # it may be that day for a moment only
                if found is not None:
                    return found
        return None

    def start(self, day):
        if day not in self.starts:
            self.starts[day] = self.first(day, day * DAY - REACH, day * DAY + REACH, HOUR)
        return self.starts[day]

    def window(self, kind, t):
        day = self.date(t)
        while self.start(day + 1) <= t:
            day += 1
        this, following = edges(kind, day)
        while self.start(following) <= t:
            this, following = edges(kind, following)
        return self.start(this), self.start(following)

    def changes(self, random_of, how_many):
        """Moments around changes of the offset."""
        found = []
        for _ in range(how_many * 4):
            low = random_of.randrange(0, 80 * 365) * DAY
            high = low + 120 * DAY
            if self.offset(low) == self.offset(high):
                continue
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle,
                             high) if self.offset(middle) == self.offset(low) else (low, middle)
            found += [max(0, high + random_of.choice([-DAY, -HOUR, -60, -1, 0, 1, 60, HOUR, DAY]))]
            if len(found) == how_many:
                break
        return found


def edges(kind, day):
    """The first days of the window that has this day, and of the next."""
    if kind == "day":
        return day, day + 1
    if kind == "week":
        monday = day - (day + 3) % 7
        return monday, monday + 7
    date = datetime.date.fromordinal(day + EPOCH)
    year, month = date.year + date.month // 12, date.month % 12 + 1
    return date.replace(day=1).toordinal() - EPOCH, datetime.date(year, month,
                                                                  1).toordinal() - EPOCH


def questions(random_of, zones):
    for zone in zones:
        times = ([0, random_of.randrange(0, 9223286400),
                  random_of.randrange(0, 2 * 10**9)] + zone.changes(random_of, 4))
        for t in times:
            yield zone, random_of.choice(["day", "day", "week", "month"]), t


def main():
    program, seed, most = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    random_of = random.Random(seed)
    names = sorted(n for n in zoneinfo.available_timezones() if n[0].isupper())
    if not names:
        sys.exit(77)
    always = ["Pacific/Apia", "America/St_Johns", "America/Asuncion", "Asia/Beirut",
              "Antarctica/Troll", "Africa/Monrovia", "Europe/Dublin", "America/Nuuk"]
    chosen = (names if most == 0
              else sorted(set(random_of.sample(names,
                                               min(most,
                                                   len(names)))) | {n
                                                                    for n in always if n in names}))
    asked = list(questions(random_of, [Zone(n) for n in chosen]))
    text = "".join("%s %s %d\n" % (zone.name, kind, t) for zone, kind, t in asked)
    told = subprocess.run([program], input=text, stdout=subprocess.PIPE, text=True,
                          check=True).stdout.splitlines()
    failed = len(asked) - len(told)
    for (zone, kind, t), line in zip(asked, told):
        expected = "%d %d" % zone.window(kind, t)
        if line != expected:
            failed += 1
            print("zones.py: %s %s at %d: expected %s got %s" % (zone.name, kind, t, expected,
                                                                 line))
    print("%d passed, %d failed" % (len(asked) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
