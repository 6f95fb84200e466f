/* A store of replies: a directory with a file for each. Any number of processes and threads share
 * it: an entry appears by a rename, whole or not at all, and is not changed after that. What a
 * large one says beside its body is renewed by a second file, since the body is not copied. */
#ifndef COMMON_PROXY_CACHE_H
#define COMMON_PROXY_CACHE_H

#include "common/base/checksum.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

/* A reply whose head is larger than this is not stored. */
#define CACHE_HEAD_LIMIT 12288
#define CACHE_NAME_SIZE  40

struct cache_shared;

struct cache {
    int directory;
    uid_t owner;                 /* of all files in it */
    uint64_t limit;              /* bytes of all entries */
    struct cache_shared *shared; /* between all that use the directory */
};

/* What an entry says beside its body. */
struct cache_record {
    struct text uri;
    struct text list;     /* of the fields that it varies on */
    struct text selected; /* what these were in the request: read, not written */
    struct text reason;
    struct text fields;
    int status;
    unsigned minor;              /* of the version that it came in */
    int64_t requested, received; /* seconds since 1970 */
    uint64_t length;             /* of the body */
    uint64_t removals; /* that cache_removals said when the origin was asked: not stored */
};

/* How a file begins: then come the record's texts, and the body. */
struct cache_header {
    char magic[8];
    uint32_t kind;
    int32_t status;
    uint32_t minor;
    uint32_t lengths[5];         /* of the texts */
    int64_t requested, received; /* seconds since 1970 */
    uint64_t generation;         /* of the replies that vary */
    uint64_t length;             /* of the body */
    uint64_t sum;                /* checksums: of the body (or `self` of what this renews), */
    uint64_t texts;              /* of the texts, */
    uint64_t self;               /* and of all before this */
};

/* An entry that is open for reading. */
struct cache_entry {
    struct cache_record record;
    struct cache_header header;
    int file;
    uint64_t start;   /* of the body in the file */
    char *space;      /* that the record's texts are slices of; from malloc */
    struct text body; /* if it was small enough to be read at once, else without data */
    char name[CACHE_NAME_SIZE];
};

/* An entry that is being written. */
struct cache_writer {
    struct cache_header header;
    int file;          /* -1: none */
    bool committed;    /* it has appeared */
    uint64_t start;    /* of the body in the file */
    uint64_t counted;  /* bytes of it, in the size of the cache */
    size_t slot;       /* where removals of its URI are counted, */
    uint64_t removals; /* and what stood there when the origin was asked */
    struct checksum sum;
    char name[CACHE_NAME_SIZE];      /* that it gets at the end */
    char temporary[CACHE_NAME_SIZE]; /* that it has until then */
};

/* Makes the directory if there is none. Says why not, and returns false. */
bool cache_open(struct cache *cache, const char *path, uint64_t limit);
void cache_close(struct cache *cache);

enum cache_found {
    CACHE_NOTHING,
    CACHE_OTHER, /* only replies for requests with other fields */
    CACHE_FOUND,
};

/* Looks for the reply to a request. `name` gets the name of the entry that it has, or would have.
 */
enum cache_found cache_find(const struct cache *cache, struct text uri, struct text request_fields,
                            struct cache_entry *entry, char name[CACHE_NAME_SIZE]);
/* Whether the body is what was stored; an entry that is damaged is removed. Reads all of it, if it
 * is not larger than CACHE_VERIFY_LIMIT. */
#define CACHE_VERIFY_LIMIT (16 * 1024 * 1024)
bool cache_verify(const struct cache *cache, struct cache_entry *entry);
/* Notes that it was used now. */
void cache_touch(const struct cache_entry *entry);
void cache_leave(struct cache_entry *entry);

/* How often replies to the URI were removed. Who is going to ask the origin notes it before, in the
 * record of what comes: if there was a removal meanwhile, that reply may be older than the reason
 * for the removal, and does not appear. */
uint64_t cache_removals(const struct cache *cache, struct text uri);

/* Begins an entry; false if it cannot be stored. What the record selects is read from the request.
 */
bool cache_begin(const struct cache *cache, struct cache_writer *writer,
                 const struct cache_record *record, struct text request_fields);
/* Adds to its body; false if there is no room for it. */
bool cache_write(const struct cache *cache, struct cache_writer *writer, struct text data);
/* Has it appear, in place of any that there was. Its file stays open. */
bool cache_commit(const struct cache *cache, struct cache_writer *writer);
/* Closes it. What has not appeared by now is gone. */
void cache_end(const struct cache *cache, struct cache_writer *writer);

/* Replaces an entry by one with the same body and another record, whatever the length of that. */
bool cache_renew(const struct cache *cache, const struct cache_entry *entry,
                 const struct cache_record *record, struct text request_fields);

/* Removes all replies to the URI. */
void cache_remove(const struct cache *cache, struct text uri);

/* Who fetches the reply of that name holds its lock, which goes with whoever holds it. */
#define CACHE_LOCKED  (-1) /* somebody else holds it */
#define CACHE_NO_LOCK (-2) /* there is none to be had: nobody is to be waited for */
int cache_lock(const struct cache *cache, const char *name);
/* Lets go of it, if it is held, and tells those who wait. */
void cache_unlock(const struct cache *cache, const char *name, int lock);
/* Changes when a lock of that name is given back (and now and then without that): who waits need
 * not try before, but for a holder that died. */
uint64_t cache_moves(const struct cache *cache, const char *name);

/* The fetch of that name gets on: at which time, in monotonic milliseconds. */
void cache_advance(const struct cache *cache, const char *name, int64_t now);
/* When one did last; 0: not known. */
int64_t cache_advanced(const struct cache *cache, const char *name, int64_t now);

/* The fetch of that name was in vain, since the origin took too long: noted at which time, in
 * monotonic milliseconds. */
void cache_time_out(const struct cache *cache, const char *name, int64_t now);
/* Whether one was since then. */
bool cache_timed_out(const struct cache *cache, const char *name, int64_t since, int64_t now);

/* Replies of that name are not worth waiting for, since they will not be stored. This is forgotten
 * after CACHE_PASS_SECONDS. */
#define CACHE_PASS_SECONDS 10
void cache_pass(const struct cache *cache, const char *name, int64_t now);
bool cache_passes(const struct cache *cache, const char *name, int64_t now);

/* Bytes of all entries, as far as is known. */
uint64_t cache_size(const struct cache *cache);

#endif
