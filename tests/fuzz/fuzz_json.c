/* A result document, as `warmlap compare` reads it. */
#include "fuzz.h"

#include "compare/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    lap_error err = {0};
    lap_document *document = NULL;
    lap_status status = lap_document_parse("fuzz.json", (const char *)data, size, &document, &err);
    FUZZ_HOLDS((status == LAP_OK) == (document != NULL));
    FUZZ_HOLDS(status == LAP_OK || (status == LAP_E_FORMAT && err.message[0]));
    if (document) FUZZ_HOLDS(lap_document_same(document, document));
    lap_document_free(document);
    return 0;
}
