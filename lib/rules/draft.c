/* draft.c -- what kind of values an attribute has, by its name; what priorities and classes their values stand for. */
#include "rules/draft.h"

#include <string.h>

bool weir__attribute_is_address(const char *name)
{
    size_t len = strlen(name);

    return strcmp(name, "ip") == 0 || (len > 3 && strcmp(name + len - 3, ".ip") == 0);
}

bool weir__attribute_is_path(const char *name)
{
    return strcmp(name, "uri") == 0;
}

/* A sign and digits; however many there are, what counts is whether it is beyond. */
static bool read_number(const char *text, size_t len, int8_t *out)
{
    size_t sign = len > 1 && text[0] == '-';
    int n = 0;

    for (size_t i = sign; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        n = n < 100 ? 10 * n + text[i] - '0' : n;
    }
    n = sign ? -n : n;
    *out = (int8_t)(n < -8 ? -8 : n > 7 ? 7 : n);
    return len > 0;
}

bool weir__priority_read(const struct weir__priority_word *words, size_t n, const char *text, size_t len, int8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        if (strlen(words[i].name) == len && memcmp(words[i].name, text, len) == 0) {
            *out = words[i].priority;
            return true;
        }
    }
    return read_number(text, len, out);
}

int weir__class_find(const struct weir_guard_options *options, const char *name, size_t len)
{
    for (int i = 0; i < WEIR_CLASSES && options->classes[i].weight != 0; i++) {
        if (strlen(options->classes[i].name) == len && memcmp(options->classes[i].name, name, len) == 0)
            return i;
    }
    return -1;
}
