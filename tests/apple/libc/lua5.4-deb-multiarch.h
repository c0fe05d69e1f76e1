/* What luaconf.h of Debian includes. */
#define DEB_HOST_MULTIARCH ""
