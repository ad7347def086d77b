/* The commands of the program. argv[0] is the command's name. Each returns the exit status. */
#ifndef LAP_APP_COMMANDS_H
#define LAP_APP_COMMANDS_H

int cmd_weights(int argc, char **argv);

#endif
