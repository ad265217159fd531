// Sends a file as PUT over one connection, in chunks of 64 KiB that are encrypted with ChaCha20-Poly1305 by libcrypto: the least
// that any program must do which seals what it sends.
//
//     cc -O2 -o sealed sealed.c -lcrypto && ./sealed FILE PORT /path
#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 64 << 10, TAG = 16 };

static void send_all(int to, const void *bytes, size_t count) {
  for (const char *at = bytes; count > 0;) {
    ssize_t sent = write(to, at, count);
    if (sent <= 0) { perror("write"); exit(1); }
    at += sent, count -= (size_t)sent;
  }
}

int main(int count, char **arguments) {
  if (count != 4) { fprintf(stderr, "usage: sealed FILE PORT /path\n"); return 2; }
  int file = open(arguments[1], O_RDONLY), to = socket(AF_INET, SOCK_STREAM, 0);
  struct stat status;
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(arguments[2]))};
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (file < 0 || fstat(file, &status) || to < 0 || connect(to, (struct sockaddr *)&place, sizeof place)) {
    perror("open or connect");
    return 1;
  }
  long long chunks = status.st_size / CHUNK + (status.st_size % CHUNK > 0);
  char head[512], answer[512] = "";
  int length = snprintf(head, sizeof head, "PUT %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nContent-Length: %lld\r\n\r\n", arguments[3],
                        arguments[2], (long long)status.st_size + chunks * TAG);
  send_all(to, head, (size_t)length);
  unsigned char key[32] = {1}, nonce[12] = {0};
  unsigned char *chunk = malloc(CHUNK + TAG);
  EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
  EVP_EncryptInit_ex(cipher, EVP_chacha20_poly1305(), NULL, key, NULL);
  for (long long number = 0; number < chunks; number++) {
    size_t filled = 0;
    for (ssize_t got; filled < CHUNK && (got = read(file, chunk + filled, CHUNK - filled)) > 0;) filled += (size_t)got;
    memcpy(nonce, &number, sizeof number);
    int done = 0;
    if (EVP_EncryptInit_ex(cipher, NULL, NULL, NULL, nonce) != 1 ||
        EVP_EncryptUpdate(cipher, chunk, &done, chunk, (int)filled) != 1 ||
        EVP_EncryptFinal_ex(cipher, chunk + done, &done) != 1 ||
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, TAG, chunk + filled) != 1) return 1;
    send_all(to, chunk, filled + TAG);
  }
  if (read(to, answer, sizeof answer - 1) <= 0 || strncmp(answer, "HTTP/1.1 20", 11)) {
    fprintf(stderr, "answered: %s\n", answer);
    return 1;
  }
  return 0;
}
