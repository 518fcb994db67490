/* displaced.c -- a ticker is stopped just before it corrects in_flight, for longer than a minute.
 *
 * Another takes its place and corrects the same difference.  When the first one goes on, it does so
 * a second time: in_flight is too low, and more are let in than there are permits.  Sweeps must
 * find that, too.
 */
#include <stdio.h>

#include "crash/stepping.h"
#include "guard/guard.h"

#define S     WEIR_SECOND
#define NOW   (1000000 * S)
#define SWEEP (S / 2) /* more than between two sweeps */

static const char path[] = "displaced.weir";
static struct weir_guard *guard;
static int *done;

static void look(weir_time now)
{
    struct weir_guard_info info;

    weir_guard_get(guard, now, &info);
}

static void be_ticker(void *context)
{
    (void)context;
    (void)weir__holder_me(guard->table);
    stepping_begin();
    look(NOW + S);
    stepping_begin(); /* it lives on: a death would make sweeps look for a difference */
}

/* One permit has a seat, and one was counted by a process that has died since: the next sweep
 * corrects that. */
static void prepare(void)
{
    struct weir__learnt *l = &guard->record->learnt;

    guard->record->in_flight = 2;
    guard->record->tick_at = guard->record->sweep_at = NOW;
    guard->record->ticker = 0;
    l->drift = 1;
    l->drift_times = 7;
    l->watching = 24;
}

/* Steps until in_flight changes, or to the instruction `until`; returns the last one. */
static uint64_t step(struct stepped *s, uint64_t until)
{
    uint64_t pc = 0, at = stepping_pc(s);

    for (long n = 0; n < STEPPING_MOST && at != until; n++) {
        pc = at;
        if (stepping_go(s, PTRACE_SINGLESTEP) != STEPPING_STOPPED ||
            weir__get(&guard->record->in_flight) != 2)
            break;
        at = stepping_pc(s);
    }
    return pc;
}

static void sweep_often(weir_time from)
{
    for (int i = 0; i < 60; i++)
        look(from + i * SWEEP);
}

static int complain(const char *what)
{
    printf("displaced: %s; in_flight is %lld, and one has a seat\n", what,
           (long long)guard->record->in_flight);
    return 1;
}

static int run(void)
{
    struct stepped ticker;
    const struct weir_ask ask = { .cost = 1, .now = NOW };
    struct weir_permit permit;
    struct weir_decision d;

    if (!weir_enter(guard, &ask, &permit, &d))
        return complain("it refuses");
    prepare();
    if (!stepping_start(&ticker, be_ticker, NULL, done))
        return STEPPING_FORBIDDEN;
    uint64_t corrects = step(&ticker, 0);
    stepping_kill(&ticker);
    if (weir__get(&guard->record->in_flight) != 1)
        return complain("the sweep did not correct it");
    look(NOW + 2 * S); /* the death is seen now, not later */
    prepare();
    if (!stepping_start(&ticker, be_ticker, NULL, done))
        return STEPPING_FORBIDDEN;
    step(&ticker, corrects);
    sweep_often(NOW + 100 * S);
    bool once = weir__get(&guard->record->in_flight) == 1;
    stepping_go(&ticker, PTRACE_CONT);
    bool twice = weir__get(&guard->record->in_flight) == 0;
    sweep_often(NOW + 200 * S);
    int code = !once    ? complain("nobody took its place")
               : !twice ? complain("it was not stopped where it matters")
               : weir__get(&guard->record->in_flight) != 1 ? complain("the difference stays")
                                                           : 0;
    stepping_kill(&ticker);
    return code;
}

int main(void)
{
    struct weir_table *table;
    struct weir_error error;
    struct weir_guard_options options = { .max = 4, .lease = 3600 * S };

    unlink(path);
    done = mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (weir_table_create(&table, &(struct weir_table_options){ .path = path, .keys = 16 },
                          &error) ||
        weir_guard_create(&guard, table, "g", &options, &error)) {
        printf("displaced: %s\n", error.text);
        return 1;
    }
    int code = run();
    weir_table_destroy(table);
    unlink(path);
    return code;
}
