/* rules-file.c -- rule files for the commands. */
#include "rules-file.h"

#include <stdio.h>

#include "text.h"

struct said {
    const char *path;
    int problems;
};

static void say(void *context, const struct weir_problem *problem)
{
    struct said *said = context;
    char text[1024];
    weir_problem_print(text, sizeof text, said->path, problem);
    fprintf(stderr, "%s\n", text);
    said->problems++;
}

struct weir_rules *weir__rules_file_read(const char *command, const char *path)
{
    struct said said = { path, 0 };
    struct weir_rules_options options = { .problem = say, .context = &said };
    struct weir_rules *rules;
    struct weir_error error;
    if (weir_rules_read(&rules, path, &options, &error) == WEIR_OK)
        return rules;
    if (said.problems == 0)
        weir__complain(command, "%s", error.text);
    return NULL;
}
