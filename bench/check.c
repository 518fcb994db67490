/* check.c -- what a request costs under rules: does it grow with the rules that do not apply, or
 * with the length of lists?
 *
 *     check [loop check|takes|mixed N]
 *
 * loop: N checks of check.rules.3, of three bare takes or of check.mixed, and nothing else: for
 * callgrind.
 *
 *     check.rules.N            N rules, of which 3 apply (N = 1: the one), nothing else
 *     check.rules.N.ratio      ... against 3 rules
 *     check.by_name            3 rules, the attributes' names looked up every time instead of
 *                              numbered once by weir_attribute
 *     check.varied.N           as check.rules.N, but 4,096 requests in turn, each of another
 *                              address, path and account
 *     check.lists.N            3 rules that apply, allow and deny lists of N networks and N
 *                              accounts in all
 *     check.over_takes         3 rules that apply, less 3 bare takes on the same keys: what
 *                              matching and all-or-nothing cost
 *     check.takes.ratio        ... and the one against the other
 *     check.mixed, .ratio      3 rules that apply, one of them with a sliding window; against 3
 *                              with token buckets
 *     check.many               check.varied.3 by weir_check_many, 16 at a time
 *     check.cold, .many        a million addresses and accounts, in a table that no cache holds;
 *                              one by one, and 16 at a time
 *     check.refused            the same request when its limit is spent
 *     check.denied, .allowed   by a list of 100,000 networks
 *
 * The rules that do not apply ask for other paths, prefixes, organisations and networks, mixed.
 */
#include <stdarg.h>
#include <string.h>

#include "bench.h"

#define RUNS 1000000
#define FREE "1000000000/s"

static char *text;
static size_t text_len, text_room;

__attribute__((format(printf, 1, 2))) static void add(const char *format, ...)
{
    char line[512];
    va_list args;

    va_start(args, format);
    int n = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (text_len + (size_t)n + 1 > text_room)
        text = realloc(text, text_room = 2 * (text_len + (size_t)n + 1));
    memcpy(text + text_len, line, (size_t)n + 1);
    text_len += (size_t)n;
}

static void add_stranger(int i)
{
    add("  - name: other-%d\n    key: \"{ip}\"\n    limit: 10/s\n", i);
    switch (i % 5) {
    case 0:
        add("    match: { uri: \"/shop/item%d\" }\n", i);
        break;
    case 1:
        add("    match: { uri: \"/api/v1/part%d/**\", method: [GET, POST] }\n", i);
        break;
    case 2:
        add("    match: { org: org%d, method: GET }\n", i);
        break;
    case 3:
        add("    match: { ip: 10.%d.%d.0/24 }\n", i / 256 % 256, i % 256);
        break;
    default:
        add("    match: { uri: \"/api/**\", account: user%d }\n", i);
    }
}

static void add_more_that_apply(const char *limit)
{
    add("  - name: items\n    match: { uri: \"/api/v1/items/**\", method: GET }\n    key: "
        "\"{account}\"\n    limit: %s\n",
        limit);
    add("  - name: acme\n    match: { org: acme }\n    key: \"{org}\"\n    limit: %s\n", limit);
}

static void add_rules(int n, const char *limit)
{
    text_len = 0;
    add("version: 1\nrules:\n");
    add("  - name: per-ip\n    key: \"{ip}\"\n    limit: %s\n", limit);
    if (n >= 3)
        add_more_that_apply(limit);
    for (int i = 3; i < n; i++)
        add_stranger(i);
}

static void add_lists(int n)
{
    static const char *const lists[] = { "allow", "deny" };

    if (n == 0)
        return;
    add("lists:\n");
    for (int l = 0; l < 2; l++) {
        add("  %s:\n    account:\n", lists[l]);
        for (int i = 0; i < n / 4; i++)
            add("      - somebody-%s-%d\n", lists[l], i);
        add("    ip:\n");
        for (int i = 0; i < n / 8; i++)
            add("      - %d.%d.%d.0/24\n", 60 + l, i / 256 % 256, i % 256);
        for (int i = 0; i < n / 8; i++)
            add("      - \"2001:%x:%x::/48\"\n", 0x100 * (l + 1) + i / 65536, i % 65536);
    }
}

static struct weir *make_engine(int64_t keys)
{
    struct weir_options options = { .keys = keys };
    struct weir_rules *rules;
    struct weir *weir;
    struct weir_error error;

    if (weir_rules_parse(&rules, text, text_len, NULL, &error) ||
        weir_create(&weir, &options, &error) || weir_use(weir, rules, 0, &error)) {
        fprintf(stderr, "bench-check: %s\n", error.text);
        exit(2);
    }
    return weir;
}

static struct weir_attr request[] = {
    { .name = "ip", .value = "192.0.2.77", .name_len = 2, .value_len = 10 },
    { .name = "uri", .value = "/api/v1/items/4711", .name_len = 3, .value_len = 18 },
    { .name = "method", .value = "GET", .name_len = 6, .value_len = 3 },
    { .name = "account", .value = "ann", .name_len = 7, .value_len = 3 },
    { .name = "org", .value = "acme", .name_len = 3, .value_len = 4 },
};

/* As a door would that sees the same names over and over. */
static void number_attributes(struct weir *weir, bool by_number)
{
    for (size_t i = 0; i < sizeof(request) / sizeof(*request); i++)
        request[i].id = by_number ? weir_attribute(weir, request[i].name) : 0;
}

static void checks(void *context, int64_t n)
{
    static weir_time now = WEIR_SECOND;
    struct weir_ruling ruling;

    for (int64_t i = 0; i < n; i++) {
        struct weir_ask ask = { .cost = 1, .now = now += 1000 };
        keep(weir_check(context, request, sizeof(request) / sizeof(*request), &ask, &ruling));
    }
}

/* ---- many requests: nothing is as it was the last time ---- */

#define VARIED 4096

static struct weir_attr varied[VARIED][5];

static void vary_requests(struct weir *weir)
{
    static char texts[VARIED][3][32];
    uint64_t seed = 1;

    for (int i = 0; i < VARIED; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        unsigned r = (unsigned)(seed >> 33);
        snprintf(texts[i][0], sizeof(texts[i][0]), "%u.%u.%u.%u", 100 + r % 90, r >> 8 & 255,
                 r >> 16 & 255, r & 255);
        snprintf(texts[i][1], sizeof(texts[i][1]), "/api/v1/items/%u", r % 100000);
        snprintf(texts[i][2], sizeof(texts[i][2]), "user-%u", r % 50000);
        memcpy(varied[i], request, sizeof(request));
        varied[i][0].value = texts[i][0];
        varied[i][1].value = texts[i][1];
        varied[i][3].value = texts[i][2];
        for (int k = 0; k < 5; k++) {
            varied[i][k].id = weir_attribute(weir, varied[i][k].name);
            varied[i][k].value_len = strlen(varied[i][k].value);
        }
    }
}

static void varied_checks(void *context, int64_t n)
{
    static weir_time now = WEIR_SECOND;
    struct weir_ruling ruling;

    for (int64_t i = 0; i < n; i++) {
        struct weir_ask ask = { .cost = 1, .now = now += 1000 };
        keep(weir_check(context, varied[i % VARIED], 5, &ask, &ruling));
    }
}

static void ask_varied(void)
{
    double three = 0;

    for (int n = 3; n <= 10000; n = n == 3 ? 100 : n * 100) {
        char name[64];
        add_rules(n, FREE);
        struct weir *weir = make_engine(0);
        vary_requests(weir);
        double ns = measure(varied_checks, weir, RUNS);
        weir_destroy(weir);
        three = n == 3 ? ns : three;
        snprintf(name, sizeof(name), "check.varied.%d", n);
        figure(name, ns, "ns");
        snprintf(name, sizeof(name), "check.varied.%d.ratio", n);
        if (n > 3)
            figure(name, ns / three, "x");
    }
}

/* ---- many at a time, and keys that are in no cache ---- */

#define AT_A_TIME 16
#define COLD      1000000

struct cold {
    struct weir_attr attrs[5];
    char ip[16], uri[24], account[16];
};

static struct cold *cold;

static const struct weir_attr *varied_request(int64_t i)
{
    return cold ? cold[i % COLD].attrs : varied[i % VARIED];
}

static void many_checks(void *context, int64_t n)
{
    static weir_time now = WEIR_SECOND;
    struct weir_request requests[AT_A_TIME];
    struct weir_ruling rulings[AT_A_TIME];

    for (int64_t i = 0; i + AT_A_TIME <= n; i += AT_A_TIME) {
        for (int k = 0; k < AT_A_TIME; k++)
            requests[k] = (struct weir_request){ varied_request(i + k),
                                                 5,
                                                 { .cost = 1, .now = now += 1000 } };
        keep(weir_check_many(context, requests, AT_A_TIME, rulings));
    }
}

static void cold_checks(void *context, int64_t n)
{
    static weir_time now = WEIR_SECOND;
    struct weir_ruling ruling;

    for (int64_t i = 0; i < n; i++) {
        struct weir_ask ask = { .cost = 1, .now = now += 1000 };
        keep(weir_check(context, varied_request(i), 5, &ask, &ruling));
    }
}

static void make_cold(struct weir *weir)
{
    cold = malloc(COLD * sizeof(*cold));
    for (uint64_t i = 0; cold != NULL && i < COLD; i++) {
        struct cold *c = &cold[i];
        unsigned who = (unsigned)(weir__mix64(i) % COLD),
                 account = (unsigned)(weir__mix64(~i) % COLD);
        snprintf(c->ip, sizeof(c->ip), "%u.%u.%u.7", 10 + (who >> 16), who >> 8 & 255, who & 255);
        snprintf(c->uri, sizeof(c->uri), "/api/v1/items/%u", who % 1000);
        snprintf(c->account, sizeof(c->account), "user-%u", account);
        memcpy(c->attrs, request, sizeof(request));
        c->attrs[0].value = c->ip;
        c->attrs[1].value = c->uri;
        c->attrs[3].value = c->account;
        for (int k = 0; k < 5; k++) {
            c->attrs[k].id = weir_attribute(weir, c->attrs[k].name);
            c->attrs[k].value_len = strlen(c->attrs[k].value);
        }
    }
}

static void ask_many(void)
{
    add_rules(3, FREE);
    struct weir *weir = make_engine(0);
    vary_requests(weir);
    figure("check.many", measure(many_checks, weir, RUNS), "ns");
    weir_destroy(weir);
    weir = make_engine(2 * COLD);
    make_cold(weir);
    if (cold == NULL)
        exit(2);
    figure("check.cold", measure(cold_checks, weir, COLD), "ns");
    figure("check.cold.many", measure(many_checks, weir, COLD), "ns");
    weir_destroy(weir);
    free(cold);
    cold = NULL;
}

static bool by_name;

static void loop_checks(int64_t n)
{
    struct weir *weir = make_engine(0);

    number_attributes(weir, true);
    checks(weir, n);
    weir_destroy(weir);
}

static double measure_check(int applied, bool allowed)
{
    struct weir *weir = make_engine(0);
    struct weir_ruling ruling;

    number_attributes(weir, !by_name);
    checks(weir, 100);
    weir_check(weir, request, sizeof(request) / sizeof(*request),
               &(struct weir_ask){ .cost = 1, .now = WEIR_SECOND * 2 }, &ruling);
    if (ruling.applied != applied || ruling.decision.allowed != allowed) {
        fprintf(stderr, "bench-check: %d rules apply, and %d should\n", ruling.applied, applied);
        exit(2);
    }
    double ns = measure(checks, weir, RUNS);
    weir_destroy(weir);
    return ns;
}

/* The same keys under the same limits, without rules. */
struct bare {
    struct weir_limiter *limiters[3];
    struct weir_key keys[3];
};

static void bare_takes(void *context, int64_t n)
{
    static weir_time now = WEIR_SECOND;
    struct bare *b = context;
    struct weir_decision d;

    for (int64_t i = 0; i < n; i++) {
        now += 1000;
        for (int k = 0; k < 3; k++) {
            struct weir_ask ask = { .key = b->keys[k], .cost = 1, .now = now };
            keep(weir_take(b->limiters[k], &ask, &d));
        }
    }
}

/* In ns; or, for callgrind, as many as are wanted. */
static double measure_takes(int64_t wanted)
{
    static const char *const names[] = { "ip", "account", "org" };
    struct bare b = { .keys = { { "\xc0\0\2M", 4 }, { "ann", 3 }, { "acme", 4 } } };
    struct weir_table *table;
    struct weir_limit limit;

    weir_limit_parse(&limit, FREE, NULL);
    if (weir_table_create(&table, &(struct weir_table_options){ .keys = 65536 }, NULL))
        exit(2);
    for (int i = 0; i < 3; i++)
        if (weir_limiter_create(&b.limiters[i], table, names[i], &limit, NULL))
            exit(2);
    double ns = 0;
    if (wanted > 0)
        bare_takes(&b, wanted);
    else
        ns = measure(bare_takes, &b, RUNS);
    weir_table_destroy(table);
    return ns;
}

/* Three rules, of which one has a sliding window. */
static void add_mixed_rules(void)
{
    add_rules(2, "sliding-window 1000000000/1s");
    add_more_that_apply(FREE);
}

static void ask_rules(void)
{
    static const int sizes[] = { 1, 3, 100, 10000 };
    double three = 0;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        char name[64];
        add_rules(sizes[i], FREE);
        double ns = measure_check(sizes[i] < 3 ? 1 : 3, true);
        three = sizes[i] == 3 ? ns : three;
        snprintf(name, sizeof(name), "check.rules.%d", sizes[i]);
        figure(name, ns, "ns");
        snprintf(name, sizeof(name), "check.rules.%d.ratio", sizes[i]);
        if (sizes[i] > 3)
            figure(name, ns / three, "x");
    }
    by_name = true;
    add_rules(3, FREE);
    figure("check.by_name", measure_check(3, true), "ns");
    by_name = false;
    double takes = measure_takes(0);
    figure("check.three_takes", takes, "ns");
    figure("check.over_takes", three - takes, "ns");
    figure("check.takes.ratio", three / takes, "x");
    add_mixed_rules();
    double mixed = measure_check(3, true);
    figure("check.mixed", mixed, "ns");
    figure("check.mixed.ratio", mixed / three, "x");
}

static void ask_lists(void)
{
    double without = 0;

    for (int n = 0; n <= 100000; n += 100000) {
        char name[64];
        add_rules(3, FREE);
        add_lists(n);
        double ns = measure_check(3, true);
        without = n == 0 ? ns : without;
        snprintf(name, sizeof(name), "check.lists.%d", n);
        figure(name, ns, "ns");
        if (n > 0)
            figure("check.lists.ratio", ns / without, "x");
    }
    request[0].value = "61.3.2.9";
    request[0].value_len = 8;
    figure("check.denied", measure_check(0, false), "ns");
    request[0].value = "60.3.2.9";
    figure("check.allowed", measure_check(0, true), "ns");
    request[0].value = "192.0.2.77";
    request[0].value_len = 10;
}

static int loop(const char *what, int64_t n)
{
    if (strcmp(what, "takes") == 0) {
        measure_takes(n);
        return 0;
    }
    if (strcmp(what, "mixed") == 0)
        add_mixed_rules();
    else if (strcmp(what, "check") == 0)
        add_rules(3, FREE);
    else
        return 2;
    loop_checks(n);
    free(text);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "loop") == 0)
        return loop(argv[2], atoll(argv[3]));
    ask_rules();
    ask_varied();
    ask_many();
    add_rules(3, "1/1d");
    figure("check.refused", measure_check(3, false), "ns");
    ask_lists();
    free(text);
    return 0;
}
