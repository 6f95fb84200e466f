/* An entry of the cache, opened for reading. An entry is one file: a header, the texts of the
 * record, and the body of the response. It appears whole and does not change afterwards. The
 * record of a large entry is updated by a second file, since the body is not copied. */
#ifndef COMMON_PROXY_CACHE_ENTRY_H
#define COMMON_PROXY_CACHE_ENTRY_H

#include "common/base/text.h"
#include "common/proxy/block_checksums.h"
#include "common/proxy/cache_file.h"
#include "common/proxy/cache_name.h"

/* Bytes of the fields, or of the URI. The parser of responses takes shorter heads only. */
#define CACHE_HEAD_LIMIT 36864
/* Of all texts of an entry: this program writes no larger ones. */
#define CACHE_TEXTS_LIMIT (4 * CACHE_HEAD_LIMIT)

enum cache_entry_kind {
    CACHE_ENTRY_RESPONSE = 1,
    CACHE_ENTRY_INDEX,  /* the list of fields that the responses, in other files, vary on */
    CACHE_ENTRY_RECORD, /* a newer record of a large entry */
    CACHE_ENTRY_PART,   /* a response whose body is a part of another one: see cache_part.h */
};

/* An entry without its body. */
struct cache_record {
    struct text uri;
    struct text list;     /* of the fields that it varies on */
    struct text selected; /* their values in the request; the writer finds them itself */
    struct text reason;
    struct text fields;
    int status;
    unsigned minor;              /* of the version of the origin's response */
    int64_t requested, received; /* seconds since 1970 */
    uint64_t length;             /* of the body */
    uint64_t removals; /* cache_uri_removals() when the origin was asked: not stored in the file */
};

/* The beginning of a file. */
struct cache_header {
    char magic[8];
    uint32_t kind;
    int32_t status;
    uint32_t minor;
    uint32_t lengths[5];         /* of the texts */
    int64_t requested, received; /* seconds since 1970 */
    uint64_t generation;         /* of the responses that vary */
    uint64_t length;             /* of the body */
    uint64_t seed;  /* of the checksums of the body's blocks; in a CACHE_ENTRY_RECORD: `self` of
                       the entry that it updates */
    uint64_t texts; /* checksums: of the texts, */
    uint64_t self;  /* and of all before this */
};

struct cache_entry {
    struct cache_record record;
    struct cache_header header;
    int file;          /* -1: the entry was taken from memory, with its body */
    bool is_newest;    /* no file has a newer record of it */
    int64_t used;      /* the last time, in nanoseconds since 1970 */
    uint64_t identity; /* of the file: see block_checksums.h */
    uint64_t start;    /* of the body in the file */
    char *space;       /* from malloc: the record's texts are slices of it */
    struct text body;  /* without data if it is too large to be read at once */
    char name[CACHE_NAME_SIZE];
};

/* Opens the file of that name if it belongs to the URI. Removes it if it is damaged. */
bool cache_entry_open(const struct cache *cache, struct cache_entry *entry, const char *name,
                      struct text uri);
/* Removes the mark of a large entry's file, which says that no other file has a newer record of the
 * entry. Without the mark, each use looks for one: a mark that is lost by accident only costs time.
 */
bool cache_entry_expect_newer(const struct cache_entry *entry);
void cache_entry_close(struct cache_entry *entry);

/* Returns true if the body matches its checksums; removes the entry if it does not. False, too, if
 * there is no memory to check it. */
bool cache_entry_verify(const struct cache *cache, const struct cache_entry *entry);
/* The same for the first block of the body, or all of it if it is in memory. The other blocks are
 * checked by block_checksums_check() when they are sent. */
bool cache_entry_verify_first(const struct cache *cache, const struct cache_entry *entry);
/* Returns the body of an entry that is not in memory. */
struct cache_body cache_entry_body(const struct cache *cache, const struct cache_entry *entry);
/* Notes that the entry was used now. */
void cache_entry_touch(const struct cache *cache, const struct cache_entry *entry);

/* Writes the fields of a request that the list names, in a form that can be compared. Returns
 * memory for the caller to free; NULL if there is none. */
char *cache_entry_select(struct text list, struct text request_fields, struct text *selected);

/* The five texts of a record, in the order of the file. */
void cache_entry_texts(const struct cache_record *record, struct text texts[5]);
/* Fills in the magic number, and the header's own checksum. */
void cache_entry_seal(struct cache_header *header);

#endif
