/* A result document, as `warmlap compare` and `--resume` read it. */
#include "fuzz.h"

#include "compare/load.h"
#include "compare/restore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    lap_error err = {0};
    lap_document *document = NULL;
    json_t *root = NULL;
    lap_status status = lap_source_json("fuzz.json", (const char *)data, size, &root, &err);
    if (status == LAP_OK) status = lap_document_take("fuzz.json", root, true, &document, &err);
    FUZZ_HOLDS((status == LAP_OK) == (document != NULL));
    FUZZ_HOLDS(status == LAP_OK || (status == LAP_E_FORMAT && err.message[0]));
    if (document) FUZZ_HOLDS(lap_document_same(document, document));
    /* Rows as `--resume` reads them. */
    static const lap_device_info device;
    json_t *rows = document ? json_object_get(document->json, "rows") : NULL;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        lap_row row;
        status = lap_row_restore("fuzz.json", i, json_array_get(rows, i), &device, &row, &err);
        FUZZ_HOLDS(status == LAP_OK || status == LAP_E_FORMAT);
        lap_row_free(&row);
    }
    lap_document_free(document);
    return 0;
}
