/* admin-lists.c -- the lists that rules look at, changed by hand. */
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "rules/problem.h"
#include "serve/admin-parts.h"
#include "text.h"

/* --------------------------------------------------------------- listing ---- */

static void add_lists(struct weir *weir, struct weir__buffer *out)
{
    size_t stripe = weir__engine_enter(weir);
    const struct weir__force *force = __atomic_load_n(&weir->force, __ATOMIC_SEQ_CST);

    for (size_t i = 0; force != NULL && i < force->lists->n; i++) {
        const struct weir__list *l = &force->lists->lists[i];
        weir__buffer_text(out, i ? ",{" : "{");
        weir__buffer_member(out, "list", l->name);
        weir__buffer_member(out, "attribute", l->attribute);
        weir__buffer_member_number(out, "entries", (int64_t)l->n);
        weir__buffer_text(out, "}");
    }
    weir__engine_leave(weir, stripe);
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

/* How many entries of the attribute the list has, its name small already. */
static int64_t count_entries(struct weir *weir, const char *list, const char *attribute)
{
    size_t stripe = weir__engine_enter(weir);
    const struct weir__force *force = __atomic_load_n(&weir->force, __ATOMIC_SEQ_CST);
    int at = force ? weir__lists_find(force->lists, list, attribute) : -1;
    int64_t n = at < 0 ? 0 : (int64_t)force->lists->lists[at].n;

    weir__engine_leave(weir, stripe);
    return n;
}

/* allow, deny, and those that the rules have, ended by NULL; NULL: no memory.  The names are the force's. */
static const char **list_names(const struct weir__force *force)
{
    size_t n = force ? force->lists->n : 0;
    const char **names = calloc(n + 3, sizeof *names);

    if (names == NULL)
        return NULL;
    names[0] = "allow";
    names[1] = "deny";
    for (size_t i = 0; i < n; i++)
        names[i + 2] = force->lists->lists[i].name;
    return names;
}

static bool find_name(struct weir__admin_call *call, const char *const *names, const char *list)
{
    for (const char *const *name = names; *name; name++)
        if (strcmp(*name, list) == 0)
            return true;
    const char *near = weir__text_nearest(names, list, strlen(list));
    struct weir__quoted shown = weir__quote(list, strlen(list));
    if (near)
        weir__admin_fail(call, 404, "there is no list %s; did you mean '%s'?", shown.text, near);
    else
        weir__admin_fail(call, 404, "there is no list %s; there are allow, deny and those that the rules name", shown.text);
    return false;
}

/* Whether there is such a list, of whatever attribute. */
static bool find_list(struct weir__admin_call *call, const char *list)
{
    struct weir *weir = call->server->engine;
    size_t stripe = weir__engine_enter(weir);
    const char **names = list_names(__atomic_load_n(&weir->force, __ATOMIC_SEQ_CST));
    bool found = names && find_name(call, names, list);

    weir__engine_leave(weir, stripe);
    if (names == NULL)
        weir__admin_no_memory(call);
    free(names);
    return found;
}

struct edit {
    const char *list, *attribute;
    const char *const *entries;
    size_t n;
    bool add;
};

static void run_edit(struct weir__admin_call *call, const struct edit *e)
{
    struct weir *weir = call->server->engine;
    struct weir_error error;
    int64_t before = count_entries(weir, e->list, e->attribute);
    int code = weir__live_list_edit(call->server->live, e->list, e->attribute, e->add ? e->entries : NULL, e->add ? e->n : 0,
                                    e->add ? NULL : e->entries, e->add ? 0 : e->n, call->now, &error);

    if (code != WEIR_OK) {
        weir__admin_fail_code(call, code, &error);
        return;
    }
    int64_t after = count_entries(weir, e->list, e->attribute);
    weir__buffer_text(call->out, "{");
    weir__buffer_member(call->out, "list", e->list);
    weir__buffer_member(call->out, "attribute", e->attribute);
    weir__buffer_member_number(call->out, "entries", after);
    weir__buffer_member_number(call->out, "changed", after > before ? after - before : before - after);
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
        run_edit(call, &(struct edit){ list, small, (const char *const *)entries, call->n_rest, add });
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
