#define XRT_VERSION_CODE ((2 << 16) | 25)
