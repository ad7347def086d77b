/* Built kernels kept on disk, so that a second start need not compile.
 *
 * An entry is a file of its own: what the backend can load again (a CUBIN, an OpenCL program
 * binary), with the text of its key. The key names everything that decides what a build makes:
 * source, entry, defines, device, driver, toolchain, the backend's fixed options and this program's
 * version. A file is only used when it and the folder belong to this user, nobody else may write
 * to them, and magic, key, length and hash are right; a bad one is deleted and built anew. Files
 * appear whole (written elsewhere, then renamed). A cache that cannot be used costs time, never a
 * build: it says what is wrong with it (lap_build_cache_problem) and the program does without.
 *
 * One thread at a time; several processes may share a folder.
 */
#ifndef LAP_DEVICE_BUILD_CACHE_H
#define LAP_DEVICE_BUILD_CACHE_H

#include "base/text.h"
#include "device/device.h"

#define LAP_BUILD_CACHE_BYTES (512ull << 20) /* of all entries, unless told otherwise */

/* folder NULL: $XDG_CACHE_HOME/warmlap, else $HOME/.cache/warmlap, made when missing (mode 0700).
 * Fails only for lack of memory: a folder that cannot be used is a problem of the cache.
 * max_bytes 0: LAP_BUILD_CACHE_BYTES. */
lap_status lap_build_cache_open(const char *folder, uint64_t max_bytes, lap_build_cache **out,
                                lap_error *err);
/* If something was stored, deletes the entries longest unused until max_bytes are kept. NULL is
 * allowed. Devices that use the cache must be closed before. */
void lap_build_cache_close(lap_build_cache *cache);
/* "" while all is well; else why kernels are not kept, or not found: one sentence for people. */
const char *lap_build_cache_problem(const lap_build_cache *cache);

/* The complete key of a build. Appends. */
void lap_build_cache_key(const lap_device_info *info, const char *fixed_options,
                         const lap_build *build, lap_text *key);
/* The entry's bytes, malloc'ed; false when there is none that can be used. */
bool lap_build_cache_read(lap_build_cache *cache, const char *key, void **bytes, size_t *size);
void lap_build_cache_write(lap_build_cache *cache, const char *key, const void *bytes, size_t size);
/* The entry turned out to be unusable. */
void lap_build_cache_drop(lap_build_cache *cache, const char *key);

#endif
