/* stop-join.c -- a process is stopped on its way from a name to what has it; meanwhile that goes,
 * and another name gets its place.
 *
 *     stop-join STRIDE   at every STRIDE-th instruction
 *
 * While the process is stopped the name "a", which nobody uses, goes, and "b" comes; or "b" goes
 * too, and "a" comes back.  When the process goes on it must find "a" or, if that has gone, nothing.
 */
#include "crash/one-place.h"

#define NOW  (1000000 * WEIR_SECOND)
#define LATE (7200 * WEIR_SECOND) /* an unused guard has gone by then */

enum way { FIND, CREATE, FIND_GUARD, CREATE_GUARD, WAYS };
enum script { OTHER, AGAIN, SCRIPTS };

static const char *const titles[WAYS][SCRIPTS] = {
    { "find, another name came", "find, the name came back" },
    { "create, another name came", "create, the name came back" },
    { "find a guard, another name came", "find a guard, the name came back" },
    { "create a guard, another name came", "create a guard, the name came back" },
};

/* Shared with the process that is stopped. */
struct book {
    int done, code;
    char found[WEIR__NAME_SIZE]; /* the name of what it uses; "": nothing */
};

static struct book *book;
static enum way way;
static enum script script;

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

static bool begin(void)
{
    memset(book, 0, sizeof(*book));
    return add("a");
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

static const char *go_on(struct stepped *victim, enum stepping at)
{
    wait_long(NOW);
    bool there = !add("b");
    if (!there && script == AGAIN) {
        wait_long(NOW + 2 * LATE);
        there = add("a");
        if (!there)
            return "the name does not come back";
    }
    enum stepping end = at == STEPPING_STOPPED || victim->pid > 0 ? stepping_finish(victim) : at;
    if (end != STEPPING_ENDED)
        return end == STEPPING_STUCK ? "it waits" : "it died";
    return judge(there);
}

int main(int argc, char **argv)
{
    size_t stride = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    int failed = 0;

    if (!stepping_is_permitted())
        return STEPPING_FORBIDDEN;
    book = stepping_room(sizeof(*book));
    const struct story story = {
        "stop-join", "stop-join.weir", begin, be_victim, &book->done, go_on
    };
    for (way = 0; way < WAYS; way++)
        for (script = 0; script < SCRIPTS; script++)
            failed += stop_everywhere(&story, stride > 0 ? stride : 1, titles[way][script]);
    return failed > 0;
}
