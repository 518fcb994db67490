/* rules.c -- rules choose: limits are a YAML text that an operator reads aloud, and a request's
 * attributes go in.
 *
 * Here the text is in the program; with a path as its argument it reads that file instead and
 * decides the same requests by it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>

static const char first[] = "version: 1\n"
                            "rules:\n"
                            "- name: login\n"
                            "  match: { uri: /login, method: POST }\n"
                            "  key: \"{ip}\"\n"
                            "  limit: gcra 3/60\n"
                            "- name: per-ip\n"
                            "  key: \"{ip/24}\"\n"
                            "  limit: [300/60, 100/5]\n"
                            "lists:\n"
                            "  deny: { ip: [203.0.113.0/24] }\n";

static const char second[] =
    "version: 1\n"
    "rules:\n"
    "- { name: login, match: { uri: /login, method: POST }, key: \"{ip}\", limit: gcra 5/60 }\n"
    "- { name: per-ip, key: \"{ip/24}\", limit: [300/60, 100/5] }\n";

static void expect(bool so, const char *what)
{
    printf("%-4s %s\n", so ? "ok" : "NOT", what);
    if (!so)
        exit(1);
}

static bool ask(struct weir *weir, const char *ip, const char *method, const char *uri,
                weir_time now)
{
    struct weir_attr attrs[] = { { .name = "ip", .value = ip },
                                 { .name = "method", .value = method },
                                 { .name = "uri", .value = uri } };
    struct weir_ruling ruling;
    bool allowed = weir_check(weir, attrs, 3, &(struct weir_ask){ .cost = 1, .now = now }, &ruling);

    printf("     %-12s %-4s %-12s  %s", ip, method, uri, allowed ? "yes" : "no");
    if (ruling.list != NULL)
        printf(", by the %s list\n", ruling.list);
    else if (ruling.rule == NULL)
        printf(": no rule is for it\n");
    else if (allowed)
        printf(", %" PRId64 " more by %s\n", ruling.decision.remaining, ruling.rule);
    else
        printf(", %s by %s; Retry-After: %" PRId64 "\n", weir_reason_name(ruling.decision.reason),
               ruling.rule, (ruling.decision.retry + WEIR_SECOND - 1) / WEIR_SECOND);
    return allowed;
}

/* Puts a text in force; false, and the old rules stay, if it is wrong. */
static bool reload(struct weir *weir, const char *text, weir_time now)
{
    struct weir_rules *rules;
    struct weir_error error;

    if (weir_rules_parse(&rules, text, strlen(text), NULL, &error)) {
        printf("     %s\n", error.text);
        return false;
    }
    if (weir_use(weir, rules, now, &error)) {
        printf("     %s\n", error.text);
        weir_rules_destroy(rules);
        return false;
    }
    return true;
}

/* The requests, decided by the rules of a file. */
static int with_file(struct weir *weir, const char *path, weir_time now)
{
    struct weir_rules *rules = NULL;
    struct weir_error error;

    if (weir_rules_read(&rules, path, NULL, &error) || weir_use(weir, rules, now, &error)) {
        fprintf(stderr, "rules: %s\n", error.text);
        weir_rules_destroy(rules);
        return 1;
    }
    for (int i = 0; i < 5; i++)
        ask(weir, "192.0.2.7", "POST", "/login", now);
    return 0;
}

static void walk_through(struct weir *weir, weir_time now)
{
    int passed = 0;

    expect(ask(weir, "192.0.2.7", "GET", "/", now), "without rules everything is allowed");
    expect(reload(weir, first, now), "the rules are in force");
    for (int i = 0; i < 4; i++)
        passed += ask(weir, "192.0.2.7", "POST", "//%6cogin?x", now);
    expect(passed == 3, "three logins, however they are spelt, and not a fourth");
    expect(ask(weir, "192.0.2.7", "GET", "/", now), "all else goes on");
    expect(!ask(weir, "203.0.113.9", "GET", "/", now),
           "an address on the deny list does not get in");
    expect(!reload(weir, "version: 1\nrules:\n- { name: login, limt: 9/60 }\n", now),
           "a text with a mistake is refused whole");
    expect(!ask(weir, "192.0.2.7", "POST", "/login", now), "and the old rules stay");
    expect(reload(weir, second, now), "five logins instead of three, and no deny list");
    expect(ask(weir, "192.0.2.7", "POST", "/login", now) &&
               ask(weir, "192.0.2.7", "POST", "/login", now) &&
               !ask(weir, "192.0.2.7", "POST", "/login", now),
           "the three stay used, so two are left");
    expect(ask(weir, "203.0.113.9", "GET", "/", now), "the deny list is gone");
}

int main(int argc, char **argv)
{
    struct weir *weir;
    struct weir_error error;
    int code = 0;

    if (weir_create(&weir, NULL, &error)) {
        fprintf(stderr, "rules: %s\n", error.text);
        return 1;
    }
    weir_time now = weir_table_now(weir_table_of(weir));
    if (argc > 1)
        code = with_file(weir, argv[1], now);
    else
        walk_through(weir, now);
    weir_destroy(weir);
    return code;
}
