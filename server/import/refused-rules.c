/* refused-rules.c -- leaves out a rule that a rule file could not have: rules are stricter than
 * nginx about some texts. */
#include "server/import/import.h"

bool weir__import_can_be_read(struct weir__import *import, const struct weir__imported *rule)
{
    struct weir__buffer text = { 0 };
    struct weir_rules *rules = NULL;
    struct weir_error error = { 0 };

    weir__buffer_format(&text, "version: 1\n%s:\n", rule->limit != NULL ? "rules" : "guards");
    weir__import_write_one(rule, &text);
    int code =
        text.failed ? WEIR_NO_MEMORY : weir_rules_parse(&rules, text.bytes, text.len, NULL, &error);
    weir_rules_destroy(rules);
    weir__buffer_free(&text);
    if (code != WEIR_OK)
        weir__import_note(import, rule->at, true, "the rule would be wrong, and is left out: %s",
                          error.text);
    return code == WEIR_OK;
}
