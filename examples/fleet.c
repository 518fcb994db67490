/* fleet.c -- one limit for all hosts.
 *
 *     fleet [URL]
 *
 * Start it on several hosts, or several times, with the URL of one Redis: for each user 5 asks pass
 * a second, in all of them together.  Without Redis a host goes by its part, which is everything as
 * long as it knows of no other.
 */
#include <stdio.h>
#include <string.h>
#include <weir-fleet.h>

static const char text[] = "version: 1\n"
                           "rules:\n"
                           "  - name: by-user\n"
                           "    key: \"{user}\"\n"
                           "    limit: 5/1s\n"
                           "    across: fleet\n";

static void ask(struct weir_fleet *fleet, struct weir *weir, const char *user)
{
    struct weir_attr attr = { .name = "user", .value = user };
    struct weir_ask one = { .cost = 1, .now = weir_table_now(weir_table_of(weir)) };
    struct weir_ruling ruling;
    bool passes = weir_fleet_check(fleet, &attr, 1, &one, &ruling);

    printf("%s: %s\n", user, passes ? "passes" : weir_reason_name(ruling.decision.reason));
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "redis://127.0.0.1:1"; /* where nobody listens */
    struct weir_rules *rules;
    struct weir *weir;
    struct weir_fleet *fleet;
    struct weir_fleet_info info;
    struct weir_error error;

    if (weir_create(&weir, NULL, &error) ||
        weir_rules_parse(&rules, text, strlen(text), NULL, &error) ||
        weir_use(weir, rules, weir_table_now(weir_table_of(weir)), &error) ||
        weir_fleet_join(&fleet, weir, url, NULL, &error)) {
        fprintf(stderr, "fleet: %s\n", error.text);
        return 1;
    }
    for (int i = 0; i < 7; i++)
        ask(fleet, weir, "ann");
    ask(fleet, weir, "bob");
    weir_fleet_look(fleet, &info);
    printf("%s: %s\n", info.node, info.alone ? "alone" : "one limit for all");
    weir_fleet_leave(fleet);
    weir_destroy(weir);
    return 0;
}
