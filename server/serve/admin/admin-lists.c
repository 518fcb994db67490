/* admin-lists.c -- the lists that rules look at, changed by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "engine/engine.h"
#include "rulefile/problem.h"
#include "server/serve/admin/admin-parts.h"
#include "server/base/text.h"

/* --------------------------------------------------------------- listing ---- */

static void add_lists(struct weir *weir, struct weir__buffer *out)
{
    struct weir_list_info l;

    for (int64_t at = 0; weir_list_next(weir, &at, &l);) {
        weir__buffer_text(out, at > 1 ? ",{" : "{");
        weir__buffer_member(out, "list", l.name);
        weir__buffer_member(out, "attribute", l.attribute);
        weir__buffer_member_number(out, "entries", (int64_t)l.entries);
        weir__buffer_text(out, "}");
    }
}

void weir__admin_lists(struct weir__admin_call *call)
{
    weir__buffer_text(call->out, "{\"lists\":[");
    add_lists(call->server->engine, call->out);
    weir__buffer_text(call->out, "],\"changes\":");
    weir__live_lists(call->server->live, call->out);
    weir__buffer_text(call->out, "}");
}

/* -------------------------------------------------------------- changing ---- */

/* The list that it was most likely meant to be, or "": the better one of the best so far and the
 * next. */
static void find_nearest(struct weir *weir, const char *list, char near[64])
{
    static const char *const always[] = { "allow", "deny", NULL };
    const char *best = weir__nearest(list, strlen(list), always, WEIR__TO_NULL);
    struct weir_list_info l;

    snprintf(near, 64, "%s", best ? best : "");
    for (int64_t at = 0; weir_list_next(weir, &at, &l);) {
        const char *const two[] = { near[0] ? near : l.name, l.name, NULL };
        best = weir__nearest(list, strlen(list), two, WEIR__TO_NULL);
        if (best != NULL && best != near)
            memcpy(near, l.name, sizeof(l.name));
    }
}

/* Whether there is such a list, of whatever attribute. */
static bool find_list(struct weir__admin_call *call, const char *list)
{
    bool found = strcmp(list, "allow") == 0 || strcmp(list, "deny") == 0;
    struct weir_list_info l;
    char near[64];

    for (int64_t at = 0; !found && weir_list_next(call->server->engine, &at, &l);)
        found = strcmp(l.name, list) == 0;
    if (found)
        return true;
    find_nearest(call->server->engine, list, near);
    if (near[0])
        weir__admin_fail(call, 404, "there is no list %s; did you mean '%s'?",
                         weir__quote(list, strlen(list)).text, near);
    else
        weir__admin_fail(call, 404,
                         "there is no list %s; there are allow, deny and those that the rules name",
                         weir__quote(list, strlen(list)).text);
    return false;
}

struct edit {
    const char *list, *attribute;
    const char *const *entries;
    size_t n;
    bool add;
};

static void run_edit(struct weir__admin_call *call, const struct edit *e)
{
    struct weir__live_edited edited;
    struct weir_error error;
    int code = weir__live_list_edit(
        call->server->live, e->list, e->attribute, e->add ? e->entries : NULL, e->add ? e->n : 0,
        e->add ? NULL : e->entries, e->add ? 0 : e->n, call->now, &edited, &error);

    if (code != WEIR_OK) {
        weir__admin_fail_code(call, code, &error);
        return;
    }
    weir__buffer_text(call->out, "{");
    weir__buffer_member(call->out, "list", e->list);
    weir__buffer_member(call->out, "attribute", e->attribute);
    weir__buffer_member_number(call->out, "entries", (int64_t)edited.entries);
    weir__buffer_member_number(call->out, "changed", (int64_t)(edited.added + edited.removed));
    weir__buffer_text(call->out, "}");
}

static void edit(struct weir__admin_call *call, bool add)
{
    char *list = weir__admin_copy(call, call->values[0], "list");
    char *attribute = list ? weir__admin_copy(call, call->values[1], "attribute") : NULL;
    char *small = attribute ? weir__attribute_small(attribute) : NULL;
    char **entries = small && find_list(call, list) ? weir__admin_entries(call) : NULL;

    if (attribute && small == NULL)
        weir__admin_no_memory(call);
    if (entries)
        run_edit(call,
                 &(struct edit){ list, small, (const char *const *)entries, call->n_rest, add });
    weir__admin_free(entries, call->n_rest);
    free(small);
    free(attribute);
    free(list);
}

void weir__admin_list_add(struct weir__admin_call *call)
{
    edit(call, true);
}

void weir__admin_list_remove(struct weir__admin_call *call)
{
    edit(call, false);
}
