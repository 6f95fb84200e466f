/* Tests of dns.c: the bytes of questions, and answers that are good, strange or forged. */
#include "common/net/dns.h"

#include "tests/unit.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER 0x1234
#define PORT   80
/* The beginning of an answer: the number, the flags, one question and so many records. */
#define HEAD(flags, records) "\x12\x34" flags "\0\1\0" records "\0\0\0\0"
#define GOOD                 "\x81\x80"
#define QUESTION             "\6origin\4test\0\0\1\0\1"
/* A record of the name that the question has at byte 12. */
#define OWNER                "\xc0\x0c"
#define A(owner, seconds, a) owner "\0\1\0\1\0\0\0" seconds "\0\4" a
#define ONE                  "\xc0\0\2\1"
#define TWO                  "\xc0\0\2\2"

static const struct dns_question question = {NUMBER, TEXT_IS("origin.test"), DNS_IPV4};

struct answer {
    const char *name;
    const char *bytes;
    size_t length;
    enum dns_outcome outcome;
    const char *addresses;
    uint32_t seconds;
};

#define ANSWER(name, bytes, outcome, addresses, seconds)                                           \
    {                                                                                              \
        name, bytes, sizeof(bytes) - 1, outcome, addresses, seconds                                \
    }

static struct answer answers[] = {
    ANSWER("an address", HEAD(GOOD, "\1") QUESTION A(OWNER, "\7", ONE), DNS_ANSWERED, "192.0.2.1 ",
           7),
    ANSWER("two addresses, and the shorter time",
           HEAD(GOOD, "\2") QUESTION A(OWNER, "\7", ONE) A(OWNER, "\5", TWO), DNS_ANSWERED,
           "192.0.2.1 192.0.2.2 ", 5),
    ANSWER("an alias",
           HEAD(GOOD, "\2") QUESTION OWNER "\0\5\0\1\0\0\0\3\0\2\xc0\x13" A("\4test\0", "\7", ONE),
           DNS_ANSWERED, "192.0.2.1 ", 3),
    ANSWER("an alias behind its address",
           HEAD(GOOD, "\2") QUESTION A("\1b\0", "\7", ONE) OWNER "\0\5\0\1\0\0\0\3\0\3\1b\0",
           DNS_ANSWERED, "192.0.2.1 ", 3),
    ANSWER("an alias of itself", HEAD(GOOD, "\1") QUESTION OWNER "\0\5\0\1\0\0\0\3\0\2\xc0\x0c",
           DNS_NO_NAME, "", 3),
    ANSWER("the address of another name", HEAD(GOOD, "\1") QUESTION A("\5other\0", "\1", ONE),
           DNS_NO_NAME, "", 99),
    ANSWER("a record of another type", HEAD(GOOD, "\1") QUESTION OWNER "\0\20\0\1\0\0\0\1\0\2\1x",
           DNS_NO_NAME, "", 99),
    ANSWER("an address of three bytes",
           HEAD(GOOD, "\1") QUESTION OWNER "\0\1\0\1\0\0\0\7\0\3\xc0\0\2", DNS_NO_NAME, "", 7),
    ANSWER("an address that is cut off",
           HEAD(GOOD, "\1") QUESTION OWNER "\0\1\0\1\0\0\0\7\0\4\xc0\0\2", DNS_NO_NAME, "", 99),
    ANSWER("the beginning of an answer", HEAD("\x83\x80", "\2") QUESTION A(OWNER, "\7", ONE),
           DNS_TRUNCATED, "192.0.2.1 ", 7),
    ANSWER("no such name", HEAD("\x81\x83", "\0") QUESTION, DNS_NO_NAME, "", 99),
    ANSWER("a failure", HEAD("\x81\x82", "\0") QUESTION, DNS_FAILED, "", 99),
    ANSWER("another number", "\x12\x35" GOOD "\0\1\0\1\0\0\0\0" QUESTION A(OWNER, "\7", ONE),
           DNS_FOREIGN, "", 99),
    ANSWER("another question", HEAD(GOOD, "\1") "\5other\0\0\1\0\1" A(OWNER, "\7", ONE),
           DNS_FOREIGN, "", 99),
    ANSWER("a question for another type", HEAD(GOOD, "\1") "\6origin\4test\0\0\x1c\0\1",
           DNS_FOREIGN, "", 99),
    ANSWER("a question, no answer", HEAD("\1\0", "\1") QUESTION A(OWNER, "\7", ONE), DNS_FOREIGN,
           "", 99),
    ANSWER("a name in upper case", HEAD(GOOD, "\1") "\6ORIGIN\4test\0\0\1\0\1" A(OWNER, "\7", ONE),
           DNS_ANSWERED, "192.0.2.1 ", 7),
    ANSWER("a name that goes on at itself", HEAD(GOOD, "\1") QUESTION A("\xc0\x1d", "\7", ONE),
           DNS_NO_NAME, "", 99),
    ANSWER("a name that goes on behind itself", HEAD(GOOD, "\1") QUESTION A("\xc0\x20", "\7", ONE),
           DNS_NO_NAME, "", 99),
    ANSWER("a label with a dot", HEAD(GOOD, "\1") "\13origin.test\0\0\1\0\1", DNS_FOREIGN, "", 99),
    ANSWER("nothing", "", DNS_FOREIGN, "", 99),
};

static void check_answer(void **state)
{
    const struct answer *row = *state;
    struct address_list list = {.count = 0};
    char all[128] = "", one[INET6_ADDRSTRLEN];
    uint32_t seconds = 99;

    assert_int_equal(
        dns_read(&question, (const unsigned char *)row->bytes, row->length, PORT, &list, &seconds),
        row->outcome);
    for (int i = 0; i < list.count; i++) {
        address_write(&list.addresses[i], one, sizeof one);
        assert_int_equal(address_port(&list.addresses[i]), PORT);
        strcat(strcat(all, one), " ");
    }
    assert_string_equal(all, row->addresses);
    assert_int_equal(seconds, row->seconds);
}

static void check_question(void **state)
{
    static const char expected[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0" QUESTION;
    unsigned char message[DNS_MESSAGE_LIMIT];

    (void)state;
    assert_int_equal(dns_ask(&question, message), sizeof expected - 1);
    assert_memory_equal(message, expected, sizeof expected - 1);
}

static void check_names(void **state)
{
    static const char *const bad[] = {"", ".", "a..b", ".a", "a.."};
    char label[70] = "", name[300] = "";
    unsigned char message[DNS_MESSAGE_LIMIT];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(dns_ask(&(struct dns_question){1, text_of(bad[i]), DNS_IPV4}, message), 0);
    assert_true(dns_ask(&(struct dns_question){1, TEXT("a.b."), DNS_IPV4}, message) > 0);
    memset(label, 'a', 63);
    assert_true(dns_ask(&(struct dns_question){1, text_of(label), DNS_IPV4}, message) > 0);
    label[63] = 'a';
    assert_int_equal(dns_ask(&(struct dns_question){1, text_of(label), DNS_IPV4}, message), 0);
    for (int i = 0; i < 127; i++)
        strcat(name, "a.");
    assert_int_equal(dns_ask(&(struct dns_question){1, text_of(name), DNS_IPV4}, message),
                     12 + 127 * 2 - 1 + 2 + 4);
    strcat(name, "a");
    assert_int_equal(dns_ask(&(struct dns_question){1, text_of(name), DNS_IPV4}, message), 0);
}

/* Copies of the exact length, so that a sanitizer sees each read beyond the end. */
static void check_mutations(void **state)
{
    unsigned long seed = 1;

    (void)state;
    for (int round = 0; round < 100000; round++) {
        const struct answer *row = &answers[(size_t)round % (sizeof answers / sizeof answers[0])];
        size_t length = row->length;
        unsigned char *copy = malloc(length + 1);
        struct address_list list = {.count = 0};
        uint32_t seconds = 99;

        assert_non_null(copy);
        memcpy(copy, row->bytes, length);
        for (int i = 0; i < 1 + round % 4 && length > 0; i++) {
            seed = seed * 6364136223846793005UL + 1442695040888963407UL;
            copy[(seed >> 33) % length] = (unsigned char)(seed >> 25);
        }
        if (length > 0 && round % 3 == 0)
            copy = realloc(copy, length = (seed >> 40) % length + 1);
        assert_non_null(copy);
        dns_read(&question, copy, length, PORT, &list, &seconds);
        assert_true(list.count <= ADDRESS_LIST_LIMIT && seconds <= 99);
        free(copy);
    }
}

struct scope_case {
    const char *name;
    enum address_scope scope;
};

static struct scope_case scopes[] = {
    {"8.8.8.8", ADDRESS_PUBLIC},
    {"192.0.2.1", ADDRESS_PUBLIC},
    {"11.0.0.0", ADDRESS_PUBLIC},
    {"172.32.0.1", ADDRESS_PUBLIC},
    {"2001:db8::1", ADDRESS_PUBLIC},
    {"64:ff9b::8.8.8.8", ADDRESS_PUBLIC},
    {"10.0.0.1", ADDRESS_PRIVATE},
    {"172.16.0.1", ADDRESS_PRIVATE},
    {"172.31.255.255", ADDRESS_PRIVATE},
    {"192.168.1.1", ADDRESS_PRIVATE},
    {"100.64.0.1", ADDRESS_PRIVATE},
    {"fd00::1", ADDRESS_PRIVATE},
    {"fec0::1", ADDRESS_PRIVATE},
    {"::ffff:10.0.0.1", ADDRESS_PRIVATE},
    {"64:ff9b::10.0.0.1", ADDRESS_PRIVATE},
    {"2002:a00:1::", ADDRESS_PRIVATE},
    {"::ffff:0:10.0.0.1", ADDRESS_PRIVATE},
    {"::ffff:0:127.0.0.1", ADDRESS_LOCAL},
    {"64:ff9b:1::808:808", ADDRESS_PRIVATE},
    {"2001:0:808:808::1", ADDRESS_PRIVATE},
    {"2001:db9::1", ADDRESS_PUBLIC},
    {"127.0.0.1", ADDRESS_LOCAL},
    {"127.255.0.1", ADDRESS_LOCAL},
    {"0.0.0.0", ADDRESS_LOCAL},
    {"169.254.169.254", ADDRESS_LOCAL},
    {"224.0.0.1", ADDRESS_LOCAL},
    {"255.255.255.255", ADDRESS_LOCAL},
    {"::", ADDRESS_LOCAL},
    {"::1", ADDRESS_LOCAL},
    {"::127.0.0.1", ADDRESS_LOCAL},
    {"::ffff:127.0.0.1", ADDRESS_LOCAL},
    {"64:ff9b::127.0.0.1", ADDRESS_LOCAL},
    {"2002:7f00:1::", ADDRESS_LOCAL},
    {"fe80::1", ADDRESS_LOCAL},
    {"ff02::1", ADDRESS_LOCAL},
};

static void check_scope(void **state)
{
    const struct scope_case *row = *state;
    union address address;

    assert_true(address_read(text_of(row->name), PORT, &address));
    assert_int_equal(address_scope(&address), row->scope);
}

int main(void)
{
    unit_add("a question", check_question, NULL);
    unit_add("names that can and cannot be", check_names, NULL);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        unit_add(answers[i].name, check_answer, &answers[i]);
    unit_add("100,000 mutations of these", check_mutations, NULL);
    for (size_t i = 0; i < sizeof scopes / sizeof scopes[0]; i++)
        unit_add(scopes[i].name, check_scope, &scopes[i]);
    return unit_run("dns");
}
