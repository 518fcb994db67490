/* redis-status.c -- `weir redis status`: what the client sees of a Redis, alone or not.
 *
 * Each node is asked on its own, one question after the other, so that the times are the network's
 * and Redis's alone.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cluster/redis/trouble.h"
#include "server/base/buffer.h"
#include "server/base/complain.h"
#include "server/base/safe-text.h"
#include "server/base/terminal.h"
#include "server/cli/ask-redis.h"

enum { NODES_MAX = 1024 /* as many as a client knows */, BINS = 24, BAR = 32 };

struct options {
    int64_t count;
    weir_time timeout;
    bool json;
};

static const struct weir__option rows[] = {
    WEIR__COUNT("count", 'n', count, 1, "PINGs to each node (100)"),
    WEIR__VALUE("timeout", 0, TIME, timeout, "TIME", "for each answer (1s)"),
    WEIR__SWITCH("json", 0, json, "answer with a JSON object"),
    { 0 },
};

/* What was found out about a node. */
struct found {
    struct weir__redis_node_info info;
    bool answers;
    char why[240]; /* it does not */
    char version[24];
    char role[8];                            /* as in INFO; "": it does not tell */
    char decides[16];                        /* what decides there: module, redis-cell or scripts */
    int64_t clock, margin;                   /* its clock is ahead by this many ns, give or take */
    int64_t pings, bins[BINS], total, worst; /* bin i: up to 2^i microseconds */
};

struct look {
    const struct options *options;
    struct weir__asker asker;
    struct found nodes[NODES_MAX];
    size_t n;
};

/* Asks one node, or anyone, and waits.  False: not answered. */
static bool ask(struct look *l, struct weir__redis_node *node, const char *const *words)
{
    struct weir__redis_ask question = { .slot = WEIR__REDIS_ANY_SLOT,
                                        .only = node,
                                        .repeatable = true };
    bool answered =
        weir__redis_ask_texts(&question, words) && weir__asker_ask(&l->asker, &question);

    weir__redis_ask_free(&question);
    return answered;
}

static struct weir__resp_value head_of(const struct look *l, const char **rest)
{
    struct weir__resp_value head;
    const char *at = weir__resp_value(l->asker.reply.bytes, &head);

    *rest = head.n > 0 ? at : NULL;
    return head;
}

/* Asks a node that answers.  Once it does not, it is asked no more. */
static bool ask_node(struct look *l, struct found *f, const char *const *words)
{
    f->answers = f->answers && ask(l, f->info.node, words);
    if (!f->answers && !f->why[0])
        snprintf(f->why, sizeof(f->why), "%s", l->asker.why);
    return f->answers;
}

/* ----------------------------------------------------------- finding out ---- */

static bool knows_command(struct look *l, struct found *f, const char *name)
{
    const char *rest;
    struct weir__resp_value first = { .kind = '_' };

    if (!ask_node(l, f, (const char *[]){ "COMMAND", "INFO", name, NULL }))
        return false;
    head_of(l, &rest);
    if (rest)
        weir__resp_value(rest, &first);
    return first.kind == '*';
}

/* Whether this user may call the module's command: another right than that to COMMAND INFO.
 * A wrong limit changes nothing.  Redis looks at the command and the rights first, so every other
 * answer (MOVED, LOADING, no right to this key) says yes. */
static bool may_take(struct look *l, struct found *f)
{
    static const char unknown[] = "ERR unknown command", command[] = " command";
    const char *rest;

    if (!ask_node(l, f, (const char *[]){ "WEIR.TAKE", "weir:", "-", NULL }))
        return false;
    struct weir__resp_value reply = head_of(l, &rest);
    struct weir__text said = reply.text;
    if (weir__resp_is_error(&reply, "NOPERM"))
        return !memmem(said.bytes, said.len, command, sizeof(command) - 1);
    return said.len < sizeof(unknown) - 1 || memcmp(said.bytes, unknown, sizeof(unknown) - 1) != 0;
}

/* Whether this user may call scripts, and in them what ours call: a server looks at that first, and
 * none of these calls changes anything.  An error about a key or the memory says yes. */
static bool may_call_scripts(struct look *l, struct found *f)
{
    static const char probe[] =
        "local function may(...) local r = redis.pcall(...) "
        "return type(r) ~= 'table' or not string.find(r.err or '', 'run th') "
        "end "
        "return may('TIME') and may('GET', 'weir:') and "
        "may('EXISTS', 'weir:') and may('SETRANGE', 'weir:', 0, '') and "
        "may('SET', 'weir:', '', 'NX', 'XX')";
    const char *rest;

    if (!ask_node(l, f, (const char *[]){ "EVALSHA", "-", "0", NULL }))
        return false;
    struct weir__resp_value reply = head_of(l, &rest);
    return weir__resp_is_error(&reply, "NOSCRIPT") &&
           ask_node(l, f, (const char *[]){ "EVAL", probe, "0", NULL }) &&
           head_of(l, &rest).kind == ':';
}

static void find_decider(struct look *l, struct found *f)
{
    if (may_take(l, f))
        strcpy(f->decides, "module");
    else if (!knows_command(l, f, "weir.take") && knows_command(l, f, "cl.throttle"))
        strcpy(f->decides, "redis-cell");
    else if (may_call_scripts(l, f))
        strcpy(f->decides, "scripts");
    else if (f->answers)
        strcpy(f->decides, "nothing");
}

/* The line of INFO that begins with `name`; false: there is none. */
static bool read_line(struct weir__text text, const char *name, char *out, size_t size)
{
    const char *at = text.len ? memmem(text.bytes, text.len, name, strlen(name)) : NULL;
    size_t left, n = 0;

    if (!at)
        return false;
    at += strlen(name);
    left = (size_t)(text.bytes + text.len - at);
    while (n < left && n < size - 1 && at[n] != '\r' && at[n] != '\n')
        n++;
    memcpy(out, at, n);
    return true;
}

/* A server that did not tell both by HELLO says them in INFO.  Valkey's redis_version is that of a
 * Redis which it is compatible with. */
static void find_version_and_role(struct look *l, struct found *f)
{
    const char *rest;

    if (f->info.facts.version[0] || !ask_node(l, f, (const char *[]){ "INFO", "server", NULL }))
        return;
    struct weir__text text = head_of(l, &rest).text;
    if (!read_line(text, "valkey_version:", f->version, sizeof(f->version)))
        read_line(text, "redis_version:", f->version, sizeof(f->version));
    if (ask_node(l, f, (const char *[]){ "INFO", "replication", NULL }))
        read_line(head_of(l, &rest).text, "role:", f->role, sizeof(f->role));
}

static const char *version_of(const struct found *f)
{
    return f->info.facts.version[0] ? f->info.facts.version : f->version;
}

/* TIME answers seconds and microseconds, as texts. */
static void find_clock(struct look *l, struct found *f)
{
    weir_time before = weir__clock_real();
    bool answered = ask_node(l, f, (const char *[]){ "TIME", NULL });
    weir_time after = weir__clock_real();
    struct weir__resp_value s, us;
    int64_t seconds, micros;
    const char *rest;

    if (!answered || head_of(l, &rest).kind != '*' || !rest)
        return;
    weir__resp_value(weir__resp_value(rest, &s), &us);
    if (!weir__count_parse(s.text.bytes, s.text.len, &seconds) ||
        !weir__count_parse(us.text.bytes, us.text.len, &micros) ||
        seconds >= INT64_MAX / WEIR_SECOND || micros >= WEIR_SECOND / WEIR_MICROSECOND)
        return;
    f->margin = (after - before) / 2 + 1;
    f->clock = seconds * WEIR_SECOND + micros * WEIR_MICROSECOND - (before + f->margin);
}

static void find_latency(struct look *l, struct found *f)
{
    for (int64_t i = 0; i < l->options->count; i++) {
        weir_time begun = weir__clock_monotonic();
        if (!ask_node(l, f, (const char *[]){ "PING", NULL }))
            return;
        weir_time took = weir__clock_monotonic() - begun;
        int bin = 0;
        while (bin < BINS - 1 && took > (WEIR_MICROSECOND << bin))
            bin++;
        f->bins[bin]++;
        f->pings++;
        f->total += took;
        f->worst = took > f->worst ? took : f->worst;
    }
}

/* Connecting has told its role and protocol. */
static void look_again(struct look *l, struct found *f)
{
    size_t cursor = 0;

    for (struct weir__redis_node_info info;
         weir__redis_client_node_next(l->asker.client, &cursor, &info);)
        if (info.node == f->info.node) {
            f->info = info;
            return;
        }
}

static void find_node(struct look *l, struct found *f)
{
    f->answers = true;
    ask_node(l, f, (const char *[]){ "PING", NULL });
    look_again(l, f);
    find_version_and_role(l, f);
    if (!f->info.sentinel) {
        find_decider(l, f);
        find_clock(l, f);
    }
    find_latency(l, f);
}

/* Nodes are found before they are asked: the map may change meanwhile. */
static void find_all(struct look *l)
{
    size_t cursor = 0;

    while (l->n < NODES_MAX &&
           weir__redis_client_node_next(l->asker.client, &cursor, &l->nodes[l->n].info))
        l->n++;
    for (size_t i = 0; i < l->n; i++)
        find_node(l, &l->nodes[i]);
}

/* --------------------------------------------------------------- showing ---- */

static const char *mode_name(const struct look *l)
{
    static const char *const names[] = { "unknown", "single", "sentinel", "cluster" };

    return names[weir__redis_client_mode(l->asker.client)];
}

/* Servers without a map tell their own, by HELLO or INFO. */
static const char *role_of(const struct look *l, const struct found *f)
{
    bool told = weir__redis_client_mode(l->asker.client) != WEIR__REDIS_MODE_SINGLE ||
                f->info.facts.version[0] || f->role[0];

    return f->info.sentinel                                   ? "sentinel"
           : f->info.replica || strcmp(f->role, "slave") == 0 ? "replica"
           : told                                             ? "master"
                                                              : "unknown";
}

static void show_bins(const struct found *f)
{
    int64_t most = 0;

    for (int i = 0; i < BINS; i++)
        most = f->bins[i] > most ? f->bins[i] : most;
    for (int i = 0; i < BINS; i++) {
        if (f->bins[i] == 0)
            continue;
        printf("  <= %8.3f ms %6lld ", (double)(WEIR_MICROSECOND << i) / 1e6,
               (long long)f->bins[i]);
        weir__human_bar(stdout, (double)f->bins[i], (double)most, BAR);
        putchar('\n');
    }
}

static void show_node(const struct look *l, const struct found *f)
{
    weir__safe_text(stdout, WEIR__SAFE_TERMINAL, weir__redis_place(&f->info.address).text);
    printf("  %s", role_of(l, f));
    if (weir__redis_client_mode(l->asker.client) == WEIR__REDIS_MODE_CLUSTER && !f->info.replica)
        printf(", %d slots", f->info.slots);
    if (!f->answers) {
        printf(", DOES NOT ANSWER: ");
        weir__safe_text(stdout, WEIR__SAFE_TERMINAL, f->why);
        putchar('\n');
        return;
    }
    printf(", version ");
    weir__safe_text(stdout, WEIR__SAFE_TERMINAL, version_of(f)[0] ? version_of(f) : "unknown");
    printf(", RESP%d", (int)(f->info.facts.protocol ? f->info.facts.protocol : 2));
    if (f->decides[0])
        printf(", decides by %s", f->decides);
    if (f->margin > 0)
        printf(", clock %+.3f ms (+/- %.3f)", (double)f->clock / 1e6, (double)f->margin / 1e6);
    putchar('\n');
    if (f->pings > 0)
        printf("  %lld PINGs: mean %.3f ms, worst %.3f ms\n", (long long)f->pings,
               (double)f->total / (double)f->pings / 1e6, (double)f->worst / 1e6);
    show_bins(f);
}

static int slots_owned(const struct look *l)
{
    int slots = 0;

    for (size_t i = 0; i < l->n; i++)
        slots += l->nodes[i].info.slots;
    return slots;
}

static void show(const struct look *l)
{
    bool cluster = weir__redis_client_mode(l->asker.client) == WEIR__REDIS_MODE_CLUSTER;

    printf("%s: %zu node%s", mode_name(l), l->n, l->n == 1 ? "" : "s");
    if (cluster)
        printf(", %d of %d slots have a master", slots_owned(l), WEIR__REDIS_SLOTS);
    printf("\n");
    for (size_t i = 0; i < l->n; i++)
        show_node(l, &l->nodes[i]);
}

static void add_node(const struct look *l, struct weir__buffer *json, const struct found *f)
{
    weir__buffer_open(json, NULL, '{');
    weir__buffer_member(json, "address", weir__redis_place(&f->info.address).text);
    weir__buffer_member(json, "role", role_of(l, f));
    weir__buffer_member_number(json, "slots", f->info.slots);
    weir__buffer_member_bool(json, "answers", f->answers);
    weir__buffer_member_or_null(json, "problem", f->answers ? NULL : f->why);
    weir__buffer_member_or_null(json, "version", version_of(f)[0] ? version_of(f) : NULL);
    weir__buffer_member_number(json, "protocol",
                               f->info.facts.protocol ? f->info.facts.protocol : 2);
    weir__buffer_member_or_null(json, "decides_by", f->decides[0] ? f->decides : NULL);
    weir__buffer_member_number(json, "clock_ahead_ns", f->clock);
    weir__buffer_member_number(json, "clock_margin_ns", f->margin);
    weir__buffer_member_number(json, "pings", f->pings);
    weir__buffer_member_number(json, "mean_ns", f->pings ? f->total / f->pings : 0);
    weir__buffer_member_number(json, "worst_ns", f->worst);
    weir__buffer_member_numbers(json, "up_to_2^i_us", f->bins, BINS);
    weir__buffer_close(json, "}");
}

static int print_json(const struct look *l)
{
    struct weir__buffer json = { 0 };

    weir__buffer_open(&json, NULL, '{');
    weir__buffer_member(&json, "mode", mode_name(l));
    weir__buffer_member_number(&json, "slots", slots_owned(l));
    weir__buffer_open(&json, "nodes", '[');
    for (size_t i = 0; i < l->n; i++)
        add_node(l, &json, &l->nodes[i]);
    weir__buffer_close(&json, "]}\n");
    return weir__buffer_print(&json, stdout);
}

/* ------------------------------------------------------------ the command ---- */

static int look_around(struct look *l, const struct weir__call *call)
{
    if (!ask(l, NULL, (const char *[]){ "PING", NULL })) /* finds the others */
        return weir__complain(call->self->name, "Redis %s: %s", weir__redis_trouble(l->asker.why),
                              l->asker.why);
    find_all(l);
    int code = WEIR__EXIT_OK;
    if (l->options->json)
        code = print_json(l);
    else
        show(l);
    for (size_t i = 0; i < l->n; i++)
        code = code == WEIR__EXIT_OK && !l->nodes[i].answers ? WEIR__EXIT_NO : code;
    return code;
}

static int run(const struct weir__call *call)
{
    struct look *l = calloc(1, sizeof(*l));

    if (!l)
        return weir__complain(call->self->name, "no memory");
    l->options = call->options;
    int code = weir__asker_open(&l->asker, call->self->name, call->n > 0 ? call->words[0] : NULL,
                                l->options->timeout);
    if (code == WEIR__GO_ON)
        code = look_around(l, call);
    weir__asker_close(&l->asker);
    free(l);
    return code;
}

const struct weir__command weir__cmd_redis_status = {
    .name = "redis status",
    .summary = "show a Redis, its nodes, clocks and latency",
    .arguments = "[options] [URL]",
    .help = "Finds out whether it is one server, one under Sentinels or a cluster, and asks each "
            "node for its version, for what decides there (Weir's module, redis-cell or scripts), "
            "for its clock against this host's, and how long it takes to answer.\n"
            "\n"
            "  weir redis status redis://localhost\n"
            "  weir redis status redis://10.0.0.1:7000,10.0.0.2:7000\n"
            "  weir redis status redis-sentinel://10.0.0.1,10.0.0.2/mymaster\n"
            "  weir redis status 'rediss://redis.example.org?ca=ca.pem'\n"
            "  weir redis status unix:///run/redis/redis.sock\n"
            "\n" WEIR__REDIS_URL_HELP "\n"
            "\n"
            "Exit codes: 0 all nodes answer, 1 some do not, 2 wrong use or no Redis.",
    WEIR__COMMAND_OPTIONS(rows, .count = 100, .timeout = WEIR_SECOND),
    .words_max = 1,
    .run = run,
};
