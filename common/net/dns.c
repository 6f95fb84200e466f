/* Writes questions to name servers, and reads their answers, which anybody may have sent. */
#include "common/net/dns.h"

#include <string.h>

#define HEAD_BYTES  12
#define NAME_LIMIT  254
#define LABEL_LIMIT 63
#define CLASS_IN    1
#define TYPE_CNAME  5
/* At most so many aliases are followed. */
#define ALIAS_LIMIT 8

/* Of the third and fourth byte of a message, in one number. */
#define FLAG_RESPONSE  0x8000U
#define FLAG_TRUNCATED 0x0200U
#define FLAG_RECURSE   0x0100U
#define MASK_OPERATION 0x7800U
#define MASK_RESULT    0x000fU
enum { RESULT_GOOD = 0, RESULT_NO_NAME = 3 };

struct message {
    const unsigned char *bytes;
    size_t length, at; /* the next byte to read */
    bool broken;
};

struct name {
    char text[NAME_LIMIT + 1];
    size_t length;
};

/* A resource record; its data lies at `data`. */
struct record {
    struct name owner;
    unsigned type, class;
    uint32_t seconds;
    size_t data, size;
};

/* ---- the question ---- */

static size_t put_number(unsigned char *bytes, unsigned number)
{
    bytes[0] = (unsigned char)(number >> 8);
    bytes[1] = (unsigned char)number;
    return 2;
}

/* Returns the length; 0 if there can be no such name. */
static size_t put_name(struct text name, unsigned char *bytes)
{
    size_t length = 0;

    if (name.length > 0 && name.data[name.length - 1] == '.')
        name.length--;
    if (name.length == 0 || name.length >= NAME_LIMIT)
        return 0;
    while (name.length > 0) {
        size_t label = text_find(name, '.');
        bool last = label == name.length;
        if (label == 0 || label > LABEL_LIMIT || (!last && label + 1 == name.length))
            return 0;
        bytes[length++] = (unsigned char)label;
        memcpy(bytes + length, name.data, label);
        length += label;
        name.data += last ? label : label + 1;
        name.length -= last ? label : label + 1;
    }
    bytes[length++] = 0;
    return length;
}

size_t dns_ask(const struct dns_question *question, unsigned char message[DNS_MESSAGE_LIMIT])
{
    size_t length = HEAD_BYTES, name;

    memset(message, 0, HEAD_BYTES);
    put_number(message, question->number);
    put_number(message + 2, FLAG_RECURSE);
    put_number(message + 4, 1);
    name = put_name(question->name, message + length);
    if (name == 0)
        return 0;
    length += name;
    length += put_number(message + length, question->type);
    length += put_number(message + length, CLASS_IN);
    return length;
}

/* ---- reading ---- */

static unsigned take(struct message *message, size_t count)
{
    unsigned value = 0;

    if (message->broken || message->length - message->at < count) {
        message->broken = true;
        return 0;
    }
    while (count-- > 0)
        value = value << 8 | message->bytes[message->at++];
    return value;
}

static void add_label(struct message *message, struct name *name, size_t from, size_t label)
{
    if (from + label > message->length || name->length + label + 1 > NAME_LIMIT ||
        memchr(message->bytes + from, '.', label) != NULL) {
        message->broken = true;
        return;
    }
    if (name->length > 0)
        name->text[name->length++] = '.';
    memcpy(name->text + name->length, message->bytes + from, label);
    name->length += label;
}

/* A name may go on at an earlier place in the message. Each jump leads further back, so that there
 * is an end. */
static void take_name(struct message *message, struct name *name)
{
    size_t at = message->at, first = at;
    bool jumped = false;

    name->length = 0;
    while (!message->broken) {
        unsigned label = at < message->length ? message->bytes[at] : 256;

        if (label == 0) {
            message->at = jumped ? message->at : at + 1;
            return;
        }
        if (label <= LABEL_LIMIT) {
            add_label(message, name, at + 1, label);
            at += label + 1;
        } else if (label >= 0xc0 && label < 256 && at + 1 < message->length) {
            size_t back = (label & 0x3fU) << 8 | message->bytes[at + 1];
            message->at = jumped ? message->at : at + 2;
            message->broken = back >= first;
            jumped = true;
            at = first = back;
        } else {
            message->broken = true;
        }
    }
}

static struct text text_in(const struct name *name)
{
    return (struct text){name->text, name->length};
}

static bool take_record(struct message *message, struct record *record)
{
    take_name(message, &record->owner);
    record->type = take(message, 2);
    record->class = take(message, 2);
    record->seconds = take(message, 4);
    record->size = take(message, 2);
    record->data = message->at;
    if (message->broken || message->length - message->at < record->size)
        return false;
    message->at += record->size;
    return true;
}

static bool answers(const struct dns_question *question, struct message *message, unsigned flags,
                    unsigned questions)
{
    struct text name = question->name;
    struct name asked;
    unsigned type, class;

    if (name.length > 0 && name.data[name.length - 1] == '.')
        name.length--;
    if (!(flags & FLAG_RESPONSE) || (flags & MASK_OPERATION) || questions != 1)
        return false;
    take_name(message, &asked);
    type = take(message, 2);
    class = take(message, 2);
    return !message->broken && text_same(text_in(&asked), name) && type == question->type &&
           class == CLASS_IN;
}

static void add_address(const struct message *message, const struct record *record, uint16_t port,
                        struct address_list *list)
{
    size_t size = record->type == DNS_IPV4 ? 4 : 16;

    if (record->size == size && list->count < ADDRESS_LIST_LIMIT)
        address_make(&list->addresses[list->count++], message->bytes + record->data, size, port);
}

/* Goes through the records once. Returns true if the name is an alias: then *name is what it stands
 * for. */
static bool follow(const struct dns_question *question, struct message message, unsigned records,
                   struct name *name, uint16_t port, struct address_list *list, uint32_t *seconds)
{
    struct record record;

    while (records-- > 0 && take_record(&message, &record)) {
        if (record.class != CLASS_IN || !text_same(text_in(&record.owner), text_in(name)))
            continue;
        if (record.type != TYPE_CNAME && record.type != (unsigned)question->type)
            continue;
        if (record.seconds < *seconds)
            *seconds = record.seconds;
        if (record.type == TYPE_CNAME) {
            struct message inner = message;
            inner.at = record.data;
            take_name(&inner, name);
            return !inner.broken;
        }
        add_address(&message, &record, port, list);
    }
    return false;
}

enum dns_outcome dns_read(const struct dns_question *question, const unsigned char *bytes,
                          size_t length, uint16_t port, struct address_list *list,
                          uint32_t *seconds)
{
    struct message message = {.bytes = bytes, .length = length};
    unsigned number = take(&message, 2), flags = take(&message, 2), questions = take(&message, 2);
    unsigned records = take(&message, 2);
    int before = list->count;
    struct name name;

    take(&message, 4);
    if (number != question->number || !answers(question, &message, flags, questions))
        return DNS_FOREIGN;
    if ((flags & MASK_RESULT) == RESULT_NO_NAME)
        return DNS_NO_NAME;
    if ((flags & MASK_RESULT) != RESULT_GOOD)
        return DNS_FAILED;
    name.length = question->name.length;
    if (name.length > 0 && question->name.data[name.length - 1] == '.')
        name.length--;
    memcpy(name.text, question->name.data, name.length);
    for (int i = 0; i < ALIAS_LIMIT; i++)
        if (!follow(question, message, records, &name, port, list, seconds))
            break;
    if (flags & FLAG_TRUNCATED)
        return DNS_TRUNCATED;
    return list->count > before ? DNS_ANSWERED : DNS_NO_NAME;
}
