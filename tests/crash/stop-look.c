/* stop-look.c -- a process is stopped while it looks for a new key in a full table; meanwhile
 * another gives the key a slot, that of a key which has used nearly all of its limit.
 *
 *     stop-look STRIDE   at every STRIDE-th instruction
 *
 * When the process goes on it must not answer from what the other key has used.
 */
#include "crash/stepping.h"
#include "table/table.h"

#include <stdio.h>

#define NOW    (1000000 * WEIR_SECOND)
#define LIMITS 2 /* of the first the table is full */

enum way { TAKE, ALL, MANY, WAYS };

static const struct {
    const char *title;
    int far; /* it has looked by then: instructions */
} ways[WAYS] = { { "take", 300 }, { "take_all", 700 }, { "take_many", 500 } };

static struct weir_table *table;
static struct weir_limiter *l[LIMITS];
static unsigned char *image; /* of the full table */
static struct book {
    int done;
    bool allowed;
} * book;
static enum way way;
static int failed, passed;

static void fail(const char *what)
{
    fprintf(stderr, "stop-look: %s\n", what);
    exit(1);
}

static struct weir_ask ask_for(const char *key, int64_t cost)
{
    return (struct weir_ask){ .key = { key, strlen(key) }, .cost = cost, .now = NOW };
}

/* ------------------------------------------------------------- table ---- */

static void fill(void)
{
    struct weir_table_stats stats;
    struct weir_decision d;
    char key[16];

    for (int i = 0; i < 100000; i++) {
        snprintf(key, sizeof(key), "key %d", i);
        struct weir_ask ask = ask_for(key, 4);
        weir_take(l[0], &ask, &d);
        weir_table_stats(table, -1, &stats);
        if (stats.keys == stats.slots)
            return;
    }
    fail("the table does not become full");
}

static void make_table(bool narrow)
{
    struct weir_table_options options = { .path = "/dev/shm/stop-look.weir",
                                          .keys = 128,
                                          .slab = 4096,
                                          .limiters = LIMITS,
                                          .bans = 1,
                                          .guards = 1,
                                          .narrow = narrow };
    const struct weir_limit limit = { .count = 5, .period = 5000 * WEIR_SECOND };

    unlink(options.path);
    if (weir_table_create(&table, &options, NULL) != WEIR_OK ||
        weir_limiter_create(&l[0], table, "first", &limit, NULL) != WEIR_OK ||
        weir_limiter_create(&l[1], table, "second", &limit, NULL) != WEIR_OK)
        fail("no table");
    unlink(options.path);
    fill();
    if ((image = malloc(table->bytes)) == NULL)
        fail("no memory");
    memcpy(image, table->header, table->bytes);
}

static void restore(void)
{
    unsigned char *bytes = (unsigned char *)table->header;

    for (uint64_t at = 0; at < table->bytes; at += WEIR__PAGE)
        if (memcmp(bytes + at, image + at, WEIR__PAGE) != 0)
            memcpy(bytes + at, image + at, WEIR__PAGE);
    memset(book, 0, sizeof(*book));
}

/* ------------------------------------------------------------ rounds ---- */

static void be_victim(void *context)
{
    struct weir_ask ask = ask_for(context, 2);
    struct weir_item items[LIMITS] = { { l[0], ask }, { l[1], ask } };
    struct weir_decision d[LIMITS];

    stepping_begin();
    if (way == TAKE)
        weir_take(l[0], &ask, d);
    else if (way == ALL)
        weir_take_all(items, LIMITS, d);
    else
        weir_take_many(items, LIMITS, d);
    book->allowed = d[0].allowed;
    __atomic_store_n(&book->done, 1, __ATOMIC_RELEASE);
}

/* NULL: all right. */
static const char *play(char *key, int stop)
{
    struct weir_ask ask = ask_for(key, 1);
    struct weir_decision d;
    struct stepped victim;

    restore();
    if (!stepping_start(&victim, be_victim, key, &book->done))
        return "it did not begin";
    for (int i = 0; i < stop; i++)
        if (stepping_go(&victim, PTRACE_SINGLESTEP) != STEPPING_STOPPED)
            return "it ended too early";
    if (!weir_take(l[0], &ask, &d))
        return "the key has no slot";
    if (stepping_finish(&victim) != STEPPING_ENDED)
        return "it did not end";
    return book->allowed ? NULL : "it is refused for what another key has used";
}

static void play_all(bool narrow, int stride)
{
    for (way = TAKE; way < WAYS; way++) {
        const char *wrong = NULL;
        char key[] = "new";
        for (int stop = 1; stop < ways[way].far && wrong == NULL; stop += stride)
            if ((wrong = play(key, stop)) != NULL)
                fprintf(stderr, "%s %s, stopped at %d: %s\n", narrow ? "narrow" : "wide",
                        ways[way].title, stop, wrong);
        failed += wrong != NULL;
        passed += wrong == NULL;
    }
}

int main(int argc, char **argv)
{
    int stride = argc > 1 ? atoi(argv[1]) : 3;

    if (!stepping_is_permitted()) {
        printf("skipped: this system does not permit ptrace\n");
        return STEPPING_FORBIDDEN;
    }
    book = mmap(NULL, sizeof(*book), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (book == MAP_FAILED)
        fail("no memory");
    for (int narrow = 0; narrow < 2; narrow++) {
        make_table(narrow);
        play_all(narrow, stride);
        free(image);
        weir_table_destroy(table);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
