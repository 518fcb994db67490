/* trouble.c -- why there is no answer, in the words of messages. */
#include "cluster/redis/trouble.h"

#include <stdbool.h>
#include <string.h>

/* Errors of Redis begin with a word in capitals; those of a greeting are told in words. */
const char *weir__redis_trouble(const char *why)
{
    static const char *const told[] = { ": it refused the login", ": it wants a password",
                                        ": it is read-only", ": it has as many clients" };
    size_t capitals = strspn(why, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    bool answers = capitals > 1 && (why[capitals] == ' ' || why[capitals] == '\0');

    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
        answers = answers || strstr(why, told[i]) != NULL;
    return answers ? "answers with an error" : "does not answer";
}
