/* Entry point: dispatches to the commands. */
#include <stdio.h>

int main(void) {
    puts("warmlap " LAP_VERSION);
    return 0;
}
