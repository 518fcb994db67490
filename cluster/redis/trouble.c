/* trouble.c -- why there is no answer, in the words of messages. */
#include "cluster/redis/trouble.h"

#include <string.h>

bool weir__redis_is_weir(struct weir__text why)
{
    static const char said[] = "WEIR.HELP lists all commands"; /* resp-verbs.c */

    return why.len > 0 && memmem(why.bytes, why.len, said, sizeof(said) - 1) != NULL;
}

/* Errors of Redis begin with a word in capitals; those of a greeting are told in words. */
const char *weir__redis_trouble(const char *why)
{
    static const char *const told[] = { ": it refused the login", ": it wants a password",
                                        ": it is read-only", ": it has as many clients" };
    size_t capitals = strspn(why, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    bool answers = capitals > 1 && (why[capitals] == ' ' || why[capitals] == '\0');

    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
        answers = answers || strstr(why, told[i]) != NULL;
    if (weir__redis_is_weir((struct weir__text){ why, strlen(why) }))
        return "is a weir serve, and no Redis";
    return answers ? "answers with an error" : "does not answer";
}
