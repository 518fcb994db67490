/* settings-values.c -- makes values of the settings' texts, and looks whether they go together. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "match/address.h"
#include "server/serve/net/listen.h"
#include "server/serve/settings/proxies.h"
#include "server/serve/settings/settings-parts.h"
#include "server/base/url.h"
#include "server/base/text.h"
#include "server/base/token.h"

/* ---------------------------------------------------------------- values ---- */

static bool refuse_number(const struct weir__reading *r, const struct weir__setting *row,
                          const char *text)
{
    static const char *const what[] = { [WEIR__KIND_COUNT] = "a whole number",
                                        [WEIR__KIND_SIZE] = "a size such as 64k or 1m,",
                                        [WEIR__KIND_MODE] = "an octal mode",
                                        [WEIR__KIND_SPAN] = "a time" };
    char min[40], max[40];

    weir__settings_print_value(min, sizeof(min), row, row->min);
    weir__settings_print_value(max, sizeof(max), row, row->max);
    weir__complain("serve", "%s must be %s from %s to %s, not '%s'",
                   weir__settings_place(r, row).text, what[row->kind], min, max, text);
    return false;
}

static bool read_number(struct weir__reading *r, const struct weir__setting *row, const char *text)
{
    static const char units[] = "kmg";
    char *end;

    errno = 0;
    long long n = strtoll(text, &end, row->kind == WEIR__KIND_MODE ? 8 : 10);
    bool good = end > text && *text >= '0' && *text <= '9' && !errno;
    const char *unit = row->kind == WEIR__KIND_SIZE && *end ? strchr(units, *end | 0x20) : NULL;
    if (unit) {
        good = good && !__builtin_mul_overflow(n, 1LL << 10 * (unit - units + 1), &n);
        end++;
    }
    if (!good || *end || n < row->min || n > row->max)
        return refuse_number(r, row, text);
    *(int64_t *)weir__settings_member(r, row) = n;
    return true;
}

static bool refuse_text(const struct weir__reading *r, const struct weir__setting *row,
                        const char *text, const struct weir_error *error)
{
    if (r->values[row - weir__settings_rows].from == WEIR__FROM_FLAG)
        weir__complain_at("serve", row->name, text, error);
    else
        weir__complain("serve", "%s: %s", weir__settings_place(r, row).text, error->text);
    return false;
}

static bool read_span(struct weir__reading *r, const struct weir__setting *row, const char *text)
{
    struct weir_error error = { 0 };
    weir_time span = 0;

    if (weir_time_parse(&span, text, &error) != WEIR_OK)
        return refuse_text(r, row, text, &error);
    if (span < row->min || span > row->max)
        return refuse_number(r, row, text);
    *(weir_time *)weir__settings_member(r, row) = span;
    return true;
}

static bool read_switch(struct weir__reading *r, const struct weir__setting *row, const char *text)
{
    static const char *const words[] = { "false", "true", "no", "yes", "off", "on", "0", "1" };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *(bool *)weir__settings_member(r, row) = i % 2;
            return true;
        }
    }
    weir__complain("serve", "%s must be true or false, not '%s'", weir__settings_place(r, row).text,
                   text);
    return false;
}

static const char *wrong_bytes(const struct weir__setting *row, const char *text)
{
    if (row->kind == WEIR__KIND_SECRET)
        return weir__token_wrong(text);
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7F)
            return "has a control character in it";
    }
    return NULL;
}

/* Read as whoever uses it will read it. */
static int check_text(const struct weir__setting *row, const char *text, struct weir_error *error)
{
    struct weir__cidr_set *networks = NULL;
    struct weir__url url;

    if (row->kind == WEIR__KIND_ADDRESSES)
        return weir__listen_check(text, error);
    if (row->kind == WEIR__KIND_URL && *text)
        return weir__url_parse(&url, text, error);
    if (row->kind != WEIR__KIND_NETWORKS)
        return WEIR_OK;
    int code = weir__proxies_parse(&networks, text, error);
    weir__cidr_set_destroy(networks);
    return code;
}

static bool keep_text(struct weir__reading *r, const struct weir__setting *row, const char *text)
{
    char *copy = strdup(text);

    if (!copy)
        weir__complain("serve", "no memory for the settings");
    else
        *(char **)weir__settings_member(r, row) = copy;
    return copy;
}

static bool read_text(struct weir__reading *r, const struct weir__setting *row, const char *text)
{
    struct weir_error error = { 0 };
    const char *wrong = wrong_bytes(row, text);

    if (wrong) {
        weir__complain("serve", "%s %s", weir__settings_place(r, row).text, wrong);
        return false;
    }
    if (check_text(row, text, &error) != WEIR_OK)
        return refuse_text(r, row, text, &error);
    return keep_text(r, row, text);
}

static bool read_values(struct weir__reading *r)
{
    bool good = true;

    for (size_t i = 0; good && i < WEIR__SETTINGS; i++) {
        const char *text = r->values[i].text ? r->values[i].text : weir__settings_rows[i].standard;
        if (weir__setting_is_text(&weir__settings_rows[i]))
            good = read_text(r, &weir__settings_rows[i], text);
        else if (weir__settings_rows[i].kind == WEIR__KIND_SWITCH)
            good = read_switch(r, &weir__settings_rows[i], text);
        else
            good = weir__settings_rows[i].kind == WEIR__KIND_SPAN
                       ? read_span(r, &weir__settings_rows[i], text)
                       : read_number(r, &weir__settings_rows[i], text);
    }
    return good;
}

/* ------------------------------------------------------- secrets in files ---- */

static void warn_if_open(const char *path)
{
    struct stat st;

    if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IROTH))
        weir__complain(
            "serve",
            "warning: everybody on this host can read %s, which has a secret in it; chmod 600 it",
            path);
}

/* The first line of the file takes the place of the secret. */
static bool read_secret_file(struct weir__reading *r, const struct weir__setting *secret,
                             const struct weir__setting *file)
{
    const char *path = *(const char **)weir__settings_member(r, file);
    char **member = weir__settings_member(r, secret), *token = NULL;
    struct weir_error error = { 0 };

    if (weir__token_read(&token, path, &error) != WEIR_OK) {
        weir__complain("serve", "%s: %s", weir__settings_place(r, file).text, error.text);
        return false;
    }
    warn_if_open(path);
    free(*member);
    *member = token;
    return true;
}

static bool read_secrets(struct weir__reading *r)
{
    for (size_t i = 0; i + 1 < WEIR__SETTINGS; i++) {
        const struct weir__setting *secret = &weir__settings_rows[i],
                                   *file = secret + 1; /* the row behind a secret is its file */
        if (secret->kind != WEIR__KIND_SECRET)
            continue;
        bool has = **(const char **)weir__settings_member(r, secret),
             named = **(const char **)weir__settings_member(r, file);
        if (has && named) {
            weir__complain("serve", "%s and %s are both set; one is enough",
                           weir__settings_place(r, secret).text,
                           weir__settings_place(r, file).text);
            return false;
        }
        if (named && !read_secret_file(r, secret, file))
            return false;
        if (has && r->values[i].from == WEIR__FROM_FILE)
            warn_if_open(r->config);
    }
    return true;
}

/* ------------------------------------------------------------- the table ---- */

/* Makes the directories above the file, for nobody else. */
static bool make_folders(const char *path)
{
    char folder[4096];

    snprintf(folder, sizeof(folder), "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        struct stat st;
        if (mkdir(folder, 0700) != 0 && errno != EEXIST && stat(folder, &st) != 0) {
            weir__complain("serve",
                           "cannot make %s for the table file: %s; --table FILE chooses another, "
                           "--memory needs none",
                           folder, strerror(errno));
            return false;
        }
        *slash = '/';
    }
    return true;
}

static bool default_table(char *out, size_t size)
{
    const char *state = getenv("STATE_DIRECTORY"), *xdg = getenv("XDG_STATE_HOME"),
               *home = getenv("HOME");
    int len = -1;

    if (state && *state == '/')
        len = snprintf(out, size, "%.*s/weir.table", (int)strcspn(state, ":"), state);
    else if (xdg && *xdg == '/')
        len = snprintf(out, size, "%s/weir/weir.table", xdg);
    else if (home && *home == '/')
        len = snprintf(out, size, "%s/.local/state/weir/weir.table", home);
    return len > 0 && (size_t)len < size;
}

static bool choose_table(struct weir__reading *r)
{
    const struct weir__setting *table = weir__settings_find("table", 5),
                               *memory = weir__settings_find("memory", 6);
    char path[4096];

    if (r->s.memory && *r->s.table) {
        weir__complain("serve", "%s and %s exclude each other: with memory there is no table file",
                       weir__settings_place(r, memory).text, weir__settings_place(r, table).text);
        return false;
    }
    if (r->s.memory || *r->s.table)
        return true;
    if (!default_table(path, sizeof(path))) {
        weir__complain("serve", "there is no HOME to keep the table file in; --table FILE says "
                                "where, --memory needs none");
        return false;
    }
    free(*(char **)weir__settings_member(r, table));
    *(char **)weir__settings_member(r, table) = NULL;
    return keep_text(r, table, path) && (r->print || make_folders(path));
}

/* -------------------------------------------------------------- together ---- */

static bool fits_together(const struct weir__reading *r)
{
    const struct weir__settings *s = &r->s;
    const char *wrong = NULL;

    if (!*s->tls_certificate != !*s->tls_key)
        wrong = "tls-certificate and tls-key go together: set both, or none";
    else if (*s->tls_client_ca && !*s->tls_certificate)
        wrong = "tls-client-ca needs TLS: set tls-certificate and tls-key too";
    else if (*s->admin_token && strcmp(s->admin_token, s->check_token) == 0)
        wrong = "admin-token and check-token are the same: who may only ask could do everything";
    else if (s->adhoc_limits > s->limiters)
        wrong = "adhoc-limits is more than limiters: they would not fit into the table";
    if (wrong)
        weir__complain("serve", "%s", wrong);
    return !wrong;
}

bool weir__settings_values(struct weir__reading *r)
{
    return read_values(r) && read_secrets(r) && fits_together(r) && choose_table(r);
}
