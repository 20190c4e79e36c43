#include "guard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Four times the kernel's usual limit for an argument list, because every byte may be escaped. */
#define LONGEST_LINE (8u << 20)

bool wire_fill(struct wire *wire) {
    if (wire->length == wire->capacity) {
        size_t wanted = wire->capacity ? wire->capacity * 2 : 65536;
        char *grown = wanted <= LONGEST_LINE ? realloc(wire->buffer, wanted) : NULL;
        if (!grown)
            return false;
        wire->buffer = grown;
        wire->capacity = wanted;
    }
    ssize_t got;
    do
        got = read(wire->fd, wire->buffer + wire->length, wire->capacity - wire->length);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return false;
    wire->length += (size_t)got;
    return true;
}

/* Splits at TABs and undoes \t, \n and \\, in place: `fields` point into `line`. */
static void split(char *line, size_t length, struct message *message) {
    size_t count = 1;
    for (size_t i = 0; i < length; i++)
        count += line[i] == '\t';
    message->fields = calloc(count + 2, sizeof(char *)); /* [count + 1] stores the line to free */
    message->count = 0;
    if (!message->fields)
        return;
    char *out = line;
    message->fields[message->count++] = out;
    for (size_t i = 0; i < length; i++) {
        if (line[i] == '\t') {
            *out++ = '\0';
            message->fields[message->count++] = out;
        } else if (line[i] == '\\' && i + 1 < length) {
            char escaped = line[++i];
            *out++ = escaped == 't' ? '\t' : escaped == 'n' ? '\n' : escaped;
        } else {
            *out++ = line[i];
        }
    }
    *out = '\0';
}

bool wire_next(struct wire *wire, struct message *message) {
    char *end = wire->length ? memchr(wire->buffer, '\n', wire->length) : NULL;
    if (!end)
        return false;
    size_t length = (size_t)(end - wire->buffer);
    char *line = malloc(length + 1);
    if (!line)
        return false;
    memcpy(line, wire->buffer, length);
    wire->length -= length + 1;
    memmove(wire->buffer, end + 1, wire->length);
    split(line, length, message);
    if (!message->fields)
        free(line);
    return message->fields != NULL;
}

void message_free(struct message *message) {
    free(message->fields[0]); /* the start of the line */
    free(message->fields);
    message->fields = NULL;
}

void wire_send(struct wire *wire, const char *head, const char *text) {
    char line[1024];
    size_t used = strlen(head);
    memcpy(line, head, used);
    if (text) {
        line[used++] = '\t';
        for (; *text && used < sizeof line - 3; text++) {
            if (*text == '\t' || *text == '\n' || *text == '\\') {
                line[used++] = '\\';
                line[used++] = *text == '\t' ? 't' : *text == '\n' ? 'n' : '\\';
            } else {
                line[used++] = *text;
            }
        }
    }
    line[used++] = '\n';
    wire_write(wire, line, used);
}

void wire_write(struct wire *wire, const char *lines, size_t length) {
    for (size_t sent = 0; sent < length;) {
        ssize_t wrote = write(wire->fd, lines + sent, length - sent);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return; /* the recorder has ended, which its end of file reports */
        sent += (size_t)wrote;
    }
}
