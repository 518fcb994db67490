/* switched.c -- a process that removes a limiter is stopped just before it clears the place's
 * switch by hand.
 *
 * Meanwhile the limiter is wanted again, and an operator switches it.  When the process goes on,
 * the switch must stay.
 */
#include <stdio.h>

#include "crash/stepping.h"
#include "table/holders.h"
#include "table/registry.h"

#define S   WEIR_SECOND
#define NOW (1000000 * S)
#define DAY (86400 * S)

static const char path[] = "switched.weir";
static struct weir_table *table;
static int *done;

static int complain(const char *what)
{
    printf("switched: %s\n", what);
    return 1;
}

/* In use until it is released. */
static struct weir_limiter *join(void)
{
    const struct weir_limit limit = { .count = 5, .period = S };
    struct weir_limiter *limiter = NULL;

    (void)weir_limiter_create(&limiter, table, "l", &limit, NULL);
    return limiter;
}

static void be_tender(void *context)
{
    (void)context;
    (void)weir__holder_me(table);
    stepping_begin();
    weir_table_tend(table, NOW + 2 * DAY);
    stepping_begin(); /* it lives on */
}

/* Steps until the switch changes, or to the instruction `until`; returns the last one. */
static uint64_t step(struct stepped *s, const struct weir__place *place, uint64_t until)
{
    uint64_t pc = 0, at = stepping_pc(s);

    for (long n = 0; n < STEPPING_MOST && at != until; n++) {
        pc = at;
        if (stepping_go(s, PTRACE_SINGLESTEP) != STEPPING_STOPPED || weir__get(&place->mode) == 0)
            break;
        at = stepping_pc(s);
    }
    return pc;
}

/* A limiter that was switched, and that nobody has used for more than a day. */
static bool make_table(const struct weir__place **place)
{
    const struct weir_table_options options = {
        .path = path, .keys = 16, .slab = 1 << 16, .limiters = 2, .guards = 1, .bans = 1
    };
    struct weir_limiter *limiter;

    unlink(path);
    if (weir_table_create(&table, &options, NULL) != WEIR_OK || (limiter = join()) == NULL)
        return false;
    weir__limiter_set_mode(limiter, WEIR_SHADOW);
    *place = limiter->place;
    weir_limiter_release(limiter);
    weir_table_tend(table, NOW);
    return true;
}

/* Where the switch is cleared; 0: nowhere. */
static uint64_t find_instruction(void)
{
    const struct weir__place *place;
    struct stepped tender;

    if (!make_table(&place) || !stepping_start(&tender, be_tender, NULL, done))
        return 0;
    uint64_t pc = step(&tender, place, 0);
    bool cleared = weir__get(&place->mode) == 0;
    stepping_kill(&tender);
    weir_table_destroy(table);
    return cleared ? pc : 0;
}

static int run(uint64_t clears)
{
    const struct weir__place *place;
    struct stepped tender;

    if (!make_table(&place) || !stepping_start(&tender, be_tender, NULL, done))
        return complain("there is no table");
    step(&tender, place, clears);
    bool stopped = weir__get(&place->mode) != 0;
    struct weir_limiter *limiter = join();
    if (limiter != NULL)
        weir__limiter_set_mode(limiter, WEIR_OFF);
    stepping_go(&tender, PTRACE_CONT);
    int code = !stopped          ? complain("it was not stopped where it matters")
               : limiter == NULL ? complain("nobody can use the limiter")
               : weir__limiter_mode(limiter) != WEIR_OFF ? complain("the switch has gone")
                                                         : 0;
    stepping_kill(&tender);
    weir_table_destroy(table);
    return code;
}

int main(void)
{
    if (!stepping_is_permitted())
        return STEPPING_FORBIDDEN;
    done = stepping_room(sizeof(*done));
    uint64_t clears = find_instruction();
    int code = clears == 0 ? complain("the switch is never cleared") : run(clears);
    unlink(path);
    return code;
}
