/* settings.c -- what `weir serve` can be told: the table of it, the help, and the order of reading.
 *
 * A setting is a row of the table below: where it goes, how its text is read, its default, its
 * bounds, and what the help says of it.  First the text of each is found (settings-sources.c:
 * command line, environment, file), then all are read (settings-values.c), so that whatever is
 * wrong is said with the place it comes from.
 */
#include "server/serve/settings/settings-parts.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/base/command.h"
#include "server/base/options.h"

#define AT(member) offsetof(struct weir__settings, member)
#define MIB        ((int64_t)1 << 20)

/* The rows are to be read across. */
#define SWITCH    WEIR__KIND_SWITCH
#define TEXT      WEIR__KIND_TEXT
#define ADDRESSES WEIR__KIND_ADDRESSES
#define NETWORKS  WEIR__KIND_NETWORKS
#define URL       WEIR__KIND_URL
#define SECRET    WEIR__KIND_SECRET
#define COUNT     WEIR__KIND_COUNT
#define SIZE      WEIR__KIND_SIZE
#define MODE      WEIR__KIND_MODE
#define SPAN      WEIR__KIND_SPAN

const struct weir__setting weir__settings_rows[WEIR__SETTINGS] = {
    { "listening", "resp", ADDRESSES, AT(resp), "127.0.0.1:7379", 0, 0, "ADDRESSES",
      "for Redis clients: HOST:PORT, [HOST6]:PORT, a unix socket's path; several with commas; "
      "empty: none" },
    { NULL, "http", ADDRESSES, AT(http), "127.0.0.1:7380", 0, 0, "ADDRESSES",
      "for HTTP, likewise" },
    { NULL, "socket-mode", MODE, AT(socket_mode), "0600", 0, 0777, "MODE",
      "permissions of unix sockets" },
    { NULL, "threads", COUNT, AT(threads), "0", 0, WEIR__THREADS_MAX, "N",
      "threads that serve; 0: one per core" },

    { "rules and state", "rules", TEXT, AT(rules), "", 0, 0, "FILE",
      "the rule file; none: every check is allowed until rules are set" },
    { NULL, "watch", SWITCH, AT(watch), "true", 0, 0, NULL,
      "look whether the rule file has changed, and read it again" },
    { NULL, "table", TEXT, AT(table), "", 0, 0, "FILE",
      "what keys have used; by default weir.table in $STATE_DIRECTORY, $XDG_STATE_HOME/weir or "
      "~/.local/state/weir" },
    { NULL, "memory", SWITCH, AT(memory), "false", 0, 0, NULL,
      "no table file: nothing is kept on disk" },
    { NULL, "keys", COUNT, AT(keys), "1000000", 64, 10000000000, "N",
      "room for this many keys in a new table" },
    { NULL, "limiters", COUNT, AT(limiters), "4096", 1, 65536, "N",
      "room for this many limits in a new table" },

    { "who may", "admin-token", SECRET, AT(admin_token), "", 0, 0, "SECRET",
      "gives all rights; no flag, since everybody can read those: the environment or the file" },
    { NULL, "admin-token-file", TEXT, AT(admin_token_file), "", 0, 0, "FILE",
      "a file whose first line is it" },
    { NULL, "check-token", SECRET, AT(check_token), "", 0, 0, "SECRET",
      "gives the right to ask; then nobody may without a token" },
    { NULL, "check-token-file", TEXT, AT(check_token_file), "", 0, 0, "FILE",
      "a file whose first line is it" },
    { NULL, "trusted-proxies", NETWORKS, AT(trusted_proxies), "127.0.0.0/8,::1", 0, 0, "NETWORKS",
      "whose X-Forwarded-For and the like are believed" },
    { NULL, "tls-certificate", TEXT, AT(tls_certificate), "", 0, 0, "FILE",
      "PEM: TLS on all TCP ports" },
    { NULL, "tls-key", TEXT, AT(tls_key), "", 0, 0, "FILE", "PEM: its key" },
    { NULL, "tls-client-ca", TEXT, AT(tls_client_ca), "", 0, 0, "FILE",
      "PEM: clients must show a certificate signed by it" },

    { "bounds", "connections-max", COUNT, AT(connections_max), "16000", 1, 1000000, "N",
      "connections at a time" },
    { NULL, "request-max", SIZE, AT(request_max), "1m", 1024, 64 * MIB, "SIZE",
      "bytes of one request" },
    { NULL, "output-max", SIZE, AT(output_max), "1m", 65536, 1024 * MIB, "SIZE",
      "bytes that wait for a subscriber that does not read" },
    { NULL, "idle", SPAN, AT(idle), "1h", 0, 365 * 86400 * WEIR_SECOND, "TIME",
      "a connection that says nothing for so long is closed; 0: never" },
    { NULL, "patience", SPAN, AT(patience), "10s", 100 * WEIR_MILLISECOND, 3600 * WEIR_SECOND,
      "TIME", "a request that has begun must be whole after so long" },
    { NULL, "drain", SPAN, AT(drain), "10s", 0, 3600 * WEIR_SECOND, "TIME",
      "requests under way have so long after SIGTERM" },
    { NULL, "ask-id-lifetime", SPAN, AT(ask_id_lifetime), "1m", WEIR_SECOND, 86400 * WEIR_SECOND,
      "TIME", "an ask that comes again with the same id within it is charged once" },
    { NULL, "ask-ids", COUNT, AT(ask_ids), "65536", 1, 16777216, "N", "remembered at the most" },
    { NULL, "adhoc-limits", COUNT, AT(adhoc_limits), "1024", 1, 65536, "N",
      "different limits that clients may bring with their asks" },
    { NULL, "top", COUNT, AT(top), "256", 1, 65536, "N",
      "limited keys that are followed, for the list of the most limited" },

    { "events", "events-log", TEXT, AT(events_log), "", 0, 0, "FILE",
      "gets a line of JSON per event; -: standard output" },
    { NULL, "webhook", URL, AT(webhook), "", 0, 0, "URL", "is sent the events" },
    { NULL, "webhook-token", SECRET, AT(webhook_token), "", 0, 0, "SECRET",
      "is sent with them as a bearer token" },
    { NULL, "webhook-token-file", TEXT, AT(webhook_token_file), "", 0, 0, "FILE",
      "a file whose first line is it" },

    { "others", "config", TEXT, AT(config), "", 0, 0, "FILE",
      "a file of settings: NAME: VALUE lines, # comments" },
    { NULL, "test-clock", SWITCH, AT(test_clock), "false", 0, 0, NULL,
      "time stands still until WEIR.CLOCK sets it: for tests" },
};

static const char print_help[] =
    "show what is in force and where it comes from, as a file of settings; defaults as comments";

void *weir__settings_member(const struct weir__reading *r, const struct weir__setting *row)
{
    return (char *)(uintptr_t)&r->s + row->offset;
}

bool weir__setting_is_text(const struct weir__setting *row)
{
    return row->kind >= TEXT && row->kind <= SECRET;
}

struct weir__place weir__settings_environment_name(const struct weir__setting *row)
{
    struct weir__place place;
    size_t len = (size_t)snprintf(place.text, sizeof(place.text), "WEIR_%s", row->name);

    for (char *c = place.text; c < place.text + len; c++)
        *c = (char)(*c == '-' ? '_' : *c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    return place;
}

struct weir__place weir__settings_place(const struct weir__reading *r,
                                        const struct weir__setting *row)
{
    const struct weir__found *v = &r->values[row - weir__settings_rows];
    struct weir__place place;

    if (v->from == WEIR__FROM_ENVIRONMENT)
        return weir__settings_environment_name(row);
    if (v->from == WEIR__FROM_FILE)
        snprintf(place.text, sizeof(place.text), "%.200s:%d: %s", r->config, v->line, row->name);
    else
        snprintf(place.text, sizeof(place.text), "--%s", row->name);
    return place;
}

const struct weir__setting *weir__settings_find(const char *name, size_t len)
{
    for (size_t i = 0; i < WEIR__SETTINGS; i++) {
        if (strlen(weir__settings_rows[i].name) == len &&
            memcmp(weir__settings_rows[i].name, name, len) == 0)
            return &weir__settings_rows[i];
    }
    return NULL;
}

void weir__settings_print_value(char *out, size_t size, const struct weir__setting *row, int64_t n)
{
    static const char units[] = "kmg";
    int unit = -1;

    for (; row->kind == SIZE && n > 0 && n % 1024 == 0 && unit < 2; n /= 1024)
        unit++;
    if (row->kind == SPAN)
        weir_time_print(out, size, n);
    else if (row->kind == MODE)
        snprintf(out, size, "%04llo", (unsigned long long)n);
    else
        snprintf(out, size, "%lld%.1s", (long long)n, unit >= 0 ? units + unit : "");
}

/* -------------------------------------------------------------- the help ---- */

static void help_line(const char *head, const char *help, const char *standard)
{
    printf("      %-30s %s%s%s%s\n", head, help, *standard ? " [" : "", standard,
           *standard ? "]" : "");
}

static void help_row(const struct weir__setting *row)
{
    bool on = row->kind == SWITCH && strcmp(row->standard, "true") == 0;
    char head[64];

    if (row->kind == SECRET)
        snprintf(head, sizeof(head), "%.60s",
                 weir__settings_environment_name(row).text); /* there is no flag */
    else
        snprintf(head, sizeof(head), "--%s%s%s%s", on ? "no-" : "", row->name,
                 row->value ? " " : "", row->value ? row->value : "");
    help_line(head, on ? "do not look whether the rule file has changed" : row->help,
              row->kind == SWITCH ? "" : row->standard);
}

void weir__settings_help(void)
{
    printf("usage: weir serve [options]\n\nanswer who may and who must wait, over RESP and HTTP\n\n"
           "A setting is --NAME here, WEIR_NAME in the environment (WEIR_TRUSTED_PROXIES) or "
           "`NAME: VALUE` in the file that --config\n"
           "names: the first of these that has it counts.  [..] is the default.  SIGHUP reads the "
           "rules again, SIGTERM ends when requests\n"
           "under way are answered, SIGUSR2 hands the sockets over to a new process.\n");
    for (const struct weir__setting *row = weir__settings_rows;
         row < weir__settings_rows + WEIR__SETTINGS; row++) {
        if (row->section)
            printf("\n%s:\n", row->section);
        help_row(row);
    }
    help_line("--print-settings", print_help, "");
    printf("  -h, %-30s %s\n", "--help", "show this");
}

bool weir__settings_option(size_t i, struct weir__option *out)
{
    for (const struct weir__setting *row = weir__settings_rows;
         row < weir__settings_rows + WEIR__SETTINGS; row++) {
        if (row->kind == SECRET || i-- > 0)
            continue;
        *out = (struct weir__option){ .name = row->name, .value = row->value, .help = row->help };
        return true;
    }
    if (i == 0)
        *out = (struct weir__option){ .name = "print-settings", .help = print_help };
    return i == 0;
}

/* ----------------------------------------------------------- all of them ---- */

/* As a line of the file would have it. */
static void print_text(const struct weir__setting *row, const char *text)
{
    bool plain = *text != '"' && *text != '\'' && *text != '#' && *text != ' ' &&
                 !strstr(text, " #") && (!*text || text[strlen(text) - 1] != ' ');
    const char *quote = plain ? "" : strchr(text, '"') ? "'" : "\"";

    if (row->kind == SECRET)
        printf("%s", *text ? "(set)" : "");
    else
        printf("%s%s%s", quote, text, quote);
}

static void print_member(const struct weir__reading *r, const struct weir__setting *row)
{
    const void *member = weir__settings_member(r, row);
    char number[40];

    if (weir__setting_is_text(row)) {
        print_text(row, *(const char *const *)member);
    } else if (row->kind == SWITCH) {
        printf("%s", *(const bool *)member ? "true" : "false");
    } else {
        weir__settings_print_value(number, sizeof(number), row, *(const int64_t *)member);
        printf("%s", number);
    }
}

/* Comments are: defaults, because some depend on who asks and on which host (table), and elsewhere
 * the file must not hold on to them; secrets that come from a file; and config, which cannot stand
 * in one. */
static void print_setting(const struct weir__reading *r, const struct weir__setting *row)
{
    const struct weir__found *value = &r->values[row - weir__settings_rows];
    bool from_file = row->kind == SECRET && !value->text && value[1].text;

    printf("%s%s: ", !value->text || strcmp(row->name, "config") == 0 ? "# " : "", row->name);
    print_member(r, row);
    if (value->text || from_file)
        printf("  # %s\n", weir__settings_place(r, row + from_file).text);
    else
        puts("  (default)");
}

static void print_settings(const struct weir__reading *r)
{
    for (const struct weir__setting *row = weir__settings_rows;
         row < weir__settings_rows + WEIR__SETTINGS; row++) {
        if (row->section)
            printf("%s# %s\n", row > weir__settings_rows ? "\n" : "", row->section);
        print_setting(r, row);
    }
}

int weir__settings_read(struct weir__settings *out, int argc, char **argv)
{
    struct weir__reading r = { 0 };
    int code = weir__settings_flags(&r, argc, argv);

    if (code == WEIR__GO_ON) {
        weir__settings_environment(&r);
        bool good = weir__settings_file(&r) && weir__settings_values(&r);
        code = good ? WEIR__GO_ON : WEIR__EXIT_WRONG;
    }
    if (code == WEIR__GO_ON && r.print) {
        print_settings(&r);
        code = WEIR__EXIT_OK;
    }
    if (r.file)
        explicit_bzero(r.file, r.file_len); /* secrets may stand in it */
    free(r.file);
    if (code == WEIR__GO_ON)
        *out = r.s;
    else
        weir__settings_free(&r.s);
    return code;
}

void weir__settings_free(struct weir__settings *settings)
{
    for (size_t i = 0; i < WEIR__SETTINGS; i++) {
        char *text = weir__setting_is_text(&weir__settings_rows[i])
                         ? *(char **)(void *)((char *)settings + weir__settings_rows[i].offset)
                         : NULL;
        if (text && weir__settings_rows[i].kind == SECRET)
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
