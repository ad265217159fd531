#pragma once
#include <microhttpd.h>
#include <sys/socket.h>
#include <unistd.h>
typedef void *(*fb_mhd_began)(void *context, const char *target, struct MHD_Connection *connection);
// MHD_start_daemon is variadic, which Swift does not import: options that are numbers come as an array.
static inline struct MHD_Daemon *fb_mhd_start(unsigned flags, fb_mhd_began began, MHD_AccessHandlerCallback handler,
                                              MHD_RequestCompletedCallback ended,
                                              MHD_NotifyConnectionCallback noticed, void *context,
                                              struct MHD_OptionItem *options) {
  return MHD_start_daemon(flags, 0, NULL, NULL, handler, context, MHD_OPTION_URI_LOG_CALLBACK, began, context,
                          MHD_OPTION_NOTIFY_COMPLETED, ended, context,
                          MHD_OPTION_NOTIFY_CONNECTION, noticed, context, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
}
static inline int fb_mhd_descriptor(struct MHD_Connection *c) {
  const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
  return i ? i->connect_fd : -1;
}
// Gives the daemon a connected socket, which it closes, also when it refuses it.
static inline enum MHD_Result fb_mhd_add(struct MHD_Daemon *d, int socket) {
  struct sockaddr_storage peer;
  socklen_t size = sizeof peer;
  if (getpeername(socket, (struct sockaddr *)&peer, &size) != 0) {
    close(socket);
    return MHD_NO;
  }
  return MHD_add_connection(d, socket, (struct sockaddr *)&peer, size);
}
// What the callback for connections has left there.
static inline void *fb_mhd_socket_context(struct MHD_Connection *c) {
  const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return i ? i->socket_context : NULL;
}
static inline unsigned fb_mhd_connections(struct MHD_Daemon *d) {
  const union MHD_DaemonInfo *i = MHD_get_daemon_info(d, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
  return i ? i->num_connections : 0;
}
static inline enum MHD_Result fb_mhd_connection_timeout(struct MHD_Connection *c, unsigned seconds) {
  return MHD_set_connection_option(c, MHD_CONNECTION_OPTION_TIMEOUT, seconds);
}
// Bytes of the request's head, from the request line to the empty line, once it is read; 0 before.
static inline size_t fb_mhd_head_size(struct MHD_Connection *c) {
  const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  return i ? i->header_size : 0;
}
static inline void *fb_mhd_tls_session(struct MHD_Connection *c) {
  const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  return i ? i->tls_session : NULL;
}
