/* explain-unused-attributes.c -- attributes of a request that no rule looks at, and the names that
 * were probably meant.  A value under another name matches nothing: the slip that is hardest to
 * see. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "server/describe/explain-json.h"

/* The names that rules and lists look at, ended by NULL. */
struct known {
    char texts[WEIR__ATTRIBUTES_MAX][WEIR__ATTRIBUTE_SIZE];
    const char *names[WEIR__ATTRIBUTES_MAX + 1];
};

static void list_known(struct known *known, struct weir *weir)
{
    int64_t at = 0;
    size_t n = 0;

    for (; n < WEIR__ATTRIBUTES_MAX && weir_attribute_next(weir, &at, known->texts[n]); n++)
        known->names[n] = known->texts[n];
    known->names[n] = NULL;
}

/* Names of headers have no case. */
static bool is_used(const struct known *known, const struct weir_attr *attr, size_t len)
{
    char *name = len < WEIR__ATTRIBUTE_SIZE ? strndup(attr->name, len) : NULL;
    char *small = name ? weir__attribute_small(name) : NULL;
    bool found = false;

    for (const char *const *at = known->names; small != NULL && *at && !found; at++)
        found = strcmp(*at, small) == 0;
    free(small);
    free(name);
    return found;
}

void weir__unused_json(struct weir *weir, const struct weir_attr *attrs, size_t n,
                       struct weir__buffer *out)
{
    struct weir__buffer meant = { 0 };
    struct known known;

    list_known(&known, weir);
    weir__buffer_open(out, "unused", '[');
    for (size_t i = 0; i < n; i++) {
        size_t len = attrs[i].name_len ? attrs[i].name_len : strlen(attrs[i].name);
        if (is_used(&known, &attrs[i], len))
            continue;
        const char *near = weir__nearest(attrs[i].name, len, known.names, WEIR__TO_NULL);
        weir__buffer_member_name(out, NULL);
        weir__buffer_json(out, attrs[i].name, len);
        weir__buffer_member_or_null(&meant, NULL, near);
    }
    weir__buffer_close(out, "]");
    weir__buffer_open(out, "meant", '[');
    weir__buffer_add(out, meant.bytes, meant.len);
    weir__buffer_close(out, "]");
    out->failed = out->failed || meant.failed;
    weir__buffer_free(&meant);
}
