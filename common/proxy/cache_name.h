/* The names of the files in the cache directory: a letter for the kind of file, and a checksum of
 * what the entry is found by. */
#ifndef COMMON_PROXY_CACHE_NAME_H
#define COMMON_PROXY_CACHE_NAME_H

#include "common/base/text.h"

#include <stddef.h>
#include <stdint.h>

/* Room for a name: a letter, two numbers of 16 digits, and the final zero. */
#define CACHE_NAME_SIZE   40
#define CACHE_NAME_LENGTH 33

/* The files that all processes with this directory share; see cache_shared.h, fetch_lock.h. */
#define CACHE_NAME_SHARED "account-2" /* the number is that of its layout */
#define CACHE_NAME_LOCKS  "locks"
/* Servers of an earlier version shared this one, which has another layout. */
#define CACHE_NAME_SHARED_BEFORE "account"
/* Requests wait at pipes. Their names begin so, and end in four digits; see fetch_wakeup.h. */
#define CACHE_NAME_NEWS        "news-"
#define CACHE_NAME_NEWS_LENGTH 9

/* The letters. */
#define CACHE_NAME_ENTRY     'e' /* a response, or the list of fields that it varies on */
#define CACHE_NAME_RECORD    'r' /* a newer head of a large entry */
#define CACHE_NAME_PART      'p' /* a part of a response */
#define CACHE_NAME_TEMPORARY 't' /* a file that is being written */

/* The name of the entry for a URI, a generation of its variants, and the request's fields. */
void cache_name_entry(char name[CACHE_NAME_SIZE], struct text uri, uint64_t generation,
                      struct text selected);
/* A random name. Returns false if there is no random number. */
bool cache_name_temporary(char name[CACHE_NAME_SIZE]);
/* The name of a pipe, for the news of that number. */
void cache_name_news(char name[CACHE_NAME_SIZE], size_t slot, unsigned number);
bool cache_name_is_news(const char *name);
/* The name of another file of the same entry. */
void cache_name_other(char name[CACHE_NAME_SIZE], char letter, const char *other);

/* Returns true if a file of that name can be one of ours. */
bool cache_name_is_valid(const char *name);
/* Writes the name that consists of a letter and two numbers, and reads one of them. */
void cache_name_write(char name[CACHE_NAME_SIZE], char letter, const uint64_t number[2]);
uint64_t cache_name_half(const char *name, int half);
/* The number that tells entries apart in tables and locks. */
uint64_t cache_name_number(const char *name);

#endif
