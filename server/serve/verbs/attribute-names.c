/* attribute-names.c -- names of attributes: what is said of them alone. */
#include <string.h>

#include "server/serve/verbs/verbs.h"

void weir__attribute_lower(char *name, size_t len)
{
    if (len < 7 || memcmp(name, "header.", 7) != 0)
        return;
    for (size_t i = 7; i < len; i++)
        if (name[i] >= 'A' && name[i] <= 'Z')
            name[i] = (char)(name[i] + 'a' - 'A');
}

bool weir__attribute_describes(struct weir__text name)
{
    static const char *const names[] = { "ip", "uri", "method", "host", "scheme" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == name.len && memcmp(names[i], name.bytes, name.len) == 0)
            return true;
    return name.len >= 7 && memcmp(name.bytes, "header.", 7) == 0;
}
