/* stop-drop.c -- a process is stopped while it drops a limiter or a guard.
 *
 *     stop-drop STRIDE   at every STRIDE-th instruction
 *
 * Meanwhile
 *
 *     another name   gets the place, and is left: it must stay as such, a limiter while a key of it
 *                    is spent, a guard for an hour
 *     another user   drops it too: it must go, although each of them has seen the other
 */
#include "crash/one-place.h"

#define S      WEIR_SECOND
#define NOW    (1000000 * S)
#define MINUTE (60 * S)
#define LONGER 10 /* is the path if others are asked whether they live */

static int *done;
static bool guards;                  /* else limiters */
static bool other_user;              /* else another name */
static struct weir_limiter *limiter; /* in use */
static struct weir_guard *guard;

/* --------------------------------------------------------------- names ---- */

/* Uses it, after it was made, and spends a key.  False: there is no place. */
static bool join(const char *name)
{
    const struct weir_limit limit = { .count = 1, .period = 86400 * S };
    const struct weir_ask ask = { .key = { "k", 1 }, .cost = 1, .now = NOW };
    struct weir_decision d;

    if (guards)
        return weir_guard_create(&guard, table, name, &(struct weir_guard_options){ .max = 3 },
                                 NULL) == WEIR_OK;
    if (weir_limiter_create(&limiter, table, name, &limit, NULL) != WEIR_OK)
        return false;
    if (name[0] != 'a')
        weir_take(limiter, &ask, &d);
    return true;
}

static void leave(bool dropped)
{
    if (guards)
        (dropped ? weir_guard_drop : weir_guard_release)(guard);
    else
        (dropped ? weir_limiter_drop : weir_limiter_release)(limiter);
}

static bool leave_one(const char *name)
{
    bool joined = join(name);

    if (joined)
        leave(false);
    return joined;
}

static bool is_there(const char *name)
{
    struct weir__names *of = guards ? &table->guards : &table->limiters;

    return weir__name_find(table, of, name) != WEIR__NO_PLACE;
}

/* ---------------------------------------------------------------- time ---- */

/* All that were dropped go by then; tending takes place every ten seconds. */
static weir_time pass_minutes(weir_time now, int minutes)
{
    for (int i = 0; i <= 6 * minutes; i++)
        weir_table_tend(table, now + i * 10 * S);
    return now + (minutes + 1) * MINUTE;
}

/* -------------------------------------------------------------- rounds ---- */

static void be_victim(void *context)
{
    (void)context;
    if (!other_user && !join("a")) /* else it has that of its parent */
        _exit(1);
    stepping_begin();
    leave(true);
    __atomic_store_n(done, 1, __ATOMIC_RELEASE);
    stepping_begin(); /* it lives on */
}

static bool begin(void)
{
    (void)weir__guarding_of(table); /* one that knows no guards leaves them to others */
    *done = 0;
    return !other_user || join("a");
}

static bool go_on(struct stepped *victim, enum stepping at)
{
    return at != STEPPING_STOPPED || stepping_go(victim, PTRACE_CONT) == STEPPING_ENDED;
}

static const char *try_other_name(struct stepped *victim, enum stepping at)
{
    /* A guard that was only left goes after an hour. */
    weir_time now = pass_minutes(NOW, guards ? 62 : 2);
    bool came = !is_there("a") && leave_one("b");

    if (!go_on(victim, at))
        return "it does not go on";
    (void)pass_minutes(now, 2);
    if (is_there("a"))
        return "it stays after it was dropped";
    if (came && !is_there("b"))
        return "another one goes";
    return came || leave_one("b") ? NULL : "its place is not free";
}

static const char *try_other_user(struct stepped *victim, enum stepping at)
{
    const struct weir__place *place = &table->places[guards ? table->guards.first : 0];

    leave(true);
    if (!go_on(victim, at))
        return "it does not go on";
    return weir__get(&place->dropped) ? NULL : "two drop it, and it is not dropped";
}

static const char *go_on_beside_others(struct stepped *victim, enum stepping at)
{
    return other_user ? try_other_user(victim, at) : try_other_name(victim, at);
}

int main(int argc, char **argv)
{
    size_t stride = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    int failed = 0;

    if (!stepping_is_permitted())
        return STEPPING_FORBIDDEN;
    done = stepping_room(sizeof(*done));
    const struct story story = { "stop-drop", "stop-drop.weir",   begin, be_victim,
                                 done,        go_on_beside_others };
    for (int i = 0; i < 4; i++) {
        guards = i >= 2;
        other_user = i % 2 == 1;
        failed += stop_everywhere(&story, (stride > 0 ? stride : 1) * (other_user ? LONGER : 1),
                                  guards ? "a guard" : "a limiter");
    }
    return failed > 0;
}
