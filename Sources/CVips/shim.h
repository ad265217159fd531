#pragma once
// libvips, looked for when the program runs: its headers alone would pull in 129 packages. What is declared here is
// part of the interface that libvips.so.42 has kept since 8.12. Its objects are opaque, and every call that ends in
// properties ends in NULL.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cvips_image cvips_image;
typedef struct cvips_source cvips_source;
typedef struct cvips_target cvips_target;
typedef int64_t (*cvips_write)(void *_Nullable target, const void *_Nullable bytes, int64_t count, void *_Nullable context);

typedef struct {
  int (*init)(const char *);
  int (*version)(int);
  const char *(*error_buffer)(void);
  void (*cache_set_max)(int);
  void (*concurrency_set)(int);
  void (*vector_set_enabled)(int);
  void (*block_untrusted_set)(int);
  void (*operation_block_set)(const char *, int);
  cvips_source *(*source_new_from_descriptor)(int);
  const char *(*foreign_find_load_source)(cvips_source *);
  cvips_target *(*target_custom_new)(void);
  unsigned long (*signal_connect)(void *, const char *, void (*)(void), void *, void (*)(void *, void *), int);
  cvips_image *(*image_new_from_source)(cvips_source *, const char *, ...);
  cvips_image *(*image_copy_memory)(cvips_image *);
  int (*image_get_width)(const cvips_image *);
  int (*image_get_height)(const cvips_image *);
  int (*image_get_bands)(const cvips_image *);
  int (*image_get_format)(const cvips_image *);
  size_t (*image_get_typeof)(const cvips_image *, const char *);
  int (*image_get_blob)(const cvips_image *, const char *, const void **, size_t *);
  int (*image_get_int)(const cvips_image *, const char *, int *);
  int (*extract_area)(cvips_image *, cvips_image **, int, int, int, int, ...);
  int (*rot)(cvips_image *, cvips_image **, int, ...);
  int (*flip)(cvips_image *, cvips_image **, int, ...);
  int (*affine)(cvips_image *, cvips_image **, double, double, double, double, ...);
  void *(*interpolate_new)(const char *);
  void *(*array_int_new)(const int *, int);
  int (*jpegsave_target)(cvips_image *, cvips_target *, ...);
  void (*area_unref)(void *);
  void (*object_unref)(void *);
} cvips_api;

/// Returns the name of what is missing, or NULL.
static inline const char *_Nullable cvips_load(cvips_api *_Nonnull api) {
#if defined(__APPLE__)
  void *library = dlopen("libvips.42.dylib", RTLD_NOW | RTLD_LOCAL);
#else
  void *library = dlopen("libvips.so.42", RTLD_NOW | RTLD_LOCAL);
#endif
  if (!library) return "libvips.so.42";
#define CVIPS_FIND(field, name)                              \
  *(void **)(&api->field) = dlsym(library, name);            \
  if (!api->field) return name;
  CVIPS_FIND(init, "vips_init")
  CVIPS_FIND(version, "vips_version")
  CVIPS_FIND(error_buffer, "vips_error_buffer")
  CVIPS_FIND(cache_set_max, "vips_cache_set_max")
  CVIPS_FIND(concurrency_set, "vips_concurrency_set")
  CVIPS_FIND(vector_set_enabled, "vips_vector_set_enabled")
  CVIPS_FIND(block_untrusted_set, "vips_block_untrusted_set")
  CVIPS_FIND(operation_block_set, "vips_operation_block_set")
  CVIPS_FIND(source_new_from_descriptor, "vips_source_new_from_descriptor")
  CVIPS_FIND(foreign_find_load_source, "vips_foreign_find_load_source")
  CVIPS_FIND(target_custom_new, "vips_target_custom_new")
  CVIPS_FIND(signal_connect, "g_signal_connect_data")
  CVIPS_FIND(image_new_from_source, "vips_image_new_from_source")
  CVIPS_FIND(image_copy_memory, "vips_image_copy_memory")
  CVIPS_FIND(image_get_width, "vips_image_get_width")
  CVIPS_FIND(image_get_height, "vips_image_get_height")
  CVIPS_FIND(image_get_bands, "vips_image_get_bands")
  CVIPS_FIND(image_get_format, "vips_image_get_format")
  CVIPS_FIND(image_get_typeof, "vips_image_get_typeof")
  CVIPS_FIND(image_get_blob, "vips_image_get_blob")
  CVIPS_FIND(image_get_int, "vips_image_get_int")
  CVIPS_FIND(extract_area, "vips_extract_area")
  CVIPS_FIND(rot, "vips_rot")
  CVIPS_FIND(flip, "vips_flip")
  CVIPS_FIND(affine, "vips_affine")
  CVIPS_FIND(interpolate_new, "vips_interpolate_new")
  CVIPS_FIND(array_int_new, "vips_array_int_new")
  CVIPS_FIND(jpegsave_target, "vips_jpegsave_target")
  CVIPS_FIND(area_unref, "vips_area_unref")
  CVIPS_FIND(object_unref, "g_object_unref")
#undef CVIPS_FIND
  return NULL;
}

// Decoders that have been fuzzed for years, and no others: what is not named is not even asked whether it knows the file.
static inline int cvips_start(const cvips_api *_Nonnull api) {
  if (api->init("fullbore-media")) return -1;
  api->block_untrusted_set(1);
  api->operation_block_set("VipsForeignLoad", 1);
  api->operation_block_set("VipsForeignLoadJpeg", 0);
  api->operation_block_set("VipsForeignLoadHeif", 0);
  api->cache_set_max(0);
  api->concurrency_set(1);
  // Its code generator wants files to map.
  api->vector_set_enabled(0);
  return 0;
}

/// Has libheif load its decoders, which it would look for in a folder when the first picture comes. Without libheif there
/// is nothing to do.
static inline void cvips_load_plugins(void) {
  void *library = dlopen("libheif.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library) return;
  // Takes parameters of which there are none, and returns an error by value, of two numbers and a text.
  typedef struct { int code, detail; const char *text; } heif_error;
  heif_error (*init)(void *) = (heif_error (*)(void *))dlsym(library, "heif_init");
  if (init) init((void *)0);
}

/// Rows come once, from top to bottom. A picture that is damaged is an error.
static inline cvips_image *_Nullable cvips_open(const cvips_api *_Nonnull api, cvips_source *_Nonnull source) {
  return api->image_new_from_source(source, "", "access", 1, "fail_on", 3, (void *)0);
}

static inline cvips_image *_Nullable cvips_area(
  const cvips_api *_Nonnull api, cvips_image *_Nonnull image, int left, int top, int width, int height) {
  cvips_image *out = NULL;
  return api->extract_area(image, &out, left, top, width, height, (void *)0) ? NULL : out;
}

/// Quarter turns clockwise, 1 to 3.
static inline cvips_image *_Nullable cvips_turn(const cvips_api *_Nonnull api, cvips_image *_Nonnull image, int quarters) {
  cvips_image *out = NULL;
  return api->rot(image, &out, quarters, (void *)0) ? NULL : out;
}

/// Left becomes right, or top bottom.
static inline cvips_image *_Nullable cvips_mirror(const cvips_api *_Nonnull api, cvips_image *_Nonnull image, int upside_down) {
  cvips_image *out = NULL;
  return api->flip(image, &out, upside_down, (void *)0) ? NULL : out;
}

/// The pixel (x, y) of the result is the place `matrix` · (x, y) + `offset` of the image.
static inline cvips_image *_Nullable cvips_resample(
  const cvips_api *_Nonnull api, cvips_image *_Nonnull image, const double *_Nonnull forward, double x, double y,
  int width, int height) {
  const int whole[4] = {0, 0, width, height};
  void *area = api->array_int_new(whole, 4);
  void *bicubic = api->interpolate_new("bicubic");
  cvips_image *out = NULL;
  int failed = !bicubic || api->affine(image, &out, forward[0], forward[1], forward[2], forward[3], "oarea", area,
    "odx", x, "ody", y, "interpolate", bicubic, "extend", 1, (void *)0);
  api->area_unref(area);
  if (bicubic) api->object_unref(bicubic);
  return failed ? NULL : out;
}

/// Without metadata: `write` gets the bytes.
static inline int cvips_save(
  const cvips_api *_Nonnull api, cvips_image *_Nonnull image, int quality, cvips_write _Nonnull write, void *_Nullable context) {
  cvips_target *target = api->target_custom_new();
  if (!target) return -1;
  api->signal_connect(target, "write", (void (*)(void))write, context, NULL, 0);
  int failed = api->jpegsave_target(image, target, "Q", quality, "strip", 1, (void *)0);
  api->object_unref(target);
  return failed;
}
