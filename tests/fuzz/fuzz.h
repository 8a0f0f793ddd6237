/* fuzz.h - what the fuzz targets share. libFuzzer calls LLVMFuzzerTestOneInput; without it main.c
 * does. */
#ifndef SW_FUZZ_H
#define SW_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A broken promise is a crash, so that the fuzzer keeps the input. */
#define MUST(condition)                                                                 \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                        \
		}                                                                       \
	} while (0)

#endif
