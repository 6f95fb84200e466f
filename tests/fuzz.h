/* The base of the fuzzers: checks, and a driver that makes mutations of seeds.
 *
 * A fuzzer defines LLVMFuzzerTestOneInput() and its seeds. With -DFUZZER it is for libFuzzer and
 * AFL++ (tests/fuzz). Otherwise it has a main() that tries mutations from a fixed start, as many as
 * its first argument says, then tries the inputs in tests/corpora, and prints the result as TAP.
 * `--seeds DIRECTORY` writes the seeds to files, and a dictionary for fuzzers to standard output.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern const char *const fuzz_seeds[];
extern const size_t fuzz_seed_count;
extern const char fuzz_subject[]; /* what the fuzzer mutates, for the name of its case */
extern const long fuzz_rounds;    /* the default number of mutations */

/* Ends the program where a property does not hold. */
static inline void require(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz: it does not hold that %s\n", what);
    abort();
}

/* Returns a copy of the exact size, so that a sanitizer sees a byte too far. */
static inline char *copy_of(const char *bytes, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1);

    require(copy != NULL, "there is memory");
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

#ifndef FUZZER

/* Mutations insert these. */
static const char *const fuzz_words[] = {
    "\r\n",
    "\r",
    "\n",
    "\0",
    ":",
    " ",
    "\t",
    ",",
    ";",
    "\"",
    "\\",
    "%",
    "/",
    "..",
    "/../",
    "//",
    "%2e",
    "-",
    "=",
    "0",
    "18446744073709551615",
    "ffffffffffffffff",
    "\r\n\r\n",
    "Host: a\r\n",
    "chunked",
    "Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Range: bytes=",
    "HTTP/1.1",
    "*",
    "W/",
    "Cache-Control: ",
    "max-age=",
    "Vary: ",
    "Connection: ",
    "HTTP/1.1 200 OK\r\n",
};

#define FUZZ_INPUT_LIMIT 40000

static uint64_t random_state = 20210315;

static size_t random_below(size_t limit)
{
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return (size_t)(random_state >> 33) % limit;
}

static size_t insert(char *input, size_t size, const char *added, size_t length)
{
    size_t at = random_below(size + 1);

    if (size + length > FUZZ_INPUT_LIMIT)
        return size;
    memmove(input + at + length, input + at, size - at);
    memcpy(input + at, added, length);
    return size + length;
}

static size_t mutate(char *input, size_t size)
{
    char block[1024];
    size_t from, length;

    switch (random_below(6)) {
    case 0: /* another byte */
        if (size > 0)
            input[random_below(size)] = (char)random_below(256);
        return size;
    case 1: { /* a word */
        const char *word = fuzz_words[random_below(COUNT_OF(fuzz_words))];
        return insert(input, size, word, strlen(word) + (word[0] == '\0'));
    }
    case 2: /* a copy of a part, perhaps many times */
        if (size == 0)
            return size;
        from = random_below(size);
        length = random_below(size - from < sizeof block ? size - from : sizeof block) + 1;
        memcpy(block, input + from, length);
        for (size_t times = random_below(8) == 0 ? random_below(400) : 1; times > 0; times--)
            size = insert(input, size, block, length);
        return size;
    case 3: /* without a part */
        if (size == 0)
            return size;
        from = random_below(size);
        length = random_below(size - from) + 1;
        memmove(input + from, input + from + length, size - from - length);
        return size - length;
    case 4: /* a single bit */
        if (size > 0)
            input[random_below(size)] ^= (char)(1 << random_below(8));
        return size;
    default: { /* a part of another seed */
        const char *other = fuzz_seeds[random_below(fuzz_seed_count)];
        from = random_below(strlen(other));
        return insert(input, size, other + from, random_below(strlen(other) - from) + 1);
    }
    }
}

/* Tries the inputs that earlier runs of fuzzers left in tests/corpora. Returns how many. */
static long try_corpus(const char *program, char *input)
{
    const char *name = strrchr(program, '/');
    char path[4096];
    DIR *directory;
    long count = 0;

    name = strstr(name != NULL ? name : program, "fuzz_");
    snprintf(path, sizeof path, "tests/corpora/%s", name != NULL ? name + strlen("fuzz_") : "");
    directory = opendir(path);
    if (directory == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char file_path[sizeof path + sizeof entry->d_name];
        FILE *file;

        snprintf(file_path, sizeof file_path, "%s/%s", path, entry->d_name);
        if (entry->d_type != DT_REG || (file = fopen(file_path, "r")) == NULL)
            continue;
        LLVMFuzzerTestOneInput((const uint8_t *)input, fread(input, 1, FUZZ_INPUT_LIMIT, file));
        fclose(file);
        count++;
    }
    closedir(directory);
    return count;
}

static void write_seeds(const char *directory)
{
    for (size_t i = 0; i < fuzz_seed_count; i++) {
        char path[4096];
        FILE *file;

        snprintf(path, sizeof path, "%s/seed-%zu", directory, i);
        file = fopen(path, "w");
        require(file != NULL &&
                    fwrite(fuzz_seeds[i], 1, strlen(fuzz_seeds[i]), file) == strlen(fuzz_seeds[i]),
                "a seed can be written");
        fclose(file);
    }
    for (size_t i = 0; i < COUNT_OF(fuzz_words); i++) {
        putchar('"');
        for (const char *byte = fuzz_words[i]; *byte != '\0'; byte++)
            printf("\\x%02x", (unsigned char)*byte);
        puts(fuzz_words[i][0] == '\0' ? "\\x00\"" : "\"");
    }
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : fuzz_rounds, inputs;
    char *input;

    if (argc > 2 && strcmp(argv[1], "--seeds") == 0) {
        write_seeds(argv[2]);
        return 0;
    }
    input = malloc(FUZZ_INPUT_LIMIT);
    require(input != NULL, "there is memory");
    for (long round = 0; round < rounds; round++) {
        const char *seed = fuzz_seeds[(size_t)round % fuzz_seed_count];
        size_t size = strlen(seed);

        memcpy(input, seed, size);
        for (size_t mutations = (size_t)round < fuzz_seed_count ? 0 : 1 + random_below(6);
             mutations > 0; mutations--)
            size = mutate(input, size);
        LLVMFuzzerTestOneInput((const uint8_t *)input, size);
    }
    inputs = try_corpus(argv[0], input);
    free(input);
    printf("1..1\nok 1 - %ld mutations and %ld inputs of earlier runs: %s\n", rounds, inputs,
           fuzz_subject);
    return 0;
}

#endif

#endif
