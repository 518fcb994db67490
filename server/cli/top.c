/* top.c -- `weir top`: a running server at work, live; or the counts in a table file.
 *
 * A look is four answers of the server.  Rates are the differences of two looks, divided by the
 * time between them on the server's clock, or the table's.  A terminal is redrawn every second
 * until q or Ctrl-C; a pipe gets one view.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "server/base/complain.h"
#include "server/base/terminal.h"
#include "server/cli/ask-server.h"
#include "server/cli/top-from-table.h"

enum { KEYS_SHOWN = 10, COUNTS = 4, WIDE = 80 /* columns */ };

struct options {
    struct weir__ask_server_options remote;
    const char *table, *rules;
    weir_time every;
    bool once;
};

static const struct weir__option rows[] = {
    WEIR__SWITCH("once", '1', once, "print one view and end, as into a pipe"),
    WEIR__VALUE("every", 'e', TIME, every, "TIME",
                "time between two views; default 1s; 0 with --once: one view, without rates"),
    WEIR__TEXT("table", 't', table, "FILE", "a table that nginx or weir serve uses; no server"),
    WEIR__TEXT("rules", 'r', rules, "FILE", "with --table: their rules"),
    { 0 },
};

/* ------------------------------------------------------------------ looks ---- */

enum part { STATUS, MODES, TOP, BANS, PARTS };

static const char *const part_names[PARTS] = { "status", "modes", "top", "bans" };

struct look {
    struct weir__document parts[PARTS];
    struct weir__buffer texts[PARTS]; /* as they came */
    bool taken;
};

static void free_look(struct look *look)
{
    for (int i = 0; i < PARTS; i++) {
        weir__document_free(&look->parts[i]);
        weir__buffer_free(&look->texts[i]);
    }
    *look = (struct look){ 0 };
}

/* A complaint, unless it has been said. */
static bool complain(struct weir__ask_server *r, const struct weir_error *error)
{
    if (error->text[0] != '\0' && !r->silent)
        weir__complain("top", "%s", error->text);
    snprintf(r->said, sizeof(r->said), "%s", error->text[0] ? error->text : "the rules are wrong");
    return false;
}

static bool look_at_table(struct weir__ask_server *r, const struct options *o, struct look *out)
{
    struct weir__top_texts texts;
    struct weir_error error = { 0 };
    int code = weir__top_table_look(&texts, o->table, o->rules, &error);

    *out = (struct look){ .taken = code == WEIR_OK };
    out->texts[STATUS] = texts.status;
    out->texts[MODES] = texts.modes;
    out->texts[BANS] = texts.bans;
    weir__buffer_text(&out->texts[TOP], "{\"top\":[]}"); /* only a server knows the keys */
    for (int i = 0; out->taken && i < PARTS; i++)
        out->taken = weir__document_read(&out->parts[i], out->texts[i].bytes, out->texts[i].len,
                                         &error) == WEIR_OK;
    if (out->taken)
        return true;
    free_look(out);
    return complain(r, &error);
}

/* False after a complaint; then *out is empty. */
static bool take_look(struct weir__ask_server *r, struct look *out)
{
    static const char *const requests[PARTS] = { "GET /v1/status", "GET /v1/modes",
                                                 "GET /v1/top?n=20", "GET /v1/bans" };
    static const char *const members[PARTS] = { "version", "in_force", "top", "bans" };

    const struct options *o = r->call->options;

    if (o->table)
        return look_at_table(r, o, out);
    *out = (struct look){ .taken = true };
    for (int i = 0; i < PARTS; i++) {
        if (!weir__ask_server_for(r, requests[i], members[i])) {
            free_look(out);
            return false;
        }
        out->parts[i] = r->document;
        out->texts[i] = r->answer;
        r->document = (struct weir__document){ 0 };
        r->answer = (struct weir__buffer){ 0 };
    }
    return true;
}

static int count_bans(const struct look *look)
{
    int n = 0;

    while (weir__document_find(&look->parts[BANS], "bans.%d.rule", n))
        n++;
    return n;
}

/* ------------------------------------------------------------------ rates ---- */

#define UNKNOWN (-1.0)

struct rates {
    double seconds; /* between the two looks; 0: nothing is known */
    double allowed, refused;
};

/* A sum of two cannot overflow. */
static int64_t count(int64_t n)
{
    return n < 0 || n > INT64_MAX / 2 ? 0 : n;
}

static int64_t total(const struct look *look, const char *outcome)
{
    const struct weir__document *d = &look->parts[STATUS];

    return count(weir__document_number(d, 0, "totals.check_%s", outcome)) +
           count(weir__document_number(d, 0, "totals.take_%s", outcome));
}

/* A counter that went back belongs to another server. */
static double rate(double seconds, int64_t before, int64_t after)
{
    return seconds > 0 && after >= before ? ((double)after - (double)before) / seconds : UNKNOWN;
}

static int64_t clock_of(const struct look *look)
{
    const struct weir__document *d = &look->parts[STATUS];

    return weir__document_number(d, weir__document_number(d, 0, "now_ms"), "uptime_ms");
}

static struct rates rates_of(const struct look *before, const struct look *now)
{
    int64_t from = clock_of(before), to = clock_of(now);
    struct rates rates = { .seconds = before->taken && to > from
                                          ? ((double)to - (double)from) / 1000
                                          : 0 };

    rates.allowed = rate(rates.seconds, total(before, "allowed"), total(now, "allowed"));
    rates.refused = rate(rates.seconds, total(before, "refused"), total(now, "refused"));
    return rates;
}

struct rule {
    const char *name, *mode;
    int64_t allowed, refused, banned, shadow; /* refused: the banned among them */
    double allowed_rate, refused_rate;        /* UNKNOWN */
};

/* Rules were rarely added before it. */
static int place_of(const struct weir__document *modes, const char *name, int guess)
{
    const char *other = weir__document_text(modes, "rules.%d.rule", guess);

    if (other && strcmp(other, name) == 0)
        return guess;
    for (int i = 0; (other = weir__document_text(modes, "rules.%d.rule", i)) != NULL; i++) {
        if (strcmp(other, name) == 0)
            return i;
    }
    return -1;
}

static struct rule read_rule(const struct look *before, const struct look *now,
                             const struct rates *rates, int i)
{
    const struct weir__document *d = &now->parts[MODES], *old = &before->parts[MODES];
    struct rule rule = { .name = weir__document_text(d, "rules.%d.rule", i),
                         .mode = weir__document_text(d, "rules.%d.in_force", i) };

    rule.allowed = weir__document_number(d, 0, "rules.%d.allowed", i);
    rule.refused = weir__document_number(d, 0, "rules.%d.refused", i);
    rule.banned = weir__document_number(d, 0, "rules.%d.banned", i);
    rule.shadow = weir__document_number(d, 0, "rules.%d.shadow_refused", i);
    int was = rates->seconds > 0 ? place_of(old, rule.name, i) : -1;
    double seconds = was < 0 ? 0 : rates->seconds;
    rule.allowed_rate =
        rate(seconds, weir__document_number(old, 0, "rules.%d.allowed", was), rule.allowed);
    rule.refused_rate =
        rate(seconds, weir__document_number(old, 0, "rules.%d.refused", was), rule.refused);
    return rule;
}

static int compare_rules(const void *left, const void *right)
{
    const struct rule *a = left, *b = right;

    if (a->refused_rate != b->refused_rate)
        return a->refused_rate > b->refused_rate ? -1 : 1;
    if (a->allowed_rate != b->allowed_rate)
        return a->allowed_rate > b->allowed_rate ? -1 : 1;
    if (a->refused != b->refused)
        return a->refused > b->refused ? -1 : 1;
    return a->allowed == b->allowed ? strcmp(a->name, b->name) : a->allowed > b->allowed ? -1 : 1;
}

/* The busiest first; the caller frees them.  NULL with *n 0: there are none. */
static struct rule *list_rules(const struct look *before, const struct look *now,
                               const struct rates *rates, size_t *n)
{
    size_t all = 0;

    while (weir__document_find(&now->parts[MODES], "rules.%zu.rule", all))
        all++;
    struct rule *rules = all ? calloc(all, sizeof(*rules)) : NULL;
    for (size_t i = 0; rules && i < all; i++)
        rules[i] = read_rule(before, now, rates, (int)i);
    *n = rules ? all : 0;
    if (rules)
        qsort(rules, all, sizeof(*rules), compare_rules);
    return rules;
}

/* ---------------------------------------------------------------- drawing ---- */

struct screen {
    struct weir__colours c;
    const char *end; /* of a line: wipes the rest of the old one */
    int left;        /* lines that there is room for yet */
    int columns;     /* a terminal cuts what is beyond; below WIDE less is shown */
};

static void end_line(struct screen *s)
{
    printf("%s\n", s->end);
    s->left--;
}

/* Begins another line where one for all is too long. */
static void break_line(struct screen *s)
{
    printf("%s", s->c.off);
    if (s->columns < WIDE) {
        end_line(s);
        printf("%10s", "");
    }
}

/* Of a column that can be narrower: down to half of it. */
static int narrowed(const struct screen *s, int width)
{
    int missing = s->columns < WIDE ? WIDE - s->columns : 0;

    return missing < width / 2 ? width - missing : width - width / 2;
}

static void print_cut(const char *text, int width)
{
    char cut[64];
    int len = (int)strlen(text);

    width = width < (int)sizeof(cut) ? width : (int)sizeof(cut) - 1;
    snprintf(cut, sizeof(cut), "%.*s%s", len > width ? width - 2 : len, text,
             len > width ? ".." : "");
    weir__print_safely(stdout, cut);
    printf("%*s ", len < width ? width - len : 0, "");
}

static void print_rate(double rate, int width)
{
    if (rate < 0)
        printf("%*s", width, "-");
    else
        printf("%*.*f", width, rate < 100 ? 1 : 0, rate);
}

/* Seven columns at the most: 1234567, 12.3M. */
static void print_count(int64_t n, int width)
{
    static const char units[] = "MGTPE";
    double value = (double)n / 1e6;
    size_t unit = 0;

    if (n < 10000000) {
        printf("%*lld", width, (long long)n);
        return;
    }
    for (; value >= 1000 && units[unit + 1]; value /= 1000)
        unit++;
    printf("%*.1f%c", width - 1, value, units[unit]);
}

static void draw_head(struct screen *s, const struct look *now, const char *server)
{
    const struct weir__document *d = &now->parts[STATUS];

    printf("%s", s->c.bold);
    weir__show(d, "", "weir {version}");
    printf("%s  ", s->c.off);
    weir__print_safely(stdout, server);
    if (weir__document_find(d, "uptime_ms")) {
        weir__show(d, "", "  up {uptime_ms:ms}");
        break_line(s);
        weir__show(d, "", "  connections {connections}  rules {rules.hash|none}");
    }
    end_line(s);
    if (weir__document_text(d, "rules.problem")) {
        printf("%sthe last reload was refused: weir status says why%s", s->c.bad, s->c.off);
        end_line(s);
    }
}

/* One line, and none if there are no guards: weir guards shows more. */
static void draw_guards(struct screen *s, const struct weir__document *d)
{
    if (weir__document_number(d, 0, "guards.guards") == 0 &&
        weir__document_number(d, 0, "guards.degradation") == 0)
        return;
    weir__show(d, "", "guards    {guards.in_flight} at work in {guards.guards}");
    printf("%s", s->c.bad);
    weir__show(d, "", "[   {guards.open} not closed][   degradation {guards.degradation}]");
    printf("%s", s->c.off);
    end_line(s);
}

static void draw_totals(struct screen *s, const struct look *now, const struct rates *rates)
{
    const struct weir__document *d = &now->parts[STATUS];
    int64_t slots = weir__document_number(d, 0, "table.slots"),
            keys = weir__document_number(d, 0, "table.keys");

    printf("allowed/s ");
    print_rate(rates->allowed, 8);
    printf("   refused/s %s", rates->refused > 0 ? s->c.bad : "");
    print_rate(rates->refused, 8);
    break_line(s);
    printf("   total ");
    print_count(total(now, "allowed"), 0);
    printf(" allowed, ");
    print_count(total(now, "refused"), 0);
    printf(" refused");
    end_line(s);
    printf("table     %lld of %lld slots (%.1f%%)", (long long)keys, (long long)slots,
           slots > 0 ? 100.0 * (double)keys / (double)slots : 0.0);
    printf("%s", s->c.bad);
    weir__show(d, "", "[  {table.evicted_early#key} evicted early, to make room]");
    break_line(s);
    printf("   bans %d", count_bans(now));
    end_line(s);
    draw_guards(s, d);
}

static const char *const count_names[COUNTS] = { "ALLOWED", "REFUSED", "BANNED", "SHADOW" };

/* How many of a rule's counts a line has room for. */
static int counts_shown(const struct screen *s)
{
    int room = (s->columns - (narrowed(s, 20) + 28)) / 8;

    return room < 0 ? 0 : room < COUNTS ? room : COUNTS;
}

static void draw_rule(struct screen *s, const struct rule *rule)
{
    const int64_t counts[COUNTS] = { rule->allowed, rule->refused, rule->banned, rule->shadow };

    printf("%s", rule->refused_rate > 0 ? s->c.bad : "");
    print_cut(rule->name, narrowed(s, 20));
    print_cut(rule->mode ? rule->mode : "?", 7);
    print_rate(rule->allowed_rate, 9);
    printf(" ");
    print_rate(rule->refused_rate, 9);
    for (int i = 0; i < counts_shown(s); i++)
        print_count(counts[i], 8);
    printf("%s", s->c.off);
    end_line(s);
}

/* Leaves some lines for the keys below. */
static void draw_rules(struct screen *s, const struct look *before, const struct look *now,
                       const struct rates *rates, int keys)
{
    size_t n, shown = 0;
    struct rule *rules = list_rules(before, now, rates, &n);
    int reserve = keys > 0 ? (keys < KEYS_SHOWN ? keys : KEYS_SHOWN) + 2 : 0;

    end_line(s);
    printf("%s%-*s %-7s %9s %9s", s->c.dim, narrowed(s, 20), "RULE", "MODE", "ALLOWED/S",
           "REFUSED/S");
    for (int i = 0; i < counts_shown(s); i++)
        printf(" %7s", count_names[i]);
    printf("%s", s->c.off);
    end_line(s);
    for (; shown < n && (s->left > reserve + 1 || shown < 3) && s->left > 0; shown++)
        draw_rule(s, &rules[shown]);
    if (shown < n && s->left > 0) {
        printf("%sand %zu more%s", s->c.dim, n - shown, s->c.off);
        end_line(s);
    }
    free(rules);
}

/* "(deny)" and the like are no rules. */
static bool is_in_force(const struct weir__document *modes, const char *name)
{
    const char *guard;

    if (*name == '\0' || *name == '(' || place_of(modes, name, 0) >= 0)
        return true;
    for (int i = 0; (guard = weir__document_text(modes, "guards.%d.guard", i)) != NULL; i++)
        if (strcmp(guard, name) == 0)
            return true;
    return false;
}

static void draw_keys(struct screen *s, const struct weir__document *top,
                      const struct weir__document *modes)
{
    const char *key;

    if (s->left < 3 || !weir__document_find(top, "top.0.key"))
        return;
    end_line(s);
    int key_width = narrowed(s, 34), rule_width = narrowed(s, 22);

    printf("%s%-*s %-*s %8s%s", s->c.dim, key_width,
           s->columns < WIDE ? "REFUSED MOST" : "REFUSED MOST, LATELY", rule_width, "RULE",
           "REFUSED", s->c.off);
    end_line(s);
    for (int i = 0;
         s->left > 0 && i < KEYS_SHOWN && (key = weir__document_text(top, "top.%d.key", i)) != NULL;
         i++) {
        const char *rule = weir__document_text(top, "top.%d.rule", i);
        print_cut(*key ? key : "(everybody)", key_width);
        print_cut(rule ? rule : "", rule_width);
        print_count(weir__document_number(top, 0, "top.%d.refused", i), 8);
        printf("%s", is_in_force(modes, rule ? rule : "") ? "" : "  not in force");
        end_line(s);
    }
}

static void draw(struct screen *s, const struct look *before, const struct look *now,
                 const char *server)
{
    struct rates rates = rates_of(before, now);
    int keys = 0;

    while (keys < KEYS_SHOWN && weir__document_find(&now->parts[TOP], "top.%d.key", keys))
        keys++;
    draw_head(s, now, server);
    draw_totals(s, now, &rates);
    draw_rules(s, before, now, &rates, keys);
    draw_keys(s, &now->parts[TOP], &now->parts[MODES]);
}

static struct screen plain_screen(void)
{
    return (struct screen){
        .c = weir__colours(weir__wants_colours()), .end = "", .left = 1 << 20, .columns = WIDE
    };
}

/* ------------------------------------------------------------------- JSON ---- */

static void json_rates(struct weir__buffer *json, double allowed, double refused)
{
    const double values[] = { allowed, refused };
    const char *const names[] = { "allowed", "refused" };

    for (size_t i = 0; i < 2; i++) {
        weir__buffer_member_name(json, names[i]);
        if (values[i] < 0)
            weir__buffer_text(json, "null");
        else
            weir__buffer_format(json, "%.3f", values[i]);
    }
}

static void print_json(const struct look *before, const struct look *now)
{
    struct rates rates = rates_of(before, now);
    struct weir__buffer json = { 0 };
    size_t n;
    struct rule *rules = list_rules(before, now, &rates, &n);

    weir__buffer_open(&json, NULL, '{');
    for (int i = 0; i < PARTS; i++) {
        weir__buffer_member_name(&json, part_names[i]);
        weir__buffer_add(&json, now->texts[i].bytes, now->texts[i].len);
    }
    weir__buffer_open(&json, "rates", '{');
    weir__buffer_member_number(&json, "interval_ms", (int64_t)(rates.seconds * 1000 + 0.5));
    json_rates(&json, rates.allowed, rates.refused);
    weir__buffer_open(&json, "rules", '[');
    for (size_t i = 0; i < n; i++) {
        weir__buffer_open(&json, NULL, '{');
        weir__buffer_member(&json, "rule", rules[i].name);
        json_rates(&json, rules[i].allowed_rate, rules[i].refused_rate);
        weir__buffer_close(&json, "}");
    }
    weir__buffer_close(&json, "]}}\n");
    weir__buffer_print(&json, stdout);
    free(rules);
}

/* ------------------------------------------------------------------- once ---- */

static int every_ms(const struct options *o)
{
    return o->every / WEIR_MILLISECOND > 3600000 ? 3600000 : (int)(o->every / WEIR_MILLISECOND);
}

static int print_once(struct weir__ask_server *r, const struct options *o)
{
    struct look before = { 0 }, now = { 0 };
    bool taken = take_look(r, &now);

    if (taken && o->every > 0) {
        before = now;
        poll(NULL, 0, every_ms(o));
        taken = take_look(r, &now);
    }
    if (taken && o->remote.json) {
        print_json(&before, &now);
    } else if (taken) {
        struct screen screen = plain_screen();
        draw(&screen, &before, &now, r->options.server);
    }
    free_look(&before);
    free_look(&now);
    return taken ? WEIR__EXIT_OK : WEIR__EXIT_WRONG;
}

/* ------------------------------------------------------------------- live ---- */

/* Set by a signal; the terminal is restored on the way out. */
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

/* True: q was pressed, or a signal came. */
static bool wait_for_end(int ms, bool keys)
{
    struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
    char key;

    if (poll(&in, keys ? 1 : 0, ms) > 0 &&
        (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q'))
        return true;
    return interrupted;
}

static void draw_frame(struct weir__ask_server *r, const struct look *before,
                       const struct look *now)
{
    struct screen screen = plain_screen();
    struct winsize size = { .ws_row = 24 };

    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    screen.columns = size.ws_col > 0 ? size.ws_col : WIDE;
    screen.left = (size.ws_row > 4 ? size.ws_row : 24) - 2;
    screen.end = "\033[K";
    fputs("\033[H", stdout);
    if (now->taken)
        draw(&screen, before, now, r->options.server);
    printf("\033[J%s%s%s", screen.c.dim, now->taken ? "q ends" : "", screen.c.off);
    if (!now->taken) {
        printf("%s", screen.c.bad);
        weir__print_safely(stdout, r->said);
        printf("%s; trying again; q ends\033[K", screen.c.off);
    }
    fflush(stdout);
}

/* A lost server is waited for. */
static void watch(struct weir__ask_server *r, const struct options *o, struct look *first,
                  bool keys)
{
    struct look before = { 0 }, now = *first;
    int ms = every_ms(o);

    *first = before;
    r->silent = true;
    draw_frame(r, &before, &now);
    while (!wait_for_end(ms > 0 ? ms : 1000, keys) && !ferror(stdout)) {
        free_look(&before);
        before = now;
        take_look(r, &now);
        draw_frame(r, &before, &now);
    }
    free_look(&before);
    free_look(&now);
}

static int run_live(struct weir__ask_server *r, const struct options *o)
{
    struct sigaction action = { .sa_handler = on_signal };
    struct termios before, raw;
    struct look first;

    if (!take_look(r, &first)) /* complaints come before the screen is ours */
        return WEIR__EXIT_WRONG;
    bool keys = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &before) == 0;

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (keys) {
        raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    fputs("\033[?1049h\033[?25l\033[?7l\033[2J", stdout); /* own screen, no cursor, no wrap */
    watch(r, o, &first, keys);
    fputs("\033[?7h\033[?25h\033[?1049l", stdout);
    fflush(stdout);
    if (keys)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return WEIR__EXIT_OK;
}

static bool is_live(const struct options *o)
{
    const char *term = getenv("TERM");

    return !o->once && !o->remote.json && isatty(STDOUT_FILENO) && term && *term &&
           strcmp(term, "dumb") != 0;
}

static int ask(const struct weir__call *call, struct weir__ask_server *r)
{
    const struct options *o = call->options;

    return is_live(o) ? run_live(r, o) : print_once(r, o);
}

static int run(const struct weir__call *call)
{
    const struct options *o = call->options;
    struct weir__ask_server r = { .call = call, .options = o->remote };

    if (!o->table)
        return o->rules ? weir__command_wrong(call->self, "--rules needs --table FILE: a server "
                                                          "has its own rules")
                        : WEIR__GO_ON;
    if (o->remote.server)
        return weir__command_wrong(call->self, "--table or --server, not both");
    if (!o->rules)
        return weir__command_wrong(call->self, "--table needs --rules FILE: the table has the "
                                               "counts of rules, not their names and modes");
    r.options.server = o->table;
    return ask(call, &r);
}

const struct weir__command weir__cmd_top = {
    .name = "top",
    .summary = "watch a server, or nginx, at work",
    .arguments = "[--server ADDRESS | --table FILE --rules FILE] [options]",
    .help = "Decisions a second, rule by rule, the keys refused most, bans and the table. Redrawn "
            "every second until q or Ctrl-C.\n"
            "\n"
            "  ALLOWED/S, REFUSED/S  since the previous view; -: not known\n"
            "  ALLOWED, REFUSED      by this rule, since the server has it\n"
            "  BANNED                of the refused, those of banned keys\n"
            "  SHADOW                let in, but refused if the mode were enforce\n"
            "\n"
            "  weir top --once --json\n"
            "  weir top --table /run/nginx.weir --rules /etc/nginx/rules.yaml\n"
            "\n"
            "With --table, the counts are those of all processes that use it, since it was made. A "
            "table does not know which keys were refused.\n"
            "\n"
            "Exit codes: 0 done, 2 wrong use or no server.",
    WEIR__ASK_SERVER(rows, .every = WEIR_SECOND),
    .run = run,
    .ask = ask,
};
