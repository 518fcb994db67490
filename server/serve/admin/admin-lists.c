/* admin-lists.c -- the lists that rules look at, changed by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "server/serve/admin/admin.h"
#include "server/base/complain.h"

/* --------------------------------------------------------------- finding ---- */

/* Whether there is such a list, for any attribute. */
static bool find_list(struct weir__verb_call *call, const char *list)
{
    enum { LIKELY = 64 };
    char copies[LIKELY][sizeof(((struct weir_list_info *)0)->name)];
    const char *names[LIKELY] = { "allow", "deny" };
    bool found = strcmp(list, "allow") == 0 || strcmp(list, "deny") == 0;
    struct weir_list_info l;
    size_t n = 2;

    for (int64_t at = 0; !found && weir_list_next(call->server->engine, &at, &l);) {
        found = strcmp(l.name, list) == 0;
        if (n < LIKELY) {
            names[n] = memcpy(copies[n], l.name, sizeof(l.name));
            n++;
        }
    }
    if (!found)
        weir__call_fail(call, 404, "there is no list %s; %s", weir__quote(list, strlen(list)).text,
                        weir__hint_or(list, strlen(list), names, n,
                                      "there are allow, deny and those that the rules name")
                            .text);
    return found;
}

/* --------------------------------------------------------------- listing ---- */

static void add_lists(struct weir__verb_call *call, const char *only)
{
    enum { VALUES_MAX = 1000 };
    struct weir__buffer *out = &call->out;
    struct weir_list_info l;

    for (int64_t at = 0; weir_list_next(call->server->engine, &at, &l);) {
        if (only && strcmp(l.name, only) != 0)
            continue;
        weir__buffer_open(out, NULL, '{');
        weir__buffer_member(out, "list", l.name);
        weir__buffer_member(out, "attribute", l.attribute);
        weir__buffer_member_number(out, "entries", (int64_t)l.entries);
        if (only) {
            weir__buffer_member_name(out, "values");
            weir__in_force_list_entries(call->server->in_force, l.name, l.attribute, VALUES_MAX,
                                        out);
        }
        weir__buffer_close(out, "}");
    }
}

void weir__admin_lists(struct weir__verb_call *call)
{
    const char *only = call->values[0].text.bytes; /* NULL: all */

    if (only && !find_list(call, only))
        return;
    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_open(&call->out, "lists", '[');
    add_lists(call, only);
    weir__buffer_close(&call->out, "]");
    weir__buffer_member_name(&call->out, "changes");
    weir__in_force_lists(call->server->in_force, &call->out);
    weir__buffer_close(&call->out, "}");
}

/* -------------------------------------------------------------- changing ---- */

static void answer(struct weir__verb_call *call, const char *attribute,
                   const struct weir__in_force_edited *edited)
{
    weir__buffer_open(&call->out, NULL, '{');
    weir__buffer_member(&call->out, "list", call->values[0].text.bytes);
    weir__buffer_member(&call->out, "attribute", attribute);
    weir__buffer_member_number(&call->out, "entries", (int64_t)edited->entries);
    weir__buffer_member_number(&call->out, "changed", (int64_t)(edited->added + edited->removed));
    weir__buffer_close(&call->out, "}");
}

static void change(struct weir__verb_call *call, bool add)
{
    const char *list = call->values[0].text.bytes;
    char *small = weir__attribute_small(call->values[1].text.bytes);
    const char **entries = calloc(call->n_entries, sizeof(*entries));
    size_t n = call->n_entries, adds = add ? n : 0;
    struct weir__in_force_edited edited;
    struct weir_error error;

    for (size_t i = 0; entries && i < n; i++)
        entries[i] = call->entries[i].bytes;
    if (small == NULL || entries == NULL) {
        weir__call_no_memory(call);
    } else if (find_list(call, list)) {
        struct weir_list_edit edit = { list, small, entries, adds, entries + adds, n - adds };
        int code =
            weir__in_force_list_edit(call->server->in_force, &edit, call->now, &edited, &error);
        if (code != WEIR_OK)
            weir__call_fail_code(call, code, &error);
        else
            answer(call, small, &edited);
    }
    free(entries);
    free(small);
}

void weir__admin_list_add(struct weir__verb_call *call)
{
    change(call, true);
}

void weir__admin_list_remove(struct weir__verb_call *call)
{
    change(call, false);
}
