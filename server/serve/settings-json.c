/* settings-json.c -- the settings in force as one JSON object, from the rows: names with _ for -, times in ms, secrets only as set or not. */
#include <stdio.h>
#include <string.h>

#include "serve/settings-parts.h"

static const void *member_of(const struct weir__settings *settings, const struct weir__setting *row)
{
    return (const char *)settings + row->offset;
}

/* Of http://user:password@host/ the password is a secret too. */
static void add_url(struct weir__buffer *out, const char *url)
{
    const char *host = strstr(url, "://"), *end = host ? host + 3 + strcspn(host + 3, "/?#") : NULL;
    const char *at = host ? memrchr(host + 3, '@', (size_t)(end - host - 3)) : NULL;
    struct weir__buffer shown = { 0 };

    weir__buffer_add(&shown, url, at ? (size_t)(host + 3 - url) : strlen(url));
    if (at) {
        weir__buffer_text(&shown, "(hidden)");
        weir__buffer_text(&shown, at);
    }
    out->failed = out->failed || shown.failed;
    weir__buffer_json(out, shown.len ? shown.bytes : "", shown.len);
    weir__buffer_free(&shown);
}

static void add_text(struct weir__buffer *out, const struct weir__setting *row, const char *text)
{
    text = text ? text : "";
    if (row->kind == WEIR__KIND_SECRET)
        weir__buffer_text(out, *text ? "true" : "false");
    else if (row->kind == WEIR__KIND_URL)
        add_url(out, text);
    else
        weir__buffer_json(out, text, strlen(text));
}

static void add_number(struct weir__buffer *out, const struct weir__setting *row, int64_t n)
{
    if (row->kind == WEIR__KIND_MODE)
        weir__buffer_format(out, "\"%04llo\"", (unsigned long long)n);
    else
        weir__buffer_number(out, row->kind == WEIR__KIND_SPAN ? n / WEIR_MILLISECOND : n);
}

static void add_name(struct weir__buffer *out, const struct weir__setting *row)
{
    char name[64];

    snprintf(name, sizeof name, "%s%s", row->name, row->kind == WEIR__KIND_SPAN ? "_ms" : "");
    for (char *dash = name; (dash = strchr(dash, '-')) != NULL;)
        *dash = '_';
    weir__buffer_format(out, "\"%s\":", name);
}

void weir__settings_json(const struct weir__settings *settings, struct weir__buffer *out)
{
    for (size_t i = 0; i < WEIR__SETTINGS; i++) {
        const struct weir__setting *row = &weir__settings_rows[i];
        const void *member = member_of(settings, row);
        weir__buffer_text(out, i ? "," : "{");
        add_name(out, row);
        if (row->kind == WEIR__KIND_SWITCH)
            weir__buffer_text(out, *(const bool *)member ? "true" : "false");
        else if (weir__setting_is_text(row))
            add_text(out, row, *(const char *const *)member);
        else
            add_number(out, row, *(const int64_t *)member);
    }
    weir__buffer_text(out, "}");
}
