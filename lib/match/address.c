/* address.c -- IP addresses and networks from text and back.
 *
 *     IPv4      four decimal numbers of 0 to 255, no leading zeros    192.0.2.7
 *     IPv6      RFC 4291, 2.2: groups, one "::", the last 32 bits     2001:db8::7, [2001:db8::7]
 *               may be dotted
 *     network   an address, or address/prefix                         10.0.0.0/8, 2001:db8::/32
 *
 * Every request's address comes through here, so text is read sixteen bytes at a time (bytes.h).
 * Each digit's place gets the number that would end there; the dots and colons then say which of
 * these count.  So there is no branch that a processor cannot predict, such as on the length of a
 * number.
 *
 * Strict, because two programs that read an address differently are a hole: "010.0.0.1" is 8.0.0.1
 * to one and 10.0.0.1 to another; here it is not an address.
 *
 * Why not inet_pton: it wants a NUL, and takes three to five times as long.
 */
#include "match/address.h"

#include <stdio.h>

#include "match/bytes.h"

#define FOUR_MIN 7  /* "0.0.0.0" */
#define FOUR_MAX 15 /* "255.255.255.255" */
#define SIX_MAX  45 /* eight groups of four digits, the last two as IPv4 */
#define NO_GAP   9  /* more groups than there are */

/* ----------------------------------------------------------------- IPv4 ---- */

/* Three dots, and between them one to three digits, the first of several not 0.  Bit i is about
 * byte i of the text. */
static bool is_shaped(uint32_t dots, uint32_t digits, uint32_t zeros, size_t len)
{
    uint32_t second = dots & (dots - 1), third = second & (second - 1), starts = dots << 1 | 1;
    uint32_t others = (dots | digits) ^ ((1u << len) - 1), fourth = third & (third - 1);
    uint32_t empty = starts & ~digits, longer = digits & digits >> 1 & digits >> 2 & digits >> 3;

    return third != 0 && (others | fourth | empty | longer | (starts & zeros & digits >> 1)) == 0;
}

static weir__bytes ten_times(weir__bytes v)
{
    weir__bytes twice = v + v, four_times = twice + twice;

    return four_times + four_times + twice;
}

/* In the place of each digit: the number that ends there, of up to three digits.  *above: whether
 * one is above 255. */
static weir__bytes read_numbers(weir__bytes ones, weir__bytes is_digit, uint32_t *above)
{
    weir__bytes hundreds = weir__bytes_move_two(ones) &
                           weir__bytes_move_one(is_digit); /* if a digit is between them */
    weir__bytes tens = weir__bytes_move_one(ones) + ten_times(hundreds);

    *above = weir__bytes_bits((weir__bytes)((tens > 25) | ((tens == 25) & (ones > 5))) & is_digit);
    return ones + ten_times(tens);
}

/* *out: the first number highest. */
static inline bool parse_four(const char *text, size_t len, uint32_t *out)
{
    uint8_t numbers[16];
    uint32_t above;

    if (len < FOUR_MIN || len > FOUR_MAX)
        return false;
    weir__bytes v = weir__bytes_join(weir__bytes_first(text, len), weir__bytes_second(text, len));
    weir__bytes less = v - '0', is_digit = (weir__bytes)(less < 10),
                all = read_numbers(less & is_digit, is_digit, &above);
    uint32_t dots = weir__bytes_bits(v == '.'), second = dots & (dots - 1);
    if (!is_shaped(dots, weir__bytes_bits(is_digit), weir__bytes_bits(v == '0'), len) || above != 0)
        return false;
    memcpy(numbers, &all, sizeof(numbers));
    *out = (uint32_t)numbers[__builtin_ctz(dots) - 1] << 24 |
           (uint32_t)numbers[__builtin_ctz(second) - 1] << 16 |
           (uint32_t)numbers[__builtin_ctz(second & (second - 1)) - 1] << 8 | numbers[len - 1];
    return true;
}

/* ----------------------------------------------------------------- IPv6 ---- */

/* A text of up to SIX_MAX bytes. */
struct hex {
    uint64_t digits, colons; /* bit i is about byte i of the text */
    uint8_t numbers[SIX_MAX +
                    19]; /* [i + 1]: bytes i - 1 and i as a number if both are digits; else 0 */
};

/* The sixteen bytes from `at` on. */
static inline void read_hex(struct hex *h, weir__bytes v, size_t at)
{
    weir__bytes is_digit = (weir__bytes)((weir__bytes)(v - '0') < 10),
                is_letter = (weir__bytes)((weir__bytes)((v | 0x20) - 'a') < 6);
    weir__bytes low = ((v & 15) + (is_letter & 9)) & (is_digit | is_letter),
                high = weir__bytes_move_one(low);
    weir__bytes numbers = (low + (high << 4)) & (is_digit | is_letter);

    h->digits |= (uint64_t)weir__bytes_bits(is_digit | is_letter) << at;
    h->colons |= (uint64_t)weir__bytes_bits(v == ':') << at;
    memcpy(h->numbers + 1 + at, &numbers, sizeof(numbers));
}

/* From the end to the beginning, sixteen bytes at a time, overlapping by one or more: the first of
 * them lacks the byte before it, and the next write corrects that. */
static inline void read_hexes(struct hex *h, const char *text, size_t len)
{
    h->digits = h->colons = 0;
    h->numbers[0] = 0;
    if (len > 31)
        read_hex(h, weir__bytes_sixteen(text + len - 16), len - 16);
    if (len > 16)
        read_hex(h, weir__bytes_sixteen(text + (len > 31 ? 15 : len - 16)),
                 len > 31 ? 15 : len - 16);
    read_hex(h,
             len < 16
                 ? weir__bytes_join(weir__bytes_first(text, len), weir__bytes_second(text, len))
                 : weir__bytes_sixteen(text),
             0);
}

/* The group of n digits (1 to 4) before `end`. */
static inline uint32_t group(const struct hex *h, uint32_t end, uint32_t n)
{
    return (uint32_t)h->numbers[n > 2 ? end - 2 : end - n] << 8 |
           h->numbers[end]; /* of one or two digits: that of the colon before is 0 */
}

struct six {
    weir__u128 groups; /* those read so far, the last one lowest */
    uint32_t n, gap;   /* how many; how many of them were before "::", or NO_GAP */
};

static inline bool finish_six(struct six s, weir__u128 *out)
{
    if (s.gap == NO_GAP ? s.n != 8 : s.n > 7)
        return false;
    if (s.gap == NO_GAP || s.gap == 0) {
        *out = s.groups;
    } else {
        uint32_t behind = 16 * (s.n - s.gap);
        weir__u128 head = s.groups >> behind;
        *out = head << 16 * (8 - s.gap) | (s.groups ^ head << behind);
    }
    return true;
}

static bool finish_dotted(struct six s, const char *text, size_t len, weir__u128 *out)
{
    uint32_t four;

    if (!parse_four(text, len, &four))
        return false;
    s.groups = s.groups << 32 | four;
    s.n += 2;
    return finish_six(s, out);
}

static bool parse_six(const char *text, size_t len, weir__u128 *out)
{
    struct six s = { .gap = NO_GAP };
    struct hex h;
    uint32_t begin = 0;

    if (len < 2 || len > SIX_MAX)
        return false;
    read_hexes(&h, text, len);
    /* A stop is behind each group, the last at `len`. */
    uint64_t stops = ~h.digits, colons = h.colons;
    if ((colons & 3) == 3) {
        s.gap = 0;
        begin = 2;
        stops &= ~(uint64_t)3;
    }
    while (begin < len && s.n < 8) {
        uint32_t end = (uint32_t)__builtin_ctzll(stops);
        if (end - begin - 1 > 3)
            return false;
        if (!(colons >> end & 1) && end < len)
            return finish_dotted(s, text + begin, len - begin, out);
        s.groups = s.groups << 16 | group(&h, end, end - begin);
        s.n++;
        begin = end + 1;
        stops &= stops - 1;
        if (colons >> begin & 1) {
            if (s.gap != NO_GAP)
                return false;
            s.gap = s.n;
            begin++;
            stops &= stops - 1;
        } else if (begin == len) {
            return false; /* half a "::" */
        }
    }
    return begin >= len && finish_six(s, out);
}

/* ------------------------------------------------------------- addresses ---- */

static void put_number(struct weir__address *out, weir__u128 number)
{
    uint64_t half[2] = { (uint64_t)(number >> 64), (uint64_t)number };

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    half[0] = __builtin_bswap64(half[0]);
    half[1] = __builtin_bswap64(half[1]);
#endif
    memcpy(out->bytes, half, sizeof(half));
}

/* The first number of an IPv4 address ends early; in IPv6 only ::1.2.3.4 has a dot so soon. */
static bool is_dotted(const char *text, size_t len)
{
    return len >= FOUR_MIN && ((text[1] == '.') | (text[2] == '.') | (text[3] == '.')) &&
           text[0] != ':';
}

static __attribute__((noinline)) bool parse_longer(const char *text, size_t len,
                                                   struct weir__address *out)
{
    weir__u128 six = 0;

    if (len > 2 && text[0] == '[' && text[len - 1] == ']')
        text += 1, len -= 2;
    if (!parse_six(text, len, &six))
        return false;
    bool mapped = six >> 32 == 0xffff;
    put_number(out, mapped ? six << 96 : six);
    out->bits = mapped ? 32 : 128;
    return true;
}

bool weir__address_parse(const char *text, size_t len, struct weir__address *out)
{
    uint32_t four;

    if (!is_dotted(text, len))
        return parse_longer(text, len, out);
    if (!parse_four(text, len, &four))
        return false;
    put_number(out, (weir__u128)four << 96); /* as words: the next reader takes several bytes */
    out->bits = 32;
    return true;
}

void weir__address_mask(struct weir__address *address, unsigned prefix)
{
    if (prefix < address->bits)
        put_number(address, prefix == 0
                                ? 0
                                : weir__address_number(address) & ~(weir__u128)0 << (128 - prefix));
}

/* The longest run of two or more zero groups, or the first such; length 0: none. */
static size_t find_zeros(const unsigned groups[8], size_t *begin)
{
    size_t longest = 1;

    for (size_t i = 0, run = 0; i < 8; i++) {
        run = groups[i] == 0 ? run + 1 : 0;
        if (run > longest) {
            longest = run;
            *begin = i + 1 - run;
        }
    }
    return longest > 1 ? longest : 0;
}

static void print_six(char *out, size_t size, const uint8_t bytes[16])
{
    unsigned groups[8];
    size_t begin = 8, at = 0;

    for (size_t i = 0; i < 8; i++)
        groups[i] = (unsigned)bytes[2 * i] << 8 | bytes[2 * i + 1];
    size_t zeros = find_zeros(groups, &begin);
    for (size_t i = 0; i < 8; i++)
        if (i == begin) {
            at += (size_t)snprintf(out + at, size - at, "::");
            i += zeros - 1;
        } else {
            at += (size_t)snprintf(out + at, size - at, i == 0 || i == begin + zeros ? "%x" : ":%x",
                                   groups[i]);
        }
}

int weir__address_print(char *out, size_t size, const struct weir__address *address)
{
    const uint8_t *b = address->bytes;
    char six[SIX_MAX + 1] = "";

    if (address->bits == 32)
        return snprintf(out, size, "%d.%d.%d.%d", b[0], b[1], b[2], b[3]);
    if (address->bits == 128)
        print_six(six, sizeof(six), b);
    return snprintf(out, size, "%s", six);
}

/* -------------------------------------------------------------- networks ---- */

/* The likely mistake in a text that is no address. */
static const char *guess(const char *text, size_t len)
{
    size_t colons = 0, dots = 0, last = 0;
    bool zero = false;

    for (size_t i = 0; i < len; i++) {
        colons += text[i] == ':';
        dots += text[i] == '.';
        if (text[i] == ' ' || text[i] == '\t')
            return "no spaces";
        if (text[i] == '%')
            return "no scope";
        zero |= text[i] == '0' && (i == 0 || text[i - 1] == '.') && i + 1 < len &&
                text[i + 1] >= '0' && text[i + 1] <= '9';
        last = text[i] == ']' ? i : last;
    }
    if ((dots == 3 && colons == 1) || (last > 0 && last + 1 < len))
        return "no port";
    if (zero && colons == 0)
        return "no leading zeros";
    return dots > 0 && dots < 3 && colons == 0 ? "all four numbers" : NULL;
}

static int fail_address(struct weir_error *error, const char *text, size_t len)
{
    const char *hint = len > 0 ? guess(text, len) : NULL;

    if (len == 0)
        return weir__fail_at(error, 1,
                             "an address is missing: write one as 192.0.2.7 or 2001:db8::7, a "
                             "network as 10.0.0.0/8");
    return weir__fail_at(error, 1,
                         "%s is not an IP address: write it as 192.0.2.7 or 2001:db8::7%s%s",
                         weir__quote(text, len).text, hint ? ", " : "", hint ? hint : "");
}

/* A prefix as written; above 999: not a number. */
static unsigned parse_prefix(const char *text, size_t len)
{
    unsigned value = 0;

    if (len == 0 || len > 3 || (len > 1 && text[0] == '0'))
        return UINT32_MAX;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return UINT32_MAX;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    return value;
}

static int check_host_bits(const struct weir__address *address, const struct weir__cidr *cidr,
                           size_t column, struct weir_error *error)
{
    char written[SIX_MAX + 1], meant[SIX_MAX + 1];

    if (memcmp(address->bytes, cidr->address.bytes, sizeof(address->bytes)) == 0)
        return WEIR_OK;
    weir__address_print(written, sizeof(written), address);
    weir__address_print(meant, sizeof(meant), &cidr->address);
    return weir__fail_at(error, (int)column,
                         "%s has bits set after its prefix of %d: write %s/%d for the network, or "
                         "%s for the address",
                         written, cidr->prefix, meant, cidr->prefix, written);
}

int weir__cidr_parse(const char *text, size_t len, struct weir__cidr *out, struct weir_error *error)
{
    const char *slash = len > 0 ? memchr(text, '/', len) : NULL;
    size_t address_len = slash ? (size_t)(slash - text) : len;
    struct weir__address address;

    if (!weir__address_parse(text, address_len, &address))
        return fail_address(error, text, address_len);
    /* An IPv4 address written as IPv6 counts its prefix as IPv6 does. */
    unsigned skip = address.bits == 32 && memchr(text, ':', address_len) != NULL ? 96 : 0;
    unsigned most = address.bits + skip,
             prefix = slash ? parse_prefix(slash + 1, len - address_len - 1) : most;
    if (prefix < skip || prefix > most)
        return weir__fail_at(
            error, (int)address_len + 2,
            "%s is not a prefix: after the slash of %s network comes a number from %u to %u",
            weir__quote(slash + 1, len - address_len - 1).text,
            skip         ? "a mapped IPv4"
            : most == 32 ? "an IPv4"
                         : "an IPv6",
            skip, most);
    struct weir__cidr cidr = { .address = address, .prefix = (uint8_t)(prefix - skip) };
    weir__address_mask(&cidr.address, cidr.prefix);
    int code = check_host_bits(&address, &cidr, address_len + 2, error);
    if (code == WEIR_OK)
        *out = cidr;
    return code;
}
