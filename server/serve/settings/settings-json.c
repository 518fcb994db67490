/* settings-json.c -- the settings in force as one JSON object, from the rows: names with _ for -,
 * times in ms, secrets only as set or not. */
#include <stdio.h>
#include <string.h>

#include "server/serve/settings/settings-parts.h"

static const void *member_of(const struct weir__settings *settings, const struct weir__setting *row)
{
    return (const char *)settings + row->offset;
}

static void add_text(struct weir__buffer *out, const struct weir__setting *row, const char *text)
{
    text = text ? text : "";
    if (row->kind == WEIR__KIND_SECRET)
        weir__buffer_text(out, *text ? "true" : "false");
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

    snprintf(name, sizeof(name), "%s%s", row->name, row->kind == WEIR__KIND_SPAN ? "_ms" : "");
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
