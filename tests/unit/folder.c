// folder.c: a folder for the files that a test makes. See unit.h.
#include "core/base/file.h"
#include "tests/unit/unit.h"

static Arena arena; // as long as the folder

char *unit_folder;

void unit_folder_make(void) {
    Diag d = {.arena = &arena};
    unit_folder = dir_temp(&arena, &d);
    ck_assert_msg(unit_folder != NULL, "%s", diag_first(&d));
}

void unit_folder_drop(void) {
    Diag d = {.arena = &arena};
    ck_assert_msg(dir_remove(unit_folder, &d), "%s", diag_first(&d));
    arena_free(&arena);
    unit_folder = NULL;
}

const char *unit_file(const char *name, const void *bytes, size_t n) {
    Diag d = {.arena = &arena};
    const char *path = path_join(&arena, unit_folder, name);
    ck_assert_msg(file_write(path, bytes, n, &d), "%s", diag_first(&d));
    return path;
}

uint32_t unit_crc(const char *bytes, size_t n) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < n; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}
