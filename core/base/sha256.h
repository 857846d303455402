// sha256.h: SHA-256 (FIPS 180-4): PyTorch names symbols and caches by it.
#ifndef CORE_BASE_SHA256_H
#define CORE_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

void sha256(const void *bytes, size_t len, uint8_t digest[32]);

#endif
