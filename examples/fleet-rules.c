/* fleet-rules.c -- the rules of a fleet, changed by a program: two editors, and a way back.
 *
 *     fleet-rules [URL]
 *
 * Ann and Bob have both read the newest version.  Ann's change is the next one; Bob's is based on a
 * version that is the newest no more, and is refused: he looks at Ann's first.  Then the version
 * before Ann's comes back.  At the end it asks which nodes run that.
 */
#include <stdio.h>
#include <string.h>
#include <weir-fleet.h>

#define FLEET "example"

static int64_t set(struct weir_redis *redis, const char *author, const char *limit, int64_t base)
{
    char text[160];
    struct weir_fleet_change change = { .text = text, .base = base, .author = author };
    struct weir_error error;

    change.len = (size_t)snprintf(text, sizeof(text),
                                  "version: 1\n"
                                  "rules:\n"
                                  "  - name: by-user\n"
                                  "    key: \"{user}\"\n"
                                  "    limit: %s\n"
                                  "    across: fleet\n",
                                  limit);
    int64_t version = weir_fleet_rules_set(redis, FLEET, &change, &error);

    if (version > 0)
        printf("%s's change is the next version\n", author);
    else
        printf("%s's change is refused: %s\n", author,
               version == WEIR_EXISTS ? "another version is there" : error.text);
    return version;
}

static void show(struct weir_redis *redis)
{
    struct weir_fleet_history history;
    struct weir_error error;

    if (weir_fleet_history(redis, FLEET, &history, &error)) {
        printf("no history: %s\n", error.text);
        return;
    }
    for (size_t i = 0; i < history.n; i++)
        printf("%s%s\n", history.versions[i].author,
               history.versions[i].origin ? " (an older text)" : "");
}

static void show_nodes(struct weir_redis *redis)
{
    struct weir_fleet_node nodes[16];
    struct weir_fleet_status status;
    struct weir_error error;
    int64_t n = weir_fleet_nodes(redis, FLEET, nodes, 16, &error);

    if (n < 0 || weir_fleet_status(redis, FLEET, &status, &error)) {
        printf("no nodes: %s\n", error.text);
        return;
    }
    for (int64_t i = 0; i < n && i < 16; i++)
        printf("%s%s%s\n", nodes[i].name, nodes[i].refused ? " refuses: " : "", nodes[i].why);
    printf("%lld of %lld nodes run their version\n", (long long)status.current,
           (long long)status.nodes);
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "redis://127.0.0.1:1"; /* where nobody listens */
    struct weir_fleet_version newest;
    struct weir_redis *redis;
    struct weir_error error;
    int64_t base;

    if (weir_redis_create(&redis, url, NULL, &error)) {
        fprintf(stderr, "fleet-rules: %s\n", error.text);
        return 1;
    }
    if (weir_fleet_rules_get(redis, FLEET, 0, &newest, NULL, &error)) {
        printf("no rules: %s\n", error.text);
    } else if ((base = set(redis, "the first", "5/1s", newest.number)) > 0) {
        set(redis, "ann", "6/1s", base);
        set(redis, "bob", "7/1s", base);
        weir_fleet_rollback(redis, FLEET, base, "ann", "not yet", &error);
        show(redis);
        show_nodes(redis);
    }
    weir_redis_destroy(redis);
    return 0;
}
