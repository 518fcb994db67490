/* decimal.c -- numbers in decimal: two digits at a time, from the last on. */
#include "wire/decimal.h"

#include <string.h>

char *weir__put_number(char *to, int64_t n)
{
    static const char pairs[] = "000102030405060708091011121314151617181920212223242526272829303132"
                                "3334353637383940414243444546474849"
                                "505152535455565758596061626364656667686970717273747576777879808182"
                                "8384858687888990919293949596979899";
    uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n;
    char digits[WEIR__NUMBER_MAX];
    size_t at = sizeof(digits);

    if (n < 0)
        *to++ = '-';
    for (; rest >= 100; rest /= 100)
        memcpy(digits + (at -= 2), pairs + rest % 100 * 2, 2);
    if (rest >= 10)
        memcpy(digits + (at -= 2), pairs + rest * 2, 2);
    else
        digits[--at] = (char)('0' + rest);
    memcpy(to, digits + at, sizeof(digits) - at);
    return to + (sizeof(digits) - at);
}
