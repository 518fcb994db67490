/* settings.c -- everything `weir serve` can be told: the table, its sources, its values.
 *
 * A setting is a row of the table below: its name, how its text is read, its default, its bounds,
 * and its line of the help.  First the text of each is found (command line, environment, file),
 * then all are read, so that every complaint names the place the text comes from.
 */
#include "server/serve/settings/settings.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cluster/redis/url.h"
#include "match/address.h"
#include "rulefile/node.h"
#include "server/base/file.h"
#include "server/base/options.h"
#include "server/base/complain.h"
#include "server/base/token.h"
#include "server/base/url.h"
#include "server/serve/net/listen.h"
#include "server/serve/settings/trusted-proxies.h"
#include "server/serve/settings/table-path.h"

#define MIB ((int64_t)1 << 20)
#define DAY (86400 * WEIR_SECOND)

#define ROW(head, of_kind, text, member, by_default, least, most, written, about)          \
    {                                                                                      \
        .name = text, .kind = WEIR__OPTION_##of_kind,                                      \
        .offset = offsetof(struct weir__settings, member), .min = least, .value = written, \
        .help = about, .max = most, .standard = by_default, .section = head                \
    }

/* The row behind a secret is its file. */
#define SETTINGS 44
const struct weir__option weir__settings_rows[] = {
    ROW("listening", ADDRESSES, "resp", resp, "127.0.0.1:7379", 0, 0, "ADDRESSES",
        "listen for Redis clients: HOST:PORT, [HOST6]:PORT or the path of a unix socket, "
        "separated by commas; empty: do not"),
    ROW(NULL, ADDRESSES, "http", http, "127.0.0.1:7380", 0, 0, "ADDRESSES",
        "listen for HTTP, likewise"),
    ROW(NULL, MODE, "socket-mode", socket_mode, "0600", 0, 0777, "MODE",
        "permissions of unix sockets"),
    ROW(NULL, COUNT, "threads", threads, "0", 0, WEIR__THREADS_MAX, "N",
        "worker threads; 0: one per core"),

    ROW("rules and state", TEXT, "rules", rules, "", 0, 0, "FILE",
        "rule file; without one, every check is allowed until rules are set"),
    ROW(NULL, SWITCH, "watch", watch, "true", 0, 0, NULL, "reload the rule file when it changes"),
    ROW(NULL, TEXT, "table", table, "", 0, 0, "FILE",
        "keep the state of all keys here; default weir.table in $STATE_DIRECTORY, "
        "$XDG_STATE_HOME/weir or ~/.local/state/weir"),
    ROW(NULL, MODE, "table-mode", table_mode, "0", 0, 0777, "MODE",
        "permissions of a new table; 0: 0600, or 0660 with table-group"),
    ROW(NULL, TEXT, "table-owner", table_owner, "", 0, 0, "USER",
        "owner of a new table, a name or a number; needs root"),
    ROW(NULL, TEXT, "table-group", table_group, "", 0, 0, "GROUP",
        "group of a new table, likewise; yours, or it needs root"),
    ROW(NULL, SWITCH, "memory", memory, "false", 0, 0, NULL, "keep the state in memory only"),
    ROW(NULL, COUNT, "keys", keys, "1000000", 64, 10000000000, "N", "size of a new table, in keys"),
    ROW(NULL, COUNT, "limiters", limiters, "4096", 1, 65536, "N", "size of a new table, in limits"),

    ROW("fleet", REDIS, "fleet", fleet, "", 0, 0, "URL",
        "the Redis of a fleet: rules `across: fleet` are one limit for all its nodes; without "
        "--rules, this node follows the fleet's rules. Others can read flags: put a password into "
        "WEIR_FLEET, or into the settings file if nobody else can read that"),
    ROW(NULL, TEXT, "fleet-name", fleet_name, "", 0, 0, "NAME",
        "which of the fleets there; default 'default'"),
    ROW(NULL, TEXT, "fleet-node", fleet_node, "", 0, 0, "NAME",
        "this node's name; default the host's name and four digits that the table knows"),
    ROW(NULL, COUNT, "fleet-weight", fleet_weight, "1", 1, 1000000, "N",
        "this node's weight: its part of each limit, beside others', while Redis is away"),
    ROW(NULL, COUNT, "fleet-nodes", fleet_nodes, "0", 0, 1000000, "N",
        "how many nodes there are: a new one that starts while Redis is away uses 1/N of each "
        "limit; 0: not known, and `when_alone: share` lets nothing pass there until Redis has "
        "answered"),

    ROW("access", SECRET, "admin-token", admin_token, "", 0, 0, "SECRET",
        "grants all rights; no flag, because others can read flags: use the environment or a file"),
    ROW(NULL, TEXT, "admin-token-file", admin_token_file, "", 0, 0, "FILE",
        "file with the token in its first line"),
    ROW(NULL, SECRET, "check-token", check_token, "", 0, 0, "SECRET",
        "grants the right to ask; once set, asking needs a token"),
    ROW(NULL, TEXT, "check-token-file", check_token_file, "", 0, 0, "FILE",
        "file with the token in its first line"),
    ROW(NULL, COUNT, "auth-guesses", auth_guesses, "10", 0, 1000000, "N",
        "wrong tokens per minute from one address, then its tokens are refused; 0: never"),
    ROW(NULL, NETWORKS, "trusted-proxies", trusted_proxies, "127.0.0.0/8,::1", 0, 0, "NETWORKS",
        "trust X-Forwarded-For and the like from these"),
    ROW(NULL, TEXT, "tls-certificate", tls_certificate, "", 0, 0, "FILE",
        "certificate (PEM); turns on TLS on all TCP ports"),
    ROW(NULL, TEXT, "tls-key", tls_key, "", 0, 0, "FILE", "its private key (PEM)"),
    ROW(NULL, TEXT, "tls-client-ca", tls_client_ca, "", 0, 0, "FILE",
        "require client certificates signed by this CA (PEM)"),

    ROW("bounds", COUNT, "connections-max", connections_max, "16000", 1, 1000000, "N",
        "open connections"),
    ROW(NULL, SIZE, "request-max", request_max, "1m", 1024, 64 * MIB, "SIZE",
        "size of one request"),
    ROW(NULL, SIZE, "output-max", output_max, "1m", 65536, 1024 * MIB, "SIZE",
        "output buffered for a slow subscriber"),
    ROW(NULL, TIME, "idle", idle, "1h", 0, 365 * DAY, "TIME",
        "close connections idle for this time; 0: never"),
    ROW(NULL, TIME, "patience", patience, "10s", 100 * WEIR_MILLISECOND, 3600 * WEIR_SECOND, "TIME",
        "time for a whole request to arrive"),
    ROW(NULL, TIME, "drain", drain, "10s", 0, 3600 * WEIR_SECOND, "TIME",
        "time for open requests to finish after SIGTERM"),
    ROW(NULL, TIME, "ask-id-lifetime", ask_id_lifetime, "1m", WEIR_SECOND, DAY, "TIME",
        "charge an ask once if it is repeated with the same id within this time"),
    ROW(NULL, COUNT, "ask-ids", ask_ids, "131072", 1, 16777216, "N", "ids to remember"),
    ROW(NULL, TIME, "reservation-lifetime", reservation_lifetime, "1h", WEIR_SECOND, DAY, "TIME",
        "longest time to settle a reservation; longer ones are cut to it"),
    ROW(NULL, COUNT, "adhoc-limits", adhoc_limits, "2048", 1, 65536, "N",
        "distinct limits that clients may send with their asks"),
    ROW(NULL, COUNT, "top", top, "256", 1, 65536, "N",
        "keys to follow for the list of the most limited keys"),

    ROW("events", TEXT, "events-log", events_log, "", 0, 0, "FILE",
        "append each event as a line of JSON; -: standard output"),
    ROW(NULL, URL, "webhook", webhook, "", 0, 0, "URL", "post events to this URL"),
    ROW(NULL, SECRET, "webhook-token", webhook_token, "", 0, 0, "SECRET",
        "bearer token to post them with"),
    ROW(NULL, TEXT, "webhook-token-file", webhook_token_file, "", 0, 0, "FILE",
        "file with the token in its first line"),

    ROW("others", TEXT, "config", config, "", 0, 0, "FILE",
        "settings file: YAML, lines of NAME: VALUE"),
    ROW(NULL, SWITCH, "test-clock", test_clock, "false", 0, 0, NULL,
        "stop the clock until WEIR.CLOCK sets it, for tests"),
    { .name = "print-settings",
      .help = "print all settings and their sources as a settings file, defaults as comments, and "
              "exit" },
    { .name = NULL },
};

enum { CONFIG = SETTINGS - 2, PRINT = SETTINGS, ROWS };

_Static_assert(sizeof(weir__settings_rows) / sizeof(weir__settings_rows[0]) == ROWS + 1,
               "SETTINGS counts the rows");

/* ---------------------------------------------------------------- sources ---- */

struct found {
    const char *text; /* NULL: the default */
    enum { FLAG, ENVIRONMENT, CONFIG_FILE } from;
    struct weir__mark mark; /* in the file; line 0: it does not say */
};

struct reading {
    const struct weir__command *self;
    struct weir__settings s;
    struct found values[SETTINGS];
    const char *config;
    struct weir__arena nodes; /* of the file */
};

struct place {
    char text[300];
};

/* --keys, WEIR_KEYS, weir.conf:12:7: keys */
static struct place place_of(const struct reading *r, const struct weir__option *row)
{
    const struct found *v = &r->values[row - weir__settings_rows];
    struct place place;

    if (v->text && v->from == CONFIG_FILE)
        snprintf(place.text, sizeof(place.text), "%.200s:%d:%d: %s", r->config, v->mark.line,
                 v->mark.column, row->name);
    else if (v->text && v->from == ENVIRONMENT)
        snprintf(place.text, sizeof(place.text), "%s", weir__option_environment(row).name);
    else
        snprintf(place.text, sizeof(place.text), "--%s", row->name);
    return place;
}

static int find_texts(struct reading *r, int argc, char **argv, bool *print)
{
    const char *texts[ROWS] = { NULL };
    int rest, code = weir__options_find(r->self, argc, argv, texts, &rest);

    if (code == WEIR__GO_ON && rest > 0) {
        weir__complain("serve", "unexpected '%s'; a rule file is --rules FILE", argv[0]);
        return WEIR__EXIT_WRONG;
    }
    for (size_t i = 0; i < SETTINGS; i++) {
        r->values[i].from = texts[i] ? FLAG : ENVIRONMENT;
        r->values[i].text =
            texts[i] ? texts[i] : getenv(weir__option_environment(&weir__settings_rows[i]).name);
    }
    *print = texts[PRINT];
    return code;
}

/* NULL: there is none. */
static const struct weir__option *find_row(const char *name)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        if (strcmp(weir__settings_rows[i].name, name) == 0)
            return &weir__settings_rows[i];
    }
    return NULL;
}

static bool is_setting(const char *variable, size_t len)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        struct weir__environment e = weir__option_environment(&weir__settings_rows[i]);
        if (strlen(e.name) == len && memcmp(e.name, variable, len) == 0)
            return true;
    }
    return false;
}

/* A slip in a flag or in the file is an error; a variable may be somebody else's. */
static void doubt_environment(void)
{
    extern char **environ;
    const char *names[SETTINGS];

    for (size_t i = 0; i < SETTINGS; i++)
        names[i] = weir__settings_rows[i].name;
    for (char **v = environ; *v; v++) {
        size_t len = strcspn(*v, "=");
        if (strncmp(*v, "WEIR_", 5) != 0 || is_setting(*v, len))
            continue;
        const char *near = weir__nearest(*v + 5, len - 5, names, SETTINGS);
        if (near)
            weir__complain("serve", "warning: %s in the environment sets nothing; did you mean %s?",
                           weir__quote(*v, len).text,
                           weir__option_environment(find_row(near)).name);
    }
}

/* How much of an unknown name may be shown: admin-token:SECRET is a name, too. */
static size_t shown_length(const struct weir__node *key)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        const struct weir__option *row = &weir__settings_rows[i];
        size_t len = strlen(row->name);
        if (row->kind == WEIR__OPTION_SECRET && strncmp(key->text, row->name, len) == 0)
            return len;
    }
    return strcspn(key->text, ": =");
}

/* A name and its value in the file. */
static void find_pair(struct reading *r, struct weir__report *report, const struct weir__node *key,
                      const struct weir__node *value)
{
    const struct weir__option *row = find_row(key->text);
    const char *names[SETTINGS];

    for (size_t i = 0; i < SETTINGS; i++)
        names[i] = weir__settings_rows[i].name;
    if (row == NULL) {
        size_t shown = shown_length(key);
        bool token = shown < WEIR__EDITS_MAX && weir__edits(key->text, shown, "tokens", 6) <= 2;
        if (shown < key->n && shown > 0)
            weir__report_add(report, key->at,
                             "a name and a value are NAME: VALUE, with a space; found %s...",
                             weir__quote(key->text, shown).text);
        else
            weir__report_add(report, key->at, "there is no setting %s; %s",
                             weir__quote(key->text, shown).text,
                             token ? "did you mean 'admin-token' or 'check-token'?"
                                   : weir__hint(key->text, shown, names, SETTINGS).text);
    } else if (row == &weir__settings_rows[CONFIG]) {
        weir__report_add(report, key->at, "config names this file; it cannot be set in it");
    } else if (value->kind != WEIR__NODE_TEXT && value->kind != WEIR__NODE_NOTHING) {
        weir__report_add(report, value->at,
                         "%s must be text; found %s; text that begins with [ or { needs quotes",
                         row->name, weir__node_word(value));
    } else if (row->kind == WEIR__OPTION_SECRET && value->kind == WEIR__NODE_NOTHING) {
        weir__report_add(
            report, value->at,
            "%s is empty; a secret that begins with & or # needs quotes; '' means none", row->name);
    } else if (r->values[row - weir__settings_rows].text == NULL) {
        r->values[row - weir__settings_rows] =
            (struct found){ value->text, CONFIG_FILE, weir__report_mark(report, value->at) };
    }
}

/* Without the line itself: a secret may stand in it. */
static void complain(void *context, const struct weir_problem *p)
{
    if (p->line > 0)
        weir__complain("serve", "%s:%d:%d: %s", (const char *)context, p->line, p->column, p->text);
    else
        weir__complain("serve", "%s: %s", (const char *)context, p->text);
}

static bool find_in_text(struct reading *r, struct weir__report *report)
{
    struct weir_rules_options options = { .problem = complain,
                                          .context = (void *)(uintptr_t)r->config };
    const struct weir__node *root = weir__yaml_read(&r->nodes, report);

    if (root != NULL && root->kind == WEIR__NODE_MAPPING) {
        for (size_t i = 0; i < root->n; i++)
            find_pair(r, report, root->items[2 * i], root->items[2 * i + 1]);
    } else if (root != NULL && root->kind != WEIR__NODE_NOTHING) {
        weir__report_add(report, root->at, "a settings file has lines of NAME: VALUE");
    }
    if (r->nodes.failed)
        weir__complain("serve", "no memory to read %s", r->config);
    return weir__report_tell(report, &options, NULL) == WEIR_OK && !r->nodes.failed;
}

static bool find_in_file(struct reading *r)
{
    enum { FILE_MAX = 1 << 20 };
    struct weir__report *report = calloc(1, sizeof(*report));
    size_t len = 0;
    char *text = strcmp(r->config, "-") == 0 ? (errno = EINVAL, NULL)
                                             : weir__file_read(r->config, FILE_MAX, &len);
    bool good =
        report != NULL && text != NULL && weir__report_open(report, text, len, NULL) == WEIR_OK;

    if (!good)
        weir__complain("serve", "cannot read %s: %s", r->config, strerror(errno));
    else
        good = find_in_text(r, report);
    if (report != NULL)
        weir__report_close(report);
    free(report);
    if (text != NULL)
        explicit_bzero(text, len);
    free(text);
    return good;
}

/* ----------------------------------------------------------------- values ---- */

static void *member_of(const struct weir__settings *settings, const struct weir__option *row)
{
    return (char *)(uintptr_t)settings + row->offset;
}

static const char *text_of(const struct weir__settings *settings, const struct weir__option *row)
{
    return *(const char **)member_of(settings, row);
}

static const char *wrong_bytes(const struct weir__option *row, const char *text)
{
    if (row->kind == WEIR__OPTION_SECRET)
        return weir__token_wrong(text);
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7F)
            return "has a control character in it";
    }
    return NULL;
}

static int check_redis(const char *text, struct weir_error *error)
{
    struct weir__redis_url url;
    int code = weir__redis_url_parse(&url, text, error);

    explicit_bzero(&url, sizeof(url));
    return code;
}

/* Reads it as its user will. */
static int check_text(const struct weir__option *row, const char *text, struct weir_error *error)
{
    struct weir__cidr_set *networks = NULL;
    struct weir__url url;

    if (row->kind == WEIR__OPTION_ADDRESSES)
        return weir__listen_check(text, error);
    if (row->kind == WEIR__OPTION_URL && *text)
        return weir__url_parse(&url, text, error);
    if (row->kind == WEIR__OPTION_REDIS && *text)
        return check_redis(text, error);
    if (row->kind != WEIR__OPTION_NETWORKS)
        return WEIR_OK;
    int code = weir__proxies_parse(&networks, text, error);
    weir__cidr_set_destroy(networks);
    return code;
}

static bool keep_text(struct reading *r, const struct weir__option *row, const char *text)
{
    char *copy = strdup(text), **member = member_of(&r->s, row);

    if (!copy)
        weir__complain("serve", "no memory for the settings");
    free(*member);
    *member = copy;
    return copy;
}

static bool read_text(struct reading *r, const struct weir__option *row, const char *text)
{
    struct weir_error error = { 0 };
    const char *wrong = wrong_bytes(row, text);

    if (wrong) {
        weir__complain("serve", "%s %s", place_of(r, row).text, wrong);
        return false;
    }
    if (check_text(row, text, &error) == WEIR_OK)
        return keep_text(r, row, text);
    weir__complain_at("serve", place_of(r, row).text, text, &error);
    return false;
}

static bool read_values(struct reading *r)
{
    bool good = true;

    for (size_t i = 0; good && i < SETTINGS; i++) {
        const struct weir__option *row = &weir__settings_rows[i];
        const char *text = r->values[i].text ? r->values[i].text : row->standard;
        good = weir__option_is_text(row)
                   ? read_text(r, row, text)
                   : weir__option_read("serve", row, place_of(r, row).text, text, &r->s);
    }
    return good;
}

/* -------------------------------------------------------- secrets in files ---- */

static void warn_if_open(const char *path)
{
    struct stat st;

    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IROTH))
        weir__complain("serve",
                       "warning: everybody on this host can read %s, and it has a secret in it; "
                       "chmod 600 it",
                       path);
}

static bool read_secret_file(struct reading *r, const struct weir__option *secret)
{
    const char *path = text_of(&r->s, secret + 1);
    char **member = member_of(&r->s, secret), *token = NULL;
    struct weir_error error = { 0 };

    if (weir__token_read(&token, path, &error) != WEIR_OK) {
        weir__complain("serve", "%s: %s", place_of(r, secret + 1).text, error.text);
        return false;
    }
    warn_if_open(path);
    free(*member);
    *member = token;
    return true;
}

static bool has_password(const char *text)
{
    struct weir__redis_url url;
    bool has = *text && weir__redis_url_parse(&url, text, NULL) == WEIR_OK &&
               (*url.login.password || *url.sentinel_login.password);

    explicit_bzero(&url, sizeof(url));
    return has;
}

static bool read_secrets(struct reading *r)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        const struct weir__option *secret = &weir__settings_rows[i];
        if (secret->kind == WEIR__OPTION_REDIS && r->values[i].from == CONFIG_FILE &&
            has_password(text_of(&r->s, secret)))
            warn_if_open(r->config);
        if (secret->kind != WEIR__OPTION_SECRET)
            continue;
        bool has = *text_of(&r->s, secret), named = *text_of(&r->s, secret + 1);
        if (has && named) {
            weir__complain("serve", "%s and %s are both set; one is enough",
                           place_of(r, secret).text, place_of(r, secret + 1).text);
            return false;
        }
        if (named && !read_secret_file(r, secret))
            return false;
        if (has && r->values[i].from == CONFIG_FILE)
            warn_if_open(r->config);
    }
    return true;
}

/* --------------------------------------------------------------- together ---- */

static bool choose_table(struct reading *r, bool print)
{
    const struct weir__option *table = find_row("table"), *memory = find_row("memory");
    char path[4096];

    if (r->s.memory && *r->s.table) {
        weir__complain("serve", "%s and %s exclude each other: with memory there is no table file",
                       place_of(r, memory).text, place_of(r, table).text);
        return false;
    }
    if (r->s.memory || *r->s.table)
        return true;
    if (!weir__table_path(path, sizeof(path))) {
        weir__complain("serve", "there is no HOME to keep the table file in; --table FILE says "
                                "where, --memory needs none");
        return false;
    }
    return keep_text(r, table, path) && (print || weir__table_path_make(path));
}

static bool fits_together(const struct weir__settings *s)
{
    const char *wrong = NULL;

    if (!*s->tls_certificate != !*s->tls_key)
        wrong = "tls-certificate and tls-key go together: set both, or none";
    else if (*s->tls_client_ca && !*s->tls_certificate)
        wrong = "tls-client-ca needs TLS: set tls-certificate and tls-key too";
    else if (*s->admin_token && strcmp(s->admin_token, s->check_token) == 0)
        wrong = "admin-token and check-token are the same: clients with the right to ask could "
                "do everything";
    else if (s->adhoc_limits > s->limiters)
        wrong = "adhoc-limits is more than limiters: they would not fit into the table";
    if (wrong)
        weir__complain("serve", "%s", wrong);
    return !wrong;
}

/* ---------------------------------------------------------------- showing ---- */

/* Whether YAML takes it for this text without quotes. */
static bool is_plain(const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._-,:";
    size_t len = strlen(text);

    return len == 0 || (strspn(text, plain) == len && !strchr("._-,:", *text) &&
                        text[len - 1] != ':' && strcasecmp(text, "null") != 0);
}

/* Parts of it may be secret. */
static bool is_secret(const struct weir__option *row, const char *text)
{
    return row->kind == WEIR__OPTION_SECRET ||
           (row->kind == WEIR__OPTION_REDIS && (strchr(text, '@') || strchr(text, '?')));
}

static void print_text(const struct weir__option *row, const char *text)
{
    if (is_secret(row, text)) {
        printf("%s", *text ? "(set)" : "");
        return;
    }
    const char *quote = is_plain(text) ? "" : "\"";
    printf("%s", quote);
    for (const char *c = text; *c; c++)
        printf("%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
    printf("%s", quote);
}

static void print_member(const struct weir__settings *settings, const struct weir__option *row)
{
    const void *member = member_of(settings, row);
    char number[40];

    if (weir__option_is_text(row)) {
        print_text(row, *(const char *const *)member);
    } else if (row->kind == WEIR__OPTION_SWITCH) {
        printf("%s", *(const bool *)member ? "true" : "false");
    } else {
        weir__option_print(number, sizeof(number), row, *(const int64_t *)member);
        printf("%s", number);
    }
}

/* Comments are: defaults, because some depend on the user and the host (table), and elsewhere the
 * file must not hold on to them; secrets that come from a file; and config, which cannot stand in
 * one. */
static void print_setting(const struct reading *r, const struct weir__option *row)
{
    const struct found *value = &r->values[row - weir__settings_rows];
    bool from_file = row->kind == WEIR__OPTION_SECRET && !value->text && value[1].text;

    printf("%s%s: ", !value->text || row == &weir__settings_rows[CONFIG] ? "# " : "", row->name);
    print_member(&r->s, row);
    if (value->text && row->kind == WEIR__OPTION_SECRET && !*text_of(&r->s, row))
        printf("''"); /* nothing at all would be refused as a mistake */
    if (value->text || from_file)
        printf("  # %s\n", place_of(r, row + from_file).text);
    else
        puts("  (default)");
}

static void print_settings(const struct reading *r)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        if (weir__settings_rows[i].section)
            printf("%s# %s\n", i ? "\n" : "", weir__settings_rows[i].section);
        print_setting(r, &weir__settings_rows[i]);
    }
}

static void add_json(struct weir__buffer *out, const struct weir__settings *settings,
                     const struct weir__option *row)
{
    const void *member = member_of(settings, row);
    char name[64];

    snprintf(name, sizeof(name), "%s%s", row->name, row->kind == WEIR__OPTION_TIME ? "_ms" : "");
    for (char *dash = name; (dash = strchr(dash, '-')) != NULL;)
        *dash = '_';
    if (row->kind == WEIR__OPTION_SWITCH)
        weir__buffer_member_bool(out, name, *(const bool *)member);
    else if (row->kind == WEIR__OPTION_SECRET)
        weir__buffer_member_bool(out, name, text_of(settings, row) && *text_of(settings, row));
    else if (weir__option_is_text(row)) {
        const char *text = text_of(settings, row) ? text_of(settings, row) : "";
        weir__buffer_member(out, name, is_secret(row, text) ? "(set)" : text);
    } else if (row->kind == WEIR__OPTION_TIME)
        weir__buffer_member_number(out, name, *(const weir_time *)member / WEIR_MILLISECOND);
    else if (row->kind == WEIR__OPTION_MODE) {
        char mode[24];
        weir__option_print(mode, sizeof(mode), row, *(const int64_t *)member);
        weir__buffer_member(out, name, mode);
    } else
        weir__buffer_member_number(out, name, *(const int64_t *)member);
}

void weir__settings_json(const struct weir__settings *settings, struct weir__buffer *out)
{
    weir__buffer_open(out, NULL, '{');
    for (size_t i = 0; i < SETTINGS; i++)
        add_json(out, settings, &weir__settings_rows[i]);
    weir__buffer_close(out, "}");
}

/* -------------------------------------------------------------------- all ---- */

/* Secrets may stand in the file. */
static void forget_texts(struct reading *r)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        const struct found *v = &r->values[i];
        if (v->text && v->from == CONFIG_FILE && is_secret(&weir__settings_rows[i], v->text))
            explicit_bzero((char *)(uintptr_t)v->text, strlen(v->text));
    }
    weir__arena_clear(&r->nodes);
}

int weir__settings_read(const struct weir__command *self, struct weir__settings *out, int argc,
                        char **argv)
{
    struct reading r = { .self = self };
    bool print = false;
    int code = find_texts(&r, argc, argv, &print);

    r.config = r.values[CONFIG].text ? r.values[CONFIG].text : "";
    if (code == WEIR__GO_ON)
        doubt_environment();
    if (code == WEIR__GO_ON &&
        !((!*r.config || find_in_file(&r)) && read_values(&r) && read_secrets(&r) &&
          fits_together(&r.s) && choose_table(&r, print)))
        code = WEIR__EXIT_WRONG;
    if (code == WEIR__GO_ON && print) {
        print_settings(&r);
        code = WEIR__EXIT_OK;
    }
    r.s.keys_given = r.values[find_row("keys") - weir__settings_rows].text != NULL;
    forget_texts(&r);
    if (code == WEIR__GO_ON)
        *out = r.s;
    else
        weir__settings_free(&r.s);
    return code;
}

void weir__settings_free(struct weir__settings *settings)
{
    for (size_t i = 0; i < SETTINGS; i++) {
        const struct weir__option *row = &weir__settings_rows[i];
        char *text = weir__option_is_text(row) ? *(char **)member_of(settings, row) : NULL;
        if (text && is_secret(row, text))
            explicit_bzero(text, strlen(text));
        free(text);
    }
    memset(settings, 0, sizeof(*settings));
}

size_t weir__settings_threads(const struct weir__settings *settings)
{
    cpu_set_t cores;
    int n = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;

    if (settings->threads > 0)
        return (size_t)settings->threads;
    return n < 1 ? 1 : n > WEIR__THREADS_MAX ? WEIR__THREADS_MAX : (size_t)n;
}
