/* stop-join.c -- a process is stopped on its way from a name to what has it; meanwhile that goes,
 * and another name gets its place.
 *
 *     stop-join STRIDE   at every STRIDE-th instruction
 *
 * The table has one place for limiters and one for guards.  While the process is stopped the name
 * "a", which nobody uses, goes, and "b" comes; or "b" goes too, and "a" comes back.  When the
 * process goes on it must find "a" or, if that has gone, nothing.
 */
#include <stdio.h>

#include "crash/stepping.h"
#include "guard/guard.h"
#include "table/registry.h"

#define NOW  (1000000 * WEIR_SECOND)
#define LATE (7200 * WEIR_SECOND) /* an unused guard has gone by then */

static const char path[] = "stop-join.weir";

enum way { FIND, CREATE, FIND_GUARD, CREATE_GUARD, WAYS };
enum script { OTHER, AGAIN, SCRIPTS };

static const char *const way_names[] = { "find", "create", "find a guard", "create a guard" };
static const char *const script_names[] = { "another name came", "the name came back" };

/* Shared with the process that is stopped. */
struct book {
    int done, code;
    char found[WEIR__NAME_SIZE]; /* the name of what it uses; "": nothing */
};

static struct weir_table *table;
static struct book *book;
static enum way way;

static void die(const char *what)
{
    printf("stop-join: %s\n", what);
    exit(1);
}

/* ------------------------------------------------------------- names ---- */

static bool is_of_guards(void)
{
    return way == FIND_GUARD || way == CREATE_GUARD;
}

static int create_limiter(const char *name, struct weir_limiter **out)
{
    const struct weir_limit limit = { .count = 5, .period = WEIR_SECOND };

    return weir_limiter_create(out, table, name, &limit, NULL);
}

static int create_guard(const char *name, struct weir_guard **out)
{
    return weir_guard_create(out, table, name, &(struct weir_guard_options){ .max = 3 }, NULL);
}

/* Makes it, and does not use it any more. */
static bool add(const char *name)
{
    struct weir_limiter *limiter = NULL;
    struct weir_guard *guard = NULL;
    int code = is_of_guards() ? create_guard(name, &guard) : create_limiter(name, &limiter);

    if (limiter != NULL)
        weir_limiter_release(limiter);
    if (guard != NULL)
        weir_guard_release(guard);
    return code == WEIR_OK;
}

/* What nobody uses goes. */
static void wait_long(weir_time from)
{
    weir_table_tend(table, from);
    weir_table_tend(table, from + LATE);
}

/* ------------------------------------------------------------ victim ---- */

static int use_limiter(uint32_t *id)
{
    struct weir_limiter *limiter = NULL;
    int code = WEIR_OK;

    if (way == CREATE)
        code = create_limiter("a", &limiter);
    else
        limiter = weir_limiter_find(table, "a");
    *id = limiter != NULL ? limiter->id : WEIR__NO_PLACE;
    return code;
}

static int use_guard(uint32_t *id)
{
    struct weir_guard *guard = NULL;
    int code = WEIR_OK;

    if (way == CREATE_GUARD)
        code = create_guard("a", &guard);
    else
        guard = weir_guard_find(table, "a");
    *id = guard != NULL ? guard->id : WEIR__NO_PLACE;
    return code;
}

static void be_victim(void *context)
{
    const struct weir__names *names = is_of_guards() ? &table->guards : &table->limiters;
    _Alignas(16) unsigned char record[WEIR__GUARD_RECORD] = { 0 };
    uint32_t id;

    (void)context;
    (void)weir__holder_me(table);
    stepping_begin();
    book->code = is_of_guards() ? use_guard(&id) : use_limiter(&id);
    __atomic_store_n(&book->done, 1, __ATOMIC_RELEASE);
    if (id != WEIR__NO_PLACE && weir__record_read(table, names, id, record) != 0)
        memcpy(book->found, ((struct weir__record_head *)(void *)record)->name,
               sizeof(book->found) - 1);
}

/* ------------------------------------------------------------ rounds ---- */

static void make_table(void)
{
    const struct weir_table_options options = {
        .path = path, .keys = 16, .slab = 1 << 16, .limiters = 1, .guards = 1, .bans = 1
    };

    unlink(path);
    if (weir_table_create(&table, &options, NULL) != WEIR_OK || !add("a"))
        die("there is no table");
    memset(book, 0, sizeof(*book));
}

static void remove_table(void)
{
    weir_table_destroy(table);
    unlink(path);
}

/* Whether "a" is there afterwards. */
static bool run_script(enum script script)
{
    wait_long(NOW);
    bool gone = add("b");
    if (!gone || script == OTHER)
        return !gone;
    wait_long(NOW + 2 * LATE);
    if (!add("a"))
        die("the name does not come back");
    return true;
}

static const char *judge(bool there)
{
    bool found = strcmp(book->found, "a") == 0;

    if (book->found[0] != '\0' && !found)
        return "it uses another name's";
    if (there)
        return found ? NULL : "it finds nothing";
    return book->code == WEIR_OK || book->code == WEIR_NO_MEMORY ? NULL : "it takes it for damage";
}

static const char *run_round(const struct path *steps, size_t n, enum script script)
{
    struct stepped victim;
    const char *wrong = NULL;

    make_table();
    if (!stepping_start(&victim, be_victim, NULL, &book->done))
        die("it cannot be traced");
    enum stepping at = stepping_run(&victim, steps, n);
    bool there = run_script(script);
    enum stepping end = at == STEPPING_STOPPED || victim.pid > 0 ? stepping_finish(&victim) : at;
    if (end != STEPPING_ENDED)
        wrong = end == STEPPING_STUCK ? "it waits" : "it died";
    stepping_kill(&victim);
    wrong = wrong != NULL ? wrong : judge(there);
    remove_table();
    return wrong;
}

static int run_way(size_t stride)
{
    struct path steps = { 0 };
    int failed = 0;

    make_table();
    if (stepping_record(be_victim, NULL, &book->done, &steps) != STEPPING_ENDED)
        die("the path cannot be recorded");
    remove_table();
    for (int script = 0; script < SCRIPTS; script++)
        for (size_t n = 0; n < steps.length && failed < 5; n += stride) {
            const char *wrong =
                stepping_is_near(&steps, n) ? run_round(&steps, n, (enum script)script) : NULL;
            failed += wrong != NULL;
            if (wrong != NULL)
                printf("stop-join: %s, stopped after %zu of %zu instructions, %s: %s\n",
                       way_names[way], n, steps.length, script_names[script], wrong);
        }
    stepping_forget(&steps);
    return failed;
}

int main(int argc, char **argv)
{
    size_t stride = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    int failed = 0;

    if (!stepping_is_permitted())
        return STEPPING_FORBIDDEN;
    book = stepping_room(sizeof(*book));
    for (int i = 0; i < WAYS; i++) {
        way = (enum way)i;
        failed += run_way(stride > 0 ? stride : 1);
    }
    return failed > 0;
}
