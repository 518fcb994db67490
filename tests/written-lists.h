/* written-lists.h -- lists for tests of changes by hand. */
#ifndef WEIR_TESTS_WRITTEN_LISTS_H
#define WEIR_TESTS_WRITTEN_LISTS_H

#include "match/draft.h"
#include "match/lists.h"

/* As rules would have them: deny ip 192.0.2.0/24 and 192.0.2.7, vip account ann.  NULL: no
 * memory. */
static struct weir__lists *written_lists(void)
{
    char deny[] = "deny", ip[] = "ip", vip[] = "vip", account[] = "account", net[] = "192.0.2.0/24",
         host[] = "192.0.2.7", ann[] = "ann";
    char *networks[] = { net, host }, *names[] = { ann };
    struct weir__list_draft drafts[] = {
        { .name = deny, .attribute = ip, .entries = networks, .n = 2 },
        { .name = vip, .attribute = account, .entries = names, .n = 1 }
    };
    struct weir__lists *lists = NULL;

    return weir__lists_create(&lists, drafts, 2, NULL) == WEIR_OK ? lists : NULL;
}

#endif
