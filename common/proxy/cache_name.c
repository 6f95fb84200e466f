/* Makes and reads the names of the files in the cache directory. */
#include "common/proxy/cache_name.h"

#include "common/base/checksum.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

void cache_name_write(char name[CACHE_NAME_SIZE], char letter, const uint64_t number[2])
{
    *name++ = letter;
    for (int i = 0; i < 2; i++)
        for (int shift = 60; shift >= 0; shift -= 4)
            *name++ = "0123456789abcdef"[number[i] >> shift & 15];
    *name = '\0';
}

void cache_name_entry(char name[CACHE_NAME_SIZE], struct text uri, uint64_t generation,
                      struct text selected)
{
    uint64_t number[2];

    for (unsigned i = 0; i < 2; i++) {
        struct checksum sum;
        checksum_start(&sum, generation + i);
        checksum_add(&sum, uri);
        checksum_add(&sum, TEXT("\n"));
        checksum_add(&sum, selected);
        number[i] = checksum_end(&sum);
    }
    cache_name_write(name, CACHE_NAME_ENTRY, number);
}

bool cache_name_temporary(char name[CACHE_NAME_SIZE])
{
    uint64_t number[2];

    if (getrandom(number, sizeof number, 0) != (ssize_t)sizeof number)
        return false;
    cache_name_write(name, CACHE_NAME_TEMPORARY, number);
    return true;
}

void cache_name_news(char name[CACHE_NAME_SIZE], size_t slot, unsigned number)
{
    snprintf(name, CACHE_NAME_SIZE, CACHE_NAME_NEWS "%03zx%x", slot, number & 15);
}

bool cache_name_is_news(const char *name)
{
    return strncmp(name, CACHE_NAME_NEWS, sizeof CACHE_NAME_NEWS - 1) == 0 &&
           strlen(name) == CACHE_NAME_NEWS_LENGTH;
}

void cache_name_other(char name[CACHE_NAME_SIZE], char letter, const char *other)
{
    memcpy(name, other, CACHE_NAME_LENGTH + 1);
    name[0] = letter;
}

bool cache_name_is_valid(const char *name)
{
    static const char letters[] = {CACHE_NAME_ENTRY, CACHE_NAME_TEMPORARY, CACHE_NAME_RECORD,
                                   CACHE_NAME_PART, 0};

    return strchr(letters, name[0]) != NULL && strlen(name) == CACHE_NAME_LENGTH;
}

uint64_t cache_name_half(const char *name, int half)
{
    const char *digits = name + 1 + 16 * half;
    uint64_t number = 0;

    for (int i = 0; i < 16; i++)
        number = number << 4 | (unsigned)text_hex(digits[i]);
    return number;
}

uint64_t cache_name_number(const char *name)
{
    return cache_name_half(name, 1);
}
