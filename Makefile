# fxray: GNU make, not recursive, everything goes to build/.
#
#   make            build build/fxray
#   make run        install what is missing, build, open the explorer on a sample
#   make check      install what is missing, build, run unit tests and goldens (UPDATE=1 rewrites goldens)
#   make bench      ratios of speed, measured here
#   make browser    a saved page in headless Chromium, where that is installed
#   make layers     who may include what
#   make lint       clang-tidy, cppcheck, format, function and file lengths
#   make asan       all tests under AddressSanitizer and UBSan
#   make fuzz       the parsers under random bytes
#   make random     random graphs, eager against every rung (RANDOM_ARGS="-t 600 -s 1")
#   make e2e        real keys in a real terminal (tmux)
#   make keys       random keys under the sanitizers; KEYS_ARGS="-t 600 --seed 7"
#   make manual     rewrites the tables in MANUAL.md
#   make install    program, manual page, completion, samples; PREFIX=/usr/local DESTDIR=
#   make uninstall  takes them away again
#   make clean      removes build/
#   make help       this text
#
# Variables: V=1 shows commands, B=dir builds there, PYTHON=no builds without libpython,
# CFLAGS and LDFLAGS are yours.

.DEFAULT_GOAL := all

B ?= build
PREFIX ?= /usr/local
CC ?= cc
ifeq ($(origin CC),default)
CC := gcc
endif
CFLAGS ?= -O2 -g
WARN := -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wundef -Wvla -Wformat=2 -Wwrite-strings \
	-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wpointer-arith -fno-common
FX_CFLAGS := $(WARN) -D_GNU_SOURCE -I. -ffp-contract=off -fno-math-errno -fno-trapping-math -fvisibility=hidden -MMD -MP
Q := $(if $(V),,@)

PKGS := libcjson libzip libgvc
PKGS_APP := ncursesw libedit
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) $(PKGS_APP) 2>/dev/null)
LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -ltcc -ldl -lm -lpthread
LIBS_APP := $(shell pkg-config --libs $(PKGS_APP) 2>/dev/null)

CORE := $(wildcard core/*.c core/*/*.c)
VIEWS := $(wildcard views/*.c)
APP_MAIN := app/main.c app/loop.c app/term.c app/repl.c
APP := $(filter-out $(APP_MAIN),$(wildcard app/*.c))
TESTS := $(wildcard tests/unit/*.c tests/unit/*/*.c)
FUZZ := $(wildcard tests/fuzz/*.c)
RANDOM := $(wildcard tests/random/*.c)
MONKEY := $(wildcard tests/monkey/*.c)
BENCH := $(wildcard tests/bench/*.c)
obj = $(patsubst %.c,$(B)/%.o,$(1))

# It holds these as text.
$(B)/core/eager/special_source.o: $(addprefix core/eager/,bessel.c special.c orthogonal.inc special_names.c)

# Reference kernels and everything numeric want the vectoriser; the last -O counts. Where the machine
# has vectors of 512 bits, they are used whole.
WIDE := $(if $(filter x86_64,$(shell uname -m)),-mprefer-vector-width=512)
$(B)/core/eager/%.o: LAST_CFLAGS = $(if $(filter -O2,$(CFLAGS)),-O3) $(WIDE)

.PHONY: print-flags all run setup check unit unit-parts goldens e2e keys bench browser layers lint asan fuzz random manual install \
	uninstall clean help
all: $(B)/fxray

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC    $<")
	$(Q)$(CC) $(FX_CFLAGS) $(PKG_CFLAGS) $(CFLAGS) $(LAST_CFLAGS) -c $< -o $@

$(B)/libcore.a: $(call obj,$(CORE))
	$(Q)rm -f $@ && ar rcs $@ $^
$(B)/libviews.a: $(call obj,$(VIEWS))
	$(Q)rm -f $@ && ar rcs $@ $^

# All of app/ but its main program, the terminal and the line editor: what tests of the screen link.
$(B)/libapp.a: $(call obj,$(APP))
	$(Q)rm -f $@ && ar rcs $@ $^

$(B)/fxray: $(call obj,$(wildcard $(APP_MAIN))) $(B)/libapp.a $(B)/libviews.a $(B)/libcore.a
	$(if $(V),,@echo "  LD    $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ -rdynamic $(LIBS_APP) $(LIBS) -o $@

# Unit tests link without curses: core, views and the screen cannot depend on a terminal.
$(B)/unit: $(call obj,$(TESTS)) $(B)/libapp.a $(B)/libviews.a $(B)/libcore.a
	$(if $(V),,@echo "  LD    $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ -rdynamic $(LIBS) $(shell pkg-config --libs check 2>/dev/null) -o $@

setup:
	$(Q)scripts/setup

run: setup
	$(Q)$(MAKE) --no-print-directory all
	$(Q)$(B)/fxray samples/block.pt2

check: setup
	$(Q)$(MAKE) --no-print-directory all $(B)/unit
	$(Q)$(MAKE) --no-print-directory unit-parts
	$(Q)tests/run-goldens $(B)/fxray
	$(Q)scripts/dev/manual --check $(B)/fxray

unit: $(B)/unit
	$(Q)$(B)/unit
# In small processes, two at a time: a test that forks copies what those before it left.
unit-parts: $(B)/unit
	$(Q)seq 20 | xargs -P 2 -I{} $(B)/unit {}/20
goldens: all
	$(Q)tests/run-goldens $(B)/fxray

# Real keys in a real terminal: tests/e2e/run BINARY [WORD…].
e2e: all
	$(Q)tests/e2e/run $(B)/fxray

# Random keys under the sanitizers: KEYS_ARGS="-t 600 --seed 7", see tests/monkey/main.c.
$(B)/keys: $(call obj,$(MONKEY)) $(B)/libapp.a $(B)/libviews.a $(B)/libcore.a
	$(if $(V),,@echo "  LD    $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ -rdynamic $(LIBS) -o $@
keys:
	$(Q)+$(SAN) build/asan/keys
	$(Q)$(SAN_ENV) build/asan/keys $(KEYS_ARGS)

# One program a file of tests/bench.
$(B)/bench/%: $(B)/tests/bench/%.o $(B)/libapp.a $(B)/libviews.a $(B)/libcore.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ -rdynamic $(LIBS) -o $@
bench: $(patsubst tests/bench/%.c,$(B)/bench/%,$(BENCH))
	$(Q)scripts/dev/bench $(B)

browser: all
	$(Q)tests/browser/run $(B)/fxray

layers:
	$(Q)scripts/dev/layers
	$(Q)scripts/dev/layers --self-test

lint:
	$(Q)+scripts/dev/lint
# What scripts/dev/lint hands to clang-tidy.
print-flags:
	@echo $(filter-out -MMD -MP,$(FX_CFLAGS)) $(PKG_CFLAGS)

# Arenas of 64-byte chunks, poison behind what was handed out. detect_leaks is off: arenas live as long
# as the program and libtcc keeps small static tables.
SAN := $(MAKE) --no-print-directory B=build/asan \
	CFLAGS="-O1 -g -fsanitize=address,undefined -fno-omit-frame-pointer -Werror -DFX_HOSTILE"
SAN_ENV := ASAN_OPTIONS=detect_leaks=0:hard_rss_limit_mb=12000:quarantine_size_mb=64 \
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 CK_FORK=no
asan:
	$(Q)+$(SAN_ENV) $(SAN) -k unit-parts goldens

$(B)/fuzz: $(call obj,$(FUZZ)) $(B)/libviews.a $(B)/libcore.a
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ -rdynamic $(LIBS) -o $@
# FUZZ_ARGS="-t 60 json": see tests/fuzz/main.c.
fuzz:
	$(Q)+$(SAN) build/asan/fuzz
	$(Q)$(SAN_ENV) build/asan/fuzz $(FUZZ_ARGS)

# RANDOM_ARGS: see tests/random/main.c.
$(B)/random: $(call obj,$(RANDOM)) $(B)/libcore.a
	$(if $(V),,@echo "  LD    $@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $^ -rdynamic $(LIBS) -o $@
random: $(B)/random
	$(Q)$(B)/random $(RANDOM_ARGS)

manual: all
	$(Q)scripts/dev/manual $(B)/fxray

$(B)/fxray.1: $(B)/fxray
	$(Q)$(B)/fxray -c 'table man' >$@

SHARE := $(DESTDIR)$(PREFIX)/share
install: all $(B)/fxray.1
	install -D -m 755 $(B)/fxray $(DESTDIR)$(PREFIX)/bin/fxray
	install -D -m 644 $(B)/fxray.1 $(SHARE)/man/man1/fxray.1
	install -D -m 644 scripts/dist/fxray.bash $(SHARE)/bash-completion/completions/fxray
	install -D -m 644 scripts/dist/_fxray $(SHARE)/zsh/site-functions/_fxray
	install -D -m 644 -t $(SHARE)/doc/fxray README.md MANUAL.md LICENSE
	mkdir -p $(SHARE)/fxray
	cp -r samples $(SHARE)/fxray/
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/fxray $(SHARE)/man/man1/fxray.1
	rm -f $(SHARE)/bash-completion/completions/fxray $(SHARE)/zsh/site-functions/_fxray
	rm -rf $(SHARE)/doc/fxray $(SHARE)/fxray

clean:
	rm -rf build

help:
	@sed -n '/^#/!q;s/^# \{0,1\}//p' Makefile

-include $(patsubst %.o,%.d,$(call obj,$(CORE) $(VIEWS) $(APP) $(APP_MAIN) $(TESTS) $(FUZZ) $(RANDOM) $(MONKEY) $(BENCH)))
