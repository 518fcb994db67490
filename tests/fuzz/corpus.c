/* corpus.c -- runs a fuzzer's kept inputs once, as a test in any build.
 *
 *     corpus-NAME FILE...
 */
#include "fuzz/fuzz.h"

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        uint8_t *bytes = malloc(1 << 20);
        if (f == NULL || bytes == NULL) {
            fprintf(stderr, "replay: cannot read %s\n", argv[i]);
            return 1;
        }
        size_t length = fread(bytes, 1, 1 << 20, f);
        LLVMFuzzerTestOneInput(bytes, length);
        fclose(f);
        free(bytes);
    }
    printf("%d passed, 0 failed\n", argc - 1);
    return argc < 2;
}
