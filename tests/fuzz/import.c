/* import.c -- any bytes as an nginx.conf: no crash, and what comes out is a rule file that can be
 * read, or a complaint in one line.  It opens no file. */
#include "fuzz/fuzz.h"

#include "server/import/import.h"

const char *__lsan_default_suppressions(void);

/* As in rules.c: libfyaml's own. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml.so\n";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_of(data, size);
    struct weir__import import = { 0 };
    struct weir__buffer out = { 0 };
    struct weir_error error = { 0 };
    int code = weir__import_nginx(&import, "conf", text, size, &out, &error);

    /* rules look at 64 attributes at most; the rest of a file that was written is right */
    check(code == WEIR_OK || error.text[0] != '\0');
    check(code == WEIR_OK || out.len == 0 || strstr(error.text, "attributes") != NULL);
    weir__buffer_free(&out);
    weir__import_clear(&import);
    free(text);
    return 0;
}
