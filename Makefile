# fork-vs-thread: `make help` lists the targets.
#
# A model is one NAME_server.c in this folder. It is found by its name, here and everywhere else.

ifeq ($(origin CC),default)
CC      := gcc
endif
# Each kind of build has its own folder, so that it uses no objects of another kind.
comma   := ,
BUILD   ?= build$(if $(SOFT),/soft)$(if $(CRASH),/crash)$(if $(ESCAPE),/escape)$(if $(SANITIZE),/$(subst $(comma),-,$(SANITIZE)))$(if $(DEBUG),/debug)
# The file VERSION holds the version that the servers and dcollect.sh print.
VERSION := $(file <VERSION)
MODELS  := $(patsubst %.c,%,$(sort $(wildcard *_server.c)))
COMMON  := $(sort $(wildcard common/*.c common/*/*.c))
UNITS   := $(patsubst tests/%.c,$(BUILD)/%,$(sort $(wildcard tests/unit_*.c tests/fuzz_*.c)))
SOURCES := $(MODELS:=.c) $(COMMON) $(wildcard collect/clients/*.c) $(wildcard tests/*.c)
HEADERS := $(wildcard common/*.h common/*/*.h collect/clients/*.h)
SCRIPTS := $(wildcard *.sh collect/*.sh) collect/completion.bash tests/run .ci/run

WARNINGS = -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla -Wstrict-prototypes
HARDEN   = -fstack-protector-strong -fstack-clash-protection -fcf-protection -D_FORTIFY_SOURCE=2 -fno-plt
RELRO    = -Wl,-z,relro,-z,now
CPPFLAGS = -D_GNU_SOURCE -DPROJECT_VERSION='"$(VERSION)"' -I.
CFLAGS   = -std=c17 -O2 -g $(WARNINGS)

# The builds that inject faults differ in these files alone; all other objects are those of the normal build.
INJECTED = $(if $(CRASH),common/files/files.c) $(if $(ESCAPE),common/connection.c common/sandbox/sandbox.c common/base/uring.c \
            common/net/key_process.c)
SHARED   = $(if $(CRASH)$(ESCAPE),build,$(BUILD))

# The servers are static, since a fork copies the memory map: that of a dynamic program makes it cost 30% more.
# SANITIZE=address,undefined and DEBUG=1 need dynamic programs, which go to $(BUILD).
ifdef SANITIZE
CFLAGS  += -O1 -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all
LDFLAGS += -fsanitize=$(SANITIZE)
OUTPUT   = $(BUILD)/
else ifdef DEBUG
CPPFLAGS += -DQUESTION_SECONDS=120
CFLAGS  += -O1 -fno-omit-frame-pointer
OUTPUT   = $(BUILD)/
else
# CRASH=1: servers with a fault that the study `crash` needs, in $(BUILD).
ifdef CRASH
CPPFLAGS += -DCRASH_PATH='"/crash"'
OUTPUT   = $(BUILD)/
else ifdef ESCAPE
# ESCAPE=1: servers in which a request tries to break out of the sandbox, for tests/sandbox_escape.t, in $(BUILD).
CPPFLAGS += -DESCAPE_PATH='"/escape/"'
LDFLAGS += -Wl,--wrap=mmap
OUTPUT   = $(BUILD)/
else ifdef SOFT
# SOFT=1: servers that are not hardened, in $(BUILD): tests/trust measures what the hardening costs.
HARDEN   =
RELRO    = -Wl,-z,norelro
OUTPUT   = $(BUILD)/
else
OUTPUT   =
endif
CFLAGS  += $(HARDEN) -fPIE -fno-merge-constants
LDFLAGS += -static-pie $(RELRO)
endif
CFLAGS  += -pthread
LDFLAGS += -pthread

# The code that each request runs is linked first, so that it lies within 64 KiB: a page fault of a
# new process maps whatever the page cache holds of the 64 KiB around it. A child of fork had 16
# faults (12 or 13 where the program had just been written, and so lay in larger pieces), and now
# has 12 or 13; after a boot a request took 0.88 times the CPU time.
OFTEN   := $(patsubst %,common/%.c,server sandbox/sandbox connection exchange seats scoreboard net/transport net/transport_plain \
             net/address_limit http/request http/fields http/path http/response http/conditional http/date http/mime_type \
             files/files base/text base/open_beneath base/clock base/clone_child net/listener acceptor services signals \
             workers/process_crew)

SERVERS = $(addprefix $(OUTPUT),$(MODELS))
OBJECTS = $(foreach file,$(OFTEN) $(filter-out $(OFTEN),$(COMMON)) $(if $(ESCAPE),tests/sandbox_escape.c),\
          $(if $(filter $(INJECTED) tests/sandbox_escape.c,$(file)),$(BUILD),$(SHARED))/$(file:.c=.o))

# All servers contain OpenSSL, but a server without TLS must not pay for it: a fork costs time for each page that it copies,
# and a new process for each window of 64 KiB that it touches. So, in the static servers, the tables of OpenSSL have their own
# sections, whose memory common/net/tls.c frees; OpenSSL is linked last; and our constants begin with
# a window. The data begin at an offset that puts the three locks of the C library, which each fork
# takes, on one page.
ifeq ($(SANITIZE)$(DEBUG),)
FIRST   := $(SHARED)/first.o
OPENSSL := $(SHARED)/openssl/libssl.a $(SHARED)/openssl/libcrypto.a
# The linker warns of name lookups by OpenSSL in a static program; the servers ask for none.
$(SERVERS): LDFLAGS += -Wl,--no-warnings
else
OPENSSL := -lssl -lcrypto
endif

# Each step prints one line; V=1 shows the commands, and -s nothing.
say   = $(if $(V)$(findstring s,$(firstword -$(MAKEFLAGS))),,@printf '  %-8s%s\n' $(1) '$(2)')
quiet = $(if $(V),,@)

all: $(SERVERS) $(if $(OUTPUT),,collect)

# Text and constants share one mapping, and so constants are executable: fork and exit cost time for each mapping. The two that
# -z separate-code adds take 2 us of a fork and its exit. With them a request of fork_server took 2.6% more CPU time (0.7 to 4.4%
# in 150 interleaved pairs of runs beside other work), where all hardening may cost 2%. The program
# is a copy of the linker's output: a file that was written in one go lies in larger pieces in the
# page cache, which makes a fork 5 to 9% cheaper.
$(SERVERS): LDFLAGS += -Wl,-z,noseparate-code,-z,max-page-size=65536,-z,pack-relative-relocs
$(SERVERS): $(OUTPUT)%: $(FIRST) $(SHARED)/%.o $(OBJECTS) $(filter %.a,$(OPENSSL))
	$(call say,LINK,$@)
	$(quiet)$(CC) $(CFLAGS) $(LDFLAGS) -o $@.linked $(filter %.o,$^) $(if $(FIRST),-lc) $(OPENSSL)
	@cp $@.linked $@.copy && mv $@.copy $@ && rm $@.linked

$(SHARED)/first.o:
	@mkdir -p $(@D)
	$(call say,AS,$@)
	$(quiet)printf '%s\n' '.section .rodata,"a",@progbits' '.balign 65536' '.section .data,"aw",@progbits' '.balign 4096' '.skip 256' \
	    '.section .note.GNU-stack,"",@progbits' | \
	    $(CC) -x assembler -c -o $@ -

# The headers and the static libraries of OpenSSL come in one package.
$(SHARED)/openssl.found:
	@mkdir -p $(@D)
	@if ! printf '#include <openssl/ssl.h>\n' | $(CC) $(CPPFLAGS) -x c -E - >/dev/null 2>&1 || \
	    ! [ -e "$$($(CC) -print-file-name=libssl.a)" ]; then \
	    echo 'make: OpenSSL is missing: apt-get install libssl-dev (its headers and libssl.a)' >&2; exit 1; fi
	@touch $@

$(SHARED)/openssl/%.a: | $(SHARED)/openssl.found
	@mkdir -p $(@D)
	$(call say,OBJCOPY,$@)
	$(quiet)objcopy --rename-section .data.rel.ro=tls_tables --rename-section .data.rel.ro.local=tls_tables \
	    --rename-section .data=tls_variables --rename-section .data.rel=tls_variables \
	    --rename-section .data.rel.local=tls_variables $$($(CC) -print-file-name=$*.a) $@

define compile
@mkdir -p $(@D)
$(call say,CC,$<)
$(quiet)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
endef
$(BUILD)/%.o: %.c VERSION | $(SHARED)/openssl.found
	$(compile)
ifneq ($(BUILD),$(SHARED))
$(SHARED)/%.o: %.c VERSION | $(SHARED)/openssl.found
	$(compile)
endif

# The programs of the study: the bare reference servers, and those that start, load and watch a server.
COLLECT := $(patsubst %.c,%,$(sort $(wildcard collect/clients/*.c)))
collect: $(COLLECT)
$(COLLECT): collect/clients/%: collect/clients/%.c $(wildcard collect/clients/*.h) | $(SHARED)/openssl.found
	$(call say,CC,$@)
	$(quiet)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< -lm $(LDLIBS)
collect/clients/open_loop collect/clients/witness: LDFLAGS += -Wl,--no-warnings
collect/clients/open_loop collect/clients/witness: LDLIBS = -lssl -lcrypto

# Servers that one request makes crash, for the study `crash`: see common/files/crash_injection.h.
crash: $(FIRST) $(OBJECTS) $(MODELS:%=$(SHARED)/%.o) $(filter %.a,$(OPENSSL))
	@mkdir -p build
	@flock build/crash.lock $(MAKE) --no-print-directory CRASH=1 # two tests may want it at the same time

# Servers that try to break out of their sandbox, for tests/sandbox_escape.t: see common/escape_injection.h.
escape: $(FIRST) $(OBJECTS) $(MODELS:%=$(SHARED)/%.o) $(filter %.a,$(OPENSSL))
	@mkdir -p build
	@flock build/escape.lock $(MAKE) --no-print-directory ESCAPE=1

# Unit tests are dynamic, since cmocka is a dynamic library.
units: $(UNITS)
$(UNITS): $(BUILD)/%: $(BUILD)/tests/%.o $(OBJECTS)
	$(call say,LINK,$@)
	$(quiet)$(CC) $(CFLAGS) $(filter-out -static-pie,$(LDFLAGS)) -o $@ $^ -lssl -lcrypto -lcmocka -lm

# make fuzz TIME=60: runs each fuzzer for 60 seconds with libFuzzer (clang-14, libclang-rt-14-dev),
# or, with ENGINE=afl, with AFL++ (afl++). It starts from its seeds and from tests/corpora/NAME.
# FUZZERS=request runs that one alone; tests/fuzz has more options.
TIME      = 60
ENGINE    = libfuzzer
CLANG     = $(if $(filter afl,$(ENGINE)),AFL_QUIET=1 afl-clang-fast,clang-14)
FUZZERS   = $(patsubst tests/fuzz_%.c,%,$(sort $(wildcard tests/fuzz_*.c)))
FUZZBUILD = $(BUILD)/$(if $(filter afl,$(ENGINE)),afl,fuzz)
FUZZED    = $(COMMON:%.c=$(FUZZBUILD)/%.o)
FUZZING   = -std=c17 -g -O1 -fno-omit-frame-pointer -DFUZZER
.SECONDARY: $(FUZZED)
fuzz: $(FUZZERS:%=$(FUZZBUILD)/%) $(FUZZERS:%=$(BUILD)/fuzz_%)
	tests/fuzz --build $(BUILD) --engine $(ENGINE) --time $(TIME) $(FUZZERS)
$(FUZZBUILD)/%: tests/fuzz_%.c $(wildcard tests/*.h) $(FUZZED)
	$(CLANG) $(CPPFLAGS) $(FUZZING) -fsanitize=fuzzer,address,undefined -o $@ $< $(FUZZED) -lssl -lcrypto -pthread
$(FUZZBUILD)/common/%.o: common/%.c
	@mkdir -p $(@D)
	$(CLANG) $(CPPFLAGS) $(FUZZING) -fsanitize=fuzzer-no-link,address,undefined -MMD -MP -c -o $@ $<

check:
	tests/run

# A certificate that no browser trusts, to try HTTPS with. An existing one is not replaced.
CERTIFICATE = certificate
certificate:
	collect/certificate.sh $(CERTIFICATE) $(RSA)

bench: all
	/usr/bin/python3 -m collect bench $(if $(BEFORE),--before '$(BEFORE)')

# Manual pages, from what the servers and dcollect.sh say of their options.
man: all
	tools/man_pages.py

# The lists of files in docs/files.md, from the first sentence of each file, and of folders in ARCHITECTURE.md.
map:
	tools/file_map.py

# The files of `dcollect` lie in one folder, laid out as the source tree is. The programs in bindir are links into it.
prefix     = /usr/local
bindir     = $(prefix)/bin
libdir     = $(prefix)/lib
mandir     = $(prefix)/share/man
compdir    = $(prefix)/share/bash-completion/completions
docdir     = $(prefix)/share/doc/fork-vs-thread
INSTALLED := $(DESTDIR)$(libdir)/fork-vs-thread
# The published runs tell how long a study takes.
STUDY     := VERSION dcollect.sh dcollect.p collect studies data $(wildcard $(addprefix report/*/*/,runs.tsv study.toml))
PAGES     := $(notdir $(wildcard man/*.1))

install: all crash
	install -d $(DESTDIR)$(bindir) $(DESTDIR)$(mandir)/man1 $(DESTDIR)$(compdir) $(DESTDIR)$(docdir)/docs $(INSTALLED)/build/crash
	install -s -m 755 $(MODELS) $(INSTALLED)
	install -s -m 755 $(MODELS:%=build/crash/%) $(INSTALLED)/build/crash
	tar -c --mode=u+rwX,go+rX,go-w --exclude='*.[ch]' --exclude=__pycache__ $(STUDY) | \
	    tar -x --no-same-owner -C $(INSTALLED)
	for program in $(MODELS); do ln -sfr $(INSTALLED)/$$program $(DESTDIR)$(bindir)/$$program || exit 1; done
	ln -sfr $(INSTALLED)/dcollect.sh $(DESTDIR)$(bindir)/dcollect
	install -m 644 man/*.1 $(DESTDIR)$(mandir)/man1
	/usr/bin/python3 -m collect completion >$(DESTDIR)$(compdir)/dcollect
	for program in $(MODELS); do ln -sf dcollect $(DESTDIR)$(compdir)/$$program || exit 1; done
	install -m 644 LICENSE $(DESTDIR)$(docdir)
	@# What is not installed is named there, and not linked.
	for page in README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md docs/*.md; do \
	    sed -Ez 's,!?\[([^][]*)\]\((\.\./)?(report|collect|Dockerfile)[^)]*\),\1,g' $$page >build/installed.md && \
	    install -m 644 build/installed.md $(DESTDIR)$(docdir)/$$page || exit 1; \
	done

uninstall:
	rm -rf $(INSTALLED) $(DESTDIR)$(docdir)
	rm -f $(MODELS:%=$(DESTDIR)$(bindir)/%) $(DESTDIR)$(bindir)/dcollect $(PAGES:%=$(DESTDIR)$(mandir)/man1/%)
	rm -f $(DESTDIR)$(compdir)/dcollect $(MODELS:%=$(DESTDIR)$(compdir)/%)

# NODES limits how far clang's analyzer follows a function. Its own limit takes four times as long:
# make lint NODES=225000.
NODES := 20000

lint: lint-c lint-scripts

lint-c:
	clang-format --dry-run --Werror $(SOURCES) $(HEADERS)
	@# The analyzer applies what it knows of one file's names to the next: each file has a process.
	printf '%s\n' $(MODELS:=.c) $(COMMON) $(wildcard collect/clients/*.c) | xargs -P "$$(nproc)" -I FILE \
	    clang-tidy --quiet FILE -- $(CPPFLAGS) -std=c17 -Xclang -analyzer-config -Xclang max-nodes=$(NODES) 2>/dev/null
	cppcheck -j "$$(nproc)" --quiet --std=c11 --error-exitcode=1 --inline-suppr --enable=warning,performance,portability \
	    --suppress=missingIncludeSystem $(CPPFLAGS) $(MODELS:=.c) $(COMMON) $(wildcard collect/clients/*.c)

lint-scripts:
	shellcheck $(SCRIPTS)
	MYPYPATH=tests /usr/bin/python3 -m mypy --no-incremental -p collect -p trials
	@if command -v ruff >/dev/null; then \
	    ruff check collect tools tests/study tests/trials && ruff format --check collect tests/trials; fi

clean:
	rm -rf build $(MODELS) $(COLLECT)
	find collect tests -name __pycache__ -prune -exec rm -r {} +

help:
	@echo 'make               build each model (./NAME_server) and the programs of the study; V=1 shows the commands'
	@echo 'make check         run the tests, as tests/run does'
	@echo 'make certificate   make a key and a certificate for --tls (P-256; RSA=2048 for an RSA key)'
	@echo 'make fuzz TIME=60  run libFuzzer (ENGINE=afl: AFL++) on all that reads bytes of others, TIME seconds each'
	@echo 'make bench         measure CPU per request of each model, as ratios to a bare server and to peers;'
	@echo '                   BEFORE=DIR: as ratios to the servers of another source tree, which has been built'
	@echo 'make crash         build servers that one request makes crash in build/crash, for the study `crash`'
	@echo 'make escape        build servers that try to break out of their sandbox in build/escape, for tests/sandbox_escape.t'
	@echo 'make SOFT=1        build servers that are not hardened in build/soft, for tests/trust'
	@echo 'make lint          run clang-format, clang-tidy, cppcheck, shellcheck, mypy, and ruff where it is'
	@echo 'make install       install servers, dcollect and manual pages below DESTDIR and prefix=/usr/local'
	@echo 'make uninstall     remove what make install has installed'
	@echo 'make man           make the manual pages in man/ from what --describe and --help print'
	@echo 'make map           make the lists of files in docs/files.md'
	@echo 'make clean         remove what was built'
	@echo
	@echo 'Models:'
	@for model in $(MODELS); do printf '\n  %s\n' $$model; \
	    if [ -x $$model ]; then ./$$model --describe | python3 -c "$$MODEL_HELP"; fi; done

# Prints what a model says about itself; one that is not built yet says nothing.
define MODEL_HELP
import json, sys, textwrap
model = json.load(sys.stdin)
advice = model["advice"]
for text in (model["summary"] + ".", f"Take it {advice['take']}. Do not take it {advice['avoid']}."):
    print(textwrap.indent(textwrap.fill(text[0].upper() + text[1:], 90), "    "))
endef
export MODEL_HELP

.PHONY: all units fuzz check certificate bench man map install uninstall lint lint-c lint-scripts clean help collect crash escape
.DELETE_ON_ERROR:
-include $(wildcard $(FUZZBUILD)/common/*.d $(FUZZBUILD)/common/*/*.d) $(foreach folder,$(sort $(BUILD) $(SHARED)),$(wildcard \
    $(folder)/*.d $(folder)/common/*.d $(folder)/common/*/*.d $(folder)/tests/*.d))
