# fork-vs-thread: `make help` says what there is to make.
#
# A model is one NAME_server.c in this folder: it is found by its name, here and everywhere else.

ifeq ($(origin CC),default)
CC      := gcc
endif
# Each way of building has its own folder, so that none finds objects of another.
comma   := ,
BUILD   ?= build$(if $(CRASH),/crash)$(if $(SANITIZE),/$(subst $(comma),-,$(SANITIZE)))$(if $(DEBUG),/debug)
MODELS  := $(patsubst %.c,%,$(sort $(wildcard *_server.c)))
COMMON  := $(sort $(wildcard common/*.c))
UNITS   := $(patsubst tests/%.c,$(BUILD)/%,$(sort $(wildcard tests/unit_*.c tests/fuzz_*.c)))
SOURCES := $(MODELS:=.c) $(COMMON) $(wildcard collect/*.c) $(wildcard tests/*.c)
HEADERS := $(wildcard common/*.h collect/*.h)
SCRIPTS := $(wildcard *.sh collect/*.sh) tests/run tests/start .ci/run

WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla -Wstrict-prototypes
HARDEN   = -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fno-plt
CPPFLAGS = -D_GNU_SOURCE -I.
CFLAGS   = -std=c17 -O2 -g $(WARNINGS)

# The servers are static: a small map is what makes fork cheap (a dynamic one costs 30% more).
# SANITIZE=address,undefined and DEBUG=1 need a dynamic one, and put it into $(BUILD) instead.
ifdef SANITIZE
CFLAGS  += -O1 -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all
LDFLAGS += -fsanitize=$(SANITIZE)
OUTPUT   = $(BUILD)/
else ifdef DEBUG
CFLAGS  += -O1 -fno-omit-frame-pointer
OUTPUT   = $(BUILD)/
else
# CRASH=1: servers with a fault that the study `crash` needs, in a folder of their own; else as usual.
ifdef CRASH
CPPFLAGS += -DCRASH_PATH='"/crash"'
OUTPUT   = $(BUILD)/
else
OUTPUT   =
endif
CFLAGS  += $(HARDEN) -fPIE
LDFLAGS += -static-pie
endif
CFLAGS  += -pthread
LDFLAGS += -pthread

SERVERS = $(addprefix $(OUTPUT),$(MODELS))
OBJECTS = $(COMMON:%.c=$(BUILD)/%.o)

all: $(SERVERS) $(if $(OUTPUT),,collect)

# Text and constants in one mapping: each mapping less makes a fork and an exit cheaper.
$(SERVERS): LDFLAGS += -Wl,-z,noseparate-code,-z,max-page-size=65536,-z,pack-relative-relocs
$(SERVERS): $(OUTPUT)%: $(BUILD)/%.o $(OBJECTS)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# The programs of the study: the bare reference, and what starts and watches a server.
COLLECT := $(patsubst %.c,%,$(sort $(wildcard collect/*.c)))
collect: $(COLLECT)
$(COLLECT): collect/%: collect/%.c $(wildcard collect/*.h)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< -lm

# Servers that die of one request, for the study `crash`: see common/fault.h.
crash:
	@$(MAKE) --no-print-directory CRASH=1

# Unit tests are dynamic, since cmocka is.
units: $(UNITS)
$(UNITS): $(BUILD)/%: $(BUILD)/tests/%.o $(OBJECTS)
	$(CC) $(CFLAGS) $(filter-out -static-pie,$(LDFLAGS)) -o $@ $^ -lcmocka

check:
	tests/run

bench: all
	collect/bench.sh

lint:
	clang-format --dry-run --Werror $(SOURCES) $(HEADERS)
	clang-tidy --quiet $(MODELS:=.c) $(COMMON) $(wildcard collect/*.c) \
	    -- $(CPPFLAGS) -std=c17 2>/dev/null
	cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr --enable=warning,performance,portability \
	    --suppress=missingIncludeSystem $(CPPFLAGS) $(MODELS:=.c) $(COMMON) $(wildcard collect/*.c)
	shellcheck $(SCRIPTS)

clean:
	rm -rf build $(MODELS) $(COLLECT)

help:
	@echo 'make            build every model (./NAME_server) and the programs of the study'
	@echo 'make check      run all tests, as tests/run does'
	@echo 'make bench      CPU per request of each model, as ratios to a bare server and to peers'
	@echo 'make crash      servers that die of one request, in build/crash: for the study `crash` alone'
	@echo 'make lint       clang-format, clang-tidy, cppcheck, shellcheck'
	@echo 'make clean      remove what was built'
	@echo
	@echo 'Models:'
	@for model in $(MODELS); do printf '  %-18s %s\n' $$model \
	    "$$(sed -n '1s|^/\* *||; 1s| *\*/$$||; 1p' $$model.c)"; done

.PHONY: all units check bench lint clean help collect crash
.DELETE_ON_ERROR:
-include $(wildcard $(BUILD)/*.d $(BUILD)/common/*.d $(BUILD)/tests/*.d)
