// torch_save.h: inside core/load: files of torch.save, which older archives keep their weights in.
#ifndef CORE_LOAD_TORCH_SAVE_H
#define CORE_LOAD_TORCH_SAVE_H

#include "core/tensor/tensor.h"

typedef struct TorchSave {
    Str bytes;          // the whole file
    const char *name;   // for messages
    int fd;             // a file that holds it, from offset on, for mapping its storages; -1: copy
    int64_t offset;
    const char *only;   // it is one tensor, not a dict: its name; NULL
} TorchSave;

// Adds the tensors of a dict of names to `to`: name -> Tensor *; the names live in a. What is no
// tensor is passed over with a warning. False and an error if the file is broken.
bool torch_save_read(const TorchSave *f, Arena *a, Map *to, Diag *d);

#endif
