/* memory.c -- every setup call of the library while its n-th allocation fails, for every n: an
 * error with a text each time, nothing half done, no crash, and (under AddressSanitizer) no leak.
 *
 *     memory RULE-FILE...
 *
 * Linked with --wrap for the allocators, so that only the library's own calls fail; libfyaml's do
 * not.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "weir-admin.h"
#include "weir-queue.h"

#define WRAP(type, name, parameters, arguments)            \
    type __real_##name parameters;                         \
    type __wrap_##name parameters;                         \
    type __wrap_##name parameters                          \
    {                                                      \
        return fails() ? FAILED : __real_##name arguments; \
    }

static long left = -1; /* allocations until one fails; below 0: none does */

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

#define FAILED NULL
WRAP(void *, malloc, (size_t size), (size))
WRAP(void *, calloc, (size_t count, size_t size), (count, size))
WRAP(void *, realloc, (void *old, size_t size), (old, size))
WRAP(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
WRAP(char *, strdup, (const char *text), (text))
#undef FAILED
#define FAILED (errno = ENOMEM, MAP_FAILED)
WRAP(void *, mmap, (void *at, size_t size, int prot, int flags, int fd, off_t from),
     (at, size, prot, flags, fd, from))

/* ---------------------------------------------------------------- scenes ---- */

/* What a scene is given, made before anything fails. */
static struct weir_table *table;
static struct weir *engine;
static const char *rule_file;
static char path[] = "/dev/shm/weir-memory-XXXXXX";

#define NOW (1000 * WEIR_SECOND)

static const struct weir_limit plain = { .count = 5, .period = WEIR_SECOND },
                               window = { .algorithm = "sliding-window",
                                          .count = 5,
                                          .period = WEIR_SECOND },
                               month = { .algorithm = "calendar",
                                         .count = 5,
                                         .calendar = WEIR_MONTH,
                                         .zone = "Europe/Berlin" };

static int make_plans(struct weir_error *error)
{
    struct weir_plan *a = NULL, *b = NULL;
    int code = weir_plan_create(&a, &plain, error);

    if (code == WEIR_OK)
        code = weir_plan_create(&b, &month, error);
    weir_plan_destroy(a);
    weir_plan_destroy(b);
    return code;
}

static int make_private_table(struct weir_error *error)
{
    struct weir_table *t = NULL;
    int code = weir_table_create(&t, &(struct weir_table_options){ .keys = 1000 }, error);

    weir_table_destroy(t);
    return code;
}

static int share_table(struct weir_error *error)
{
    struct weir_table_options options = { .path = path, .keys = 1000 };
    struct weir_table *a = NULL, *b = NULL;
    int code = weir_table_create(&a, &options, error);

    if (code == WEIR_OK)
        code = weir_table_attach(&b, path, error);
    weir_table_destroy(b);
    weir_table_destroy(a);
    unlink(path);
    return code;
}

static int make_limiters(struct weir_error *error)
{
    struct weir_limit faster = { .count = 50, .period = WEIR_SECOND };
    struct weir_limiter *l;
    int code = weir_limiter_create(&l, table, "plain", &plain, error);

    if (code == WEIR_OK)
        code = weir_limiter_change(l, &faster, NOW, error);
    if (code == WEIR_OK)
        code = weir_limiter_change(l, &plain, NOW, error);
    if (code == WEIR_OK)
        code = weir_limiter_create(&l, table, "window", &window, error);
    return code;
}

static int make_guard(struct weir_error *error)
{
    struct weir_guard *g = NULL;
    struct weir_guard_options options = { .max = 4 };
    int code = weir_guard_create(&g, table, "guard", &options, error);

    options.max = 8;
    if (code == WEIR_OK)
        code = weir_guard_change(g, &options, error);
    options.max = 4;
    if (code == WEIR_OK)
        code = weir_guard_change(g, &options, error);
    return code;
}

static int make_queue_and_pool(struct weir_error *error)
{
    struct weir_queue *q = NULL;
    struct weir_pool *p = NULL;
    int code = weir_queue_create(&q, &(struct weir_queue_options){ .max = 10 }, error);

    if (code == WEIR_OK)
        code = weir_pool_create(&p, &(struct weir_pool_options){ .max_threads = 2 }, error);
    if (p)
        weir_pool_destroy(p, true);
    if (q)
        weir_queue_destroy(q);
    return code;
}

static int read_rules(struct weir_error *error)
{
    struct weir_rules *rules = NULL;
    int code = weir_rules_read(&rules, rule_file, NULL, error);

    weir_rules_destroy(rules);
    return code;
}

static int make_engine(struct weir_error *error)
{
    struct weir *w = NULL;
    int code = weir_create(&w, &(struct weir_options){ .keys = 1000 }, error);

    weir_destroy(w);
    return code;
}

static const char rules_text[] =
    "version: 1\n"
    "lists: { deny: { ip: [203.0.113.0/24] } }\n"
    "rules:\n"
    "  - { name: login, match: { uri: /login }, key: \"{ip}\", limit: 5/1m,\n"
    "      ban: { refusals: 3/1m, for: 10m } }\n"
    "guards:\n"
    "  - { name: work, match: { uri: \"/jobs/**\" }, concurrency: 4 }\n";

static int use_rules(struct weir_error *error)
{
    struct weir_rules *rules = NULL;
    int code = weir_rules_parse(&rules, rules_text, sizeof(rules_text) - 1, NULL, error);

    if (code == WEIR_OK && (code = weir_use(engine, rules, NOW, error)) != WEIR_OK)
        weir_rules_destroy(rules);
    return code;
}

static int edit_by_hand(struct weir_error *error)
{
    const char *const entry[] = { "198.51.100.7" };
    int code =
        weir_list_edit(engine, &(struct weir_list_edit){ "deny", "ip", entry, 1, NULL, 0 }, error);

    if (code == WEIR_OK)
        code = weir_list_edit(engine, &(struct weir_list_edit){ "deny", "ip", NULL, 0, entry, 1 },
                              error);
    if (code == WEIR_OK)
        code = weir_mode_set(engine, "login", WEIR_SHADOW, error);
    if (code == WEIR_OK)
        code = weir_mode_set(engine, "login", WEIR_AS_WRITTEN, error);
    if (code == WEIR_OK)
        code = weir_ban_set(engine, "login", "192.0.2.9", NOW, NOW + WEIR_SECOND, error);
    return code;
}

/* The rules in force go on deciding, whatever failed. */
static bool decides(void)
{
    struct weir_attr bad[] = { { .name = "ip", .value = "203.0.113.5" } },
                     good[] = { { .name = "ip", .value = "192.0.2.1" } };
    struct weir_ask ask = { .cost = 1, .now = NOW };
    struct weir_ruling ruling;

    return !weir_check(engine, bad, 1, &ask, &ruling) && weir_check(engine, good, 1, &ask, &ruling);
}

static const struct scene {
    const char *name;
    int (*run)(struct weir_error *error);
    bool frugal; /* may do without some of its memory, and then decides more slowly */
} scenes[] = {
    { "plans", make_plans, true }, /* a zone that was read is kept for the next plan */
    { "private table", make_private_table, false },
    { "shared table", share_table, false },
    { "limiters", make_limiters, true },
    { "guard", make_guard, true },
    { "queue and pool", make_queue_and_pool, false },
    { "engine", make_engine, true }, /* asks for less room for sliding windows */
    { "rules in use", use_rules, true },
    { "by hand", edit_by_hand, true },
};

/* ----------------------------------------------------------------- trials ---- */

static long passed, failed;

/* Runs the scene with the n-th allocation failing; false once it has fewer. */
static bool try_with(const struct scene *scene, long n)
{
    struct weir_error error = { 0 };

    left = n;
    int code = scene->run(&error);
    bool reached = left < 0;
    left = -1;
    const char *wrong = code != WEIR_OK && error.text[0] == '\0'       ? "an error without a text"
                        : reached && code == WEIR_OK && !scene->frugal ? "it passed for done"
                        : !reached && code != WEIR_OK                  ? error.text
                        : engine && !decides() ? "the rules in force do not decide any more"
                                               : NULL;
    if (wrong)
        fprintf(stderr, "%s: allocation %ld fails: %s\n", scene->name, n, wrong);
    passed += !wrong;
    failed += wrong != NULL;
    return reached && failed < 10;
}

static void try_all(const struct scene *scene)
{
    for (long n = 0; try_with(scene, n); n++)
        ;
}

int main(int argc, char **argv)
{
    struct weir_error error = { 0 };

    if (close(mkstemp(path)) != 0 || unlink(path) != 0 ||
        weir_table_create(&table, &(struct weir_table_options){ .keys = 1000 }, &error) ||
        weir_create(&engine, NULL, &error) || use_rules(&error)) {
        fprintf(stderr, "memory: %s\n", error.text);
        return 2;
    }
    for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
        try_all(&scenes[i]);
    for (int i = 1; i < argc; i++) {
        rule_file = argv[i];
        try_all(&(struct scene){ argv[i], read_rules, false });
    }
    weir_destroy(engine);
    weir_table_destroy(table);
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed > 0 || passed == 0;
}
