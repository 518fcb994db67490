/* centre-words.c -- the words of centre.lua. */
#include <string.h>

#include "cluster/fleet/centre.h"

bool weir__centre_is_name(const char *text)
{
    size_t len = strlen(text);

    return len > 0 && len <= 64 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789._-") == len;
}

static void write_key(struct weir__buffer *key, struct weir_key fleet, const char *part,
                      struct weir_key document)
{
    weir__buffer_text(key, "weir:{fleet:");
    weir__buffer_add(key, fleet.bytes, fleet.len);
    weir__buffer_text(key, "}:");
    weir__buffer_text(key, part);
    weir__buffer_add(key, document.bytes, document.len);
}

void weir__centre_key(struct weir_key fleet, struct weir_key document, struct weir__buffer *out)
{
    write_key(out, fleet, "document:", document);
}

size_t weir__centre_words(struct weir_key fleet, struct weir_key document,
                          const struct weir__text *arguments, size_t n, struct weir__buffer *out)
{
    static const char *const parts[] = { "document:", "reports:", "news:", "members", "free" };
    static const struct weir_key whole = { "", 0 };
    struct weir__buffer key = { 0 };

    weir__buffer_bulk(out, "5", 1);
    for (size_t i = 0; i < 5; i++) {
        key.len = 0;
        write_key(&key, fleet, parts[i], i < 3 ? document : whole);
        out->failed = out->failed || key.failed;
        if (!key.failed)
            weir__buffer_bulk(out, key.bytes, key.len);
    }
    weir__buffer_free(&key);
    for (size_t i = 0; i < n; i++)
        weir__buffer_bulk(out, arguments[i].bytes, arguments[i].len);
    return 6 + n;
}
