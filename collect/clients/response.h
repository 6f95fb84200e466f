/* Reads the status and the length of a response, and tells whether it is whole. */
#ifndef COLLECT_REPLY_H
#define COLLECT_REPLY_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { REPLY_HEAD_MOST = 1024 };

struct reply {
    char head[REPLY_HEAD_MOST];
    size_t head_bytes; /* received; all of them once `headed` */
    bool headed;
    int status;       /* 0: this is no HTTP */
    long long length; /* Content-Length; -1: none */
    long long body;   /* bytes received */
};

static inline void reply_begin(struct reply *reply)
{
    reply->head_bytes = 0;
    reply->headed = false;
    reply->status = 0;
    reply->length = -1;
    reply->body = 0;
}

static inline void reply_read_head(struct reply *reply)
{
    static const char name[] = "\r\nContent-Length:";
    static const char version[] = "HTTP/1.";
    const char *space = strchr(reply->head, ' ');

    reply->headed = true;
    if (space && strncmp(reply->head, version, sizeof(version) - 1) == 0)
        reply->status = atoi(space);
    for (const char *at = reply->head; (at = strstr(at, "\r\n")); at += 2)
        if (strncasecmp(at, name, sizeof(name) - 1) == 0)
            reply->length = atoll(at + sizeof(name) - 1);
}

/* Takes the next bytes. Returns false if this is no response: its head does not end. */
static inline bool reply_take(struct reply *reply, const char *bytes, size_t count)
{
    if (!reply->headed) {
        size_t room = sizeof(reply->head) - 1 - reply->head_bytes;
        size_t part = count < room ? count : room;
        memcpy(reply->head + reply->head_bytes, bytes, part);
        reply->head_bytes += part;
        reply->head[reply->head_bytes] = '\0';
        const char *end = strstr(reply->head, "\r\n\r\n");
        if (!end)
            return part == count;
        size_t head = (size_t)(end - reply->head) + 4;
        size_t before = reply->head_bytes - part;
        reply->head[head] = '\0';
        reply->head_bytes = head;
        reply_read_head(reply);
        count -= head - before;
    }
    reply->body += (long long)count;
    return true;
}

static inline bool reply_whole(const struct reply *reply)
{
    return reply->headed && reply->status > 0 && reply->length >= 0 && reply->body >= reply->length;
}

#endif
