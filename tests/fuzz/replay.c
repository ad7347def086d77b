/* Gives every file of some folders to a target, as libFuzzer would: what was once found stays
 * found, with any compiler. Usage: replay FOLDER...; fails when there is no file at all. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_MOST = 4 << 20 };

static int replay(const char *path) {
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(BYTES_MOST);
    if (!file || !data) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    size_t size = fread(data, 1, BYTES_MOST, file);
    fclose(file);
    /* Of exactly this size, so that a step beyond it is seen. */
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact) exit(1);
    memcpy(exact, data, size);
    free(data);
    fprintf(stderr, "%s (%zu bytes)\n", path, size); /* the last line names a crash */
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 1;
}

static int replay_folder(const char *folder) {
    DIR *dir = opendir(folder);
    int count = 0;
    if (!dir) {
        perror(folder);
        exit(1);
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        count += replay(path);
    }
    closedir(dir);
    return count;
}

int main(int argc, char **argv) {
    int count = 0;
    for (int i = 1; i < argc; i++)
        count += replay_folder(argv[i]);
    printf("%d inputs\n", count);
    return count > 0 ? 0 : 1;
}
