/* fleet-agent.c -- a node of a fleet, for tests: a process that joins, and obeys lines on stdin.
 *
 *     fleet-agent URL NODE TABLE RULES [COPIES]
 *
 *     info          a line of what weir_fleet_look says
 *     check USER N  asks for N units of a user; the reason
 *     run USER MS   four threads ask for units of the user, each every 2 ms, for MS: how many
 *                   were granted, and in how many ns
 *     leave         leaves the fleet; "left"
 *
 * TABLE: a file, or "-": private.  RULES: a file, or "-": those of the fleet, with COPIES a folder
 * for their copy; a text with "# bad" is refused.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "weir-fleet.h"

static struct weir *weir;
static struct weir_fleet *fleet;

static void fail(const struct weir_error *error)
{
    fprintf(stderr, "fleet-agent: %s\n", error->text);
    exit(1);
}

static int apply(void *context, const char *text, size_t len, struct weir_error *error)
{
    struct weir_rules *rules;
    int code;

    (void)context;
    if (strstr(text, "# bad")) {
        snprintf(error->text, sizeof(error->text), "it is bad");
        return WEIR_INVALID;
    }
    code = weir_rules_parse(&rules, text, len, NULL, error);
    if (code != WEIR_OK)
        return code;
    code = weir_use(weir, rules, weir_table_now(weir_table_of(weir)), error);
    if (code != WEIR_OK)
        weir_rules_destroy(rules);
    return code;
}

static void begin(char **argv)
{
    struct weir_table_options shape = { .path = strcmp(argv[3], "-") == 0 ? NULL : argv[3],
                                        .keys = 4096 };
    bool follows = strcmp(argv[4], "-") == 0;
    struct weir_fleet_options options = { .node = argv[2],
                                          .apply = follows ? apply : NULL,
                                          .copies = follows ? argv[5] : NULL };
    struct weir_options engine = { .table = NULL };
    struct weir_error error = { .text = "" };
    struct weir_rules *rules;

    if (weir_table_create(&engine.table, &shape, &error) || weir_create(&weir, &engine, &error))
        fail(&error);
    if (!follows && (weir_rules_read(&rules, argv[4], NULL, &error) ||
                     weir_use(weir, rules, weir_table_now(engine.table), &error)))
        fail(&error);
    if (weir_fleet_join(&fleet, weir, argv[1], &options, &error))
        fail(&error);
}

static void show_info(void)
{
    struct weir_fleet_info i;

    weir_fleet_look(fleet, &i);
    printf("%d %d %d %d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64
           " %" PRIu64 " %" PRIu64 " %s%s\n",
           i.agent, i.alone, i.connected, i.learning, i.part, i.members, i.version, i.refused,
           i.draws, i.units_drawn, i.units_repaid, i.asks_alone, i.why, i.refused_why);
}

static void check(const char *user, int64_t cost)
{
    struct weir_attr attr = { .name = "user", .value = user };
    struct weir_ask ask = { .cost = cost, .now = weir_table_now(weir_table_of(weir)) };
    struct weir_ruling ruling;

    weir_fleet_check(fleet, &attr, 1, &ask, &ruling);
    printf("%s\n", weir_reason_name(ruling.decision.reason));
}

struct runner {
    pthread_t thread;
    const char *user;
    weir_time until;
    int64_t granted;
};

static void *keep_asking(void *context)
{
    struct runner *r = context;
    struct weir_attr attr = { .name = "user", .value = r->user };
    struct weir_ruling ruling;
    weir_time now;

    while ((now = weir_table_now(weir_table_of(weir))) < r->until) {
        struct weir_ask ask = { .cost = 1, .now = now };
        r->granted += weir_fleet_check(fleet, &attr, 1, &ask, &ruling);
        weir__clock_sleep(2 * WEIR_MILLISECOND);
    }
    return NULL;
}

static void run(const char *user, int64_t ms)
{
    struct runner runners[4];
    weir_time begun = weir_table_now(weir_table_of(weir));
    int64_t granted = 0;

    for (int i = 0; i < 4; i++) {
        runners[i] = (struct runner){ .user = user, .until = begun + ms * WEIR_MILLISECOND };
        if (pthread_create(&runners[i].thread, NULL, keep_asking, &runners[i]) != 0)
            abort();
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(runners[i].thread, NULL);
        granted += runners[i].granted;
    }
    printf("%" PRId64 " %" PRId64 "\n", granted, weir_table_now(weir_table_of(weir)) - begun);
}

int main(int argc, char **argv)
{
    char line[256], user[64];
    long long cost;

    if (argc < 5)
        return 2;
    begin(argv);
    while (fleet && fgets(line, sizeof(line), stdin)) {
        if (strcmp(line, "info\n") == 0)
            show_info();
        else if (sscanf(line, "check %63s %lld", user, &cost) == 2)
            check(user, cost);
        else if (sscanf(line, "run %63s %lld", user, &cost) == 2)
            run(user, cost);
        else if (strcmp(line, "leave\n") == 0) {
            weir_fleet_leave(fleet);
            fleet = NULL;
            printf("left\n");
        }
        fflush(stdout);
    }
    weir_fleet_leave(fleet);
    struct weir_table *table = weir_table_of(weir);
    weir_destroy(weir);
    weir_table_destroy(table);
    return 0;
}
