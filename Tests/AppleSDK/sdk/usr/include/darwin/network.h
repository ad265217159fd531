// Sockets: socket(2), poll(2), tcp(4), ip(4), getaddrinfo(3), getifaddrs(3), sendfile(2).
#pragma once
#include <darwin/types.h>
#include <darwin/files.h>
#pragma clang assume_nonnull begin
typedef uint8_t sa_family_t; typedef uint16_t in_port_t; typedef uint32_t in_addr_t;
struct sockaddr { uint8_t sa_len; sa_family_t sa_family; char sa_data[14]; };
struct in_addr { in_addr_t s_addr; };
struct sockaddr_in { uint8_t sin_len; sa_family_t sin_family; in_port_t sin_port; struct in_addr sin_addr; char sin_zero[8]; };
struct in6_addr { uint8_t __u6_addr[16]; };
struct sockaddr_in6 { uint8_t sin6_len; sa_family_t sin6_family; in_port_t sin6_port; uint32_t sin6_flowinfo; struct in6_addr sin6_addr; uint32_t sin6_scope_id; };
struct sockaddr_storage { uint8_t ss_len; sa_family_t ss_family; char __ss_pad1[6]; int64_t __ss_align; char __ss_pad2[112]; };
struct linger { int l_onoff, l_linger; };
struct pollfd { int fd; short events, revents; };
typedef unsigned int nfds_t;
typedef struct fd_set { int32_t fds_bits[32]; } fd_set;
struct addrinfo { int ai_flags, ai_family, ai_socktype, ai_protocol; socklen_t ai_addrlen; char * _Null_unspecified ai_canonname; struct sockaddr * _Null_unspecified ai_addr; struct addrinfo * _Null_unspecified ai_next; };
struct msghdr { void * _Nullable msg_name; socklen_t msg_namelen; struct iovec * _Nullable msg_iov; int msg_iovlen; void * _Nullable msg_control; socklen_t msg_controllen; int msg_flags; };
#define AF_UNSPEC 0
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 30
#define SOCK_STREAM 1
#define SOL_SOCKET 0xffff
#define SO_REUSEADDR 0x0004
#define SO_KEEPALIVE 0x0008
#define SO_LINGER 0x1080
#define SO_SNDBUF 0x1001
#define SO_RCVBUF 0x1002
#define SO_RCVLOWAT 0x1004
#define SO_ERROR 0x1007
#define SO_NOSIGPIPE 0x1022
#define SO_NWRITE 0x1024
#define SO_RCVTIMEO 0x1006
#define SO_SNDTIMEO 0x1005
#define IPPROTO_TCP 6
#define IPPROTO_IPV6 41
#define IPV6_V6ONLY 27
#define TCP_NODELAY 0x01
#define TCP_CONNECTION_INFO 0x106
// netinet/tcp.h: times are in milliseconds, the last eight numbers count since the connection began.
struct tcp_connection_info {
  uint8_t tcpi_state, tcpi_snd_wscale, tcpi_rcv_wscale, __pad1; uint32_t tcpi_options, tcpi_flags, tcpi_rto, tcpi_maxseg;
  uint32_t tcpi_snd_ssthresh, tcpi_snd_cwnd, tcpi_snd_wnd, tcpi_snd_sbbytes, tcpi_rcv_wnd, tcpi_rttcur, tcpi_srtt, tcpi_rttvar;
  uint32_t tcpi_tfo;
  uint64_t tcpi_txpackets, tcpi_txbytes, tcpi_txretransmitbytes, tcpi_rxpackets, tcpi_rxbytes, tcpi_rxoutoforderbytes;
  uint64_t tcpi_txretransmitpackets;
};
struct sf_hdtr { struct iovec * _Nullable headers; int hdr_cnt; struct iovec * _Nullable trailers; int trl_cnt; };
int sendfile(int, int, off_t, off_t * _Nonnull, struct sf_hdtr * _Nullable, int);
#define MSG_PEEK 0x2
#define MSG_DONTWAIT 0x80
#define MSG_NOSIGNAL 0x80000
#define SHUT_RD 0
#define SHUT_WR 1
#define SHUT_RDWR 2
#define SOMAXCONN 128
#define POLLIN 0x0001
#define POLLPRI 0x0002
#define POLLOUT 0x0004
#define POLLERR 0x0008
#define POLLHUP 0x0010
#define POLLNVAL 0x0020
#define AI_PASSIVE 0x00000001
#define AI_NUMERICHOST 0x00000004
#define AI_NUMERICSERV 0x00001000
#define INET6_ADDRSTRLEN 46
int socket(int, int, int);
int socketpair(int, int, int, int *);
int bind(int, const struct sockaddr *, socklen_t);
int listen(int, int);
int accept(int, struct sockaddr * _Nullable, socklen_t * _Nullable);
int connect(int, const struct sockaddr *, socklen_t);
int shutdown(int, int);
ssize_t send(int, const void * _Nullable, size_t, int);
ssize_t recv(int, void * _Nullable, size_t, int);
ssize_t sendmsg(int, const struct msghdr *, int);
int getsockname(int, struct sockaddr *, socklen_t *);
int getpeername(int, struct sockaddr *, socklen_t *);
int getsockopt(int, int, int, void * _Nullable, socklen_t * _Nullable);
int setsockopt(int, int, int, const void * _Nullable, socklen_t);
int poll(struct pollfd * _Nullable, nfds_t, int);
int getaddrinfo(const char * _Nullable, const char * _Nullable, const struct addrinfo * _Nullable, struct addrinfo * _Nullable * _Nonnull);
void freeaddrinfo(struct addrinfo * _Nullable);
const char * gai_strerror(int);
int inet_pton(int, const char *, void *);
const char * _Nullable inet_ntop(int, const void *, char *, socklen_t);
#pragma clang assume_nonnull end
// The header has no nullability.
struct ifaddrs {
  struct ifaddrs *ifa_next; char *ifa_name; unsigned int ifa_flags;
  struct sockaddr *ifa_addr; struct sockaddr *ifa_netmask; struct sockaddr *ifa_dstaddr; void *ifa_data;
};
int getifaddrs(struct ifaddrs **);
void freeifaddrs(struct ifaddrs *);
