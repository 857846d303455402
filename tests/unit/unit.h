// unit.h: the suites of the unit tests. A file tests/unit/FOLDER_TOPIC.c defines one function
// `Suite *suite_FOLDER_TOPIC(void)` and has one row in suites.def.
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <check.h>
#include <stddef.h>
#include <stdint.h>

#define SUITE(name) Suite *suite_##name(void);
#include "tests/unit/suites.def"
#undef SUITE

// Under the sanitizers, which look for faults of the code and not of the numbers, a long test takes
// one of `n` of its cases.
#ifdef FX_HOSTILE
#define UNIT_EVERY(n) (n)
#else
#define UNIT_EVERY(n) 1
#endif

// A suite with one case made of `n` test functions.
Suite *unit_suite(const char *name, const TTest *const tests[], int n);

// folder.c: a folder for the files that tests make; make and drop are a fixture, checked or not.
extern char *unit_folder;
void unit_folder_make(void);
void unit_folder_drop(void);
// Writes a file of that name; its path, which lives as long as the folder.
const char *unit_file(const char *name, const void *bytes, size_t n);
// The checksum that a zip entry carries.
uint32_t unit_crc(const char *bytes, size_t n);

#endif
