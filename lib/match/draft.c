/* draft.c -- what kind of values an attribute has, by its name. */
#include "match/draft.h"

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
