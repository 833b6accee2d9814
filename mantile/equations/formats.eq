# Data types of weights, activations and KV cache: bytes of a value, the peak that products run at, whose
# kernels they use. Rows stand under hardware. Where an accelerator has no path for a format, 16-bit products
# stand in. What the library states of data types are columns of one table: datatype.py.

define is_sixteen(key) = max(where(key == library.peak_key.bf16, 1, 0),
  where(key == library.peak_key.fp16, 1, 0))
define multiplies(what) = count_where(framework.pairs, join(inputs.framework, '/', what))
define peak_of(key) = index([peak_bf16, peak_fp16, peak_fp8, peak_int8, peak_fp4],
  match(key, [library.peak_key.*]))
define beside_own(field, other) = where(inputs.weights_dtype == model.weights_dtype, field, other)

[formats] Chosen data types | activations and KV cache | each formats
activation_number  Place of the activation data type [number] = match(inputs.activation_dtype, datatype.id)
kv_number   Place of the KV data type [number] = match(inputs.kv_dtype, datatype.id)
activation_peak_key  Peak used by activations [1] = index(datatype.peak, activation_number)
activation_runs  The framework multiplies in the format of activations [flag]
            = max(is_sixteen(activation_peak_key), multiplies(activation_peak_key))
            ; all frameworks do in 16 bit
activation_peak  Dense peak for activations [FLOP/s] = peak_of(activation_peak_key) * activation_runs
activations_sixteen_bit  Activations are 16 bit [flag] = is_sixteen(activation_peak_key)
fallback_format  Format that stands in [1] = where(peak_bf16 > 0, 'bf16', 'fp16')
            ; for products in a format without a path
fallback_peak  Dense peak of what stands in [FLOP/s] = where(peak_bf16 > 0, peak_bf16, peak_fp16)
sixteen_format  Format of 16-bit products [1]
            = where(all(activations_sixteen_bit > 0, activation_peak > 0), inputs.activation_dtype,
            fallback_format)
sixteen_peak  Dense peak of 16-bit products (16-bit peak) [FLOP/s]
            = where(all(activations_sixteen_bit > 0, activation_peak > 0), activation_peak, fallback_peak)
quantised_in_int8  Quantised weights are multiplied in int8 [flag]
            = count_where(framework.pairs, join(inputs.framework, '/quantised', '/int8'))
            ; what the framework does where that is faster
int8_is_faster  and the accelerator is faster in it [flag]
            = where(peak_int8 > sixteen_peak, quantised_in_int8, 0)
quantised_format  Format of products of quantised weights [1]
            = where(int8_is_faster > 0, 'int8', sixteen_format)
quantised_peak  Dense peak of products of quantised weights [FLOP/s]
            = where(int8_is_faster > 0, peak_int8, sixteen_peak)
activation_size  Bytes per activation as asked [B] = index(datatype.bits, activation_number) / bits_per_byte
kv_key      Peak name of the KV data type [1] = index(datatype.peak, kv_number)
kv_format   KV format [1] = where(kv_key == 'fp8', 'fp8', 'bf16')
            ; attention was timed over caches in 16 bit and fp8; figures of 16 bit stand in for other types
kv_bytes    Bytes per KV value [B/token] = index(datatype.bits, kv_number) / bits_per_byte / one_token
            ; per channel and token

[formats] Data types of the checkpoint | as its config states them | each formats
when of_checkpoint
checkpoint

[formats] Data type: {words} | {note} | each class of matrices
{c}.dtype   Data type, {words} (data type) [1] = {dtype}
{c}.number  Place of the data type, {words} (place of the data type) [number]
            = match(`{c}.dtype`, datatype.id)
{c}.bytes   Bytes per weight, {words} (bytes per weight) [B]
            = index(datatype.bits, `{c}.number`) / bits_per_byte
when multiplied
{c}.stored_peak_key  Peak used by weights, {words} (peak used by weights) [1]
            = index(datatype.peak, `{c}.number`)
{c}.stored_peak  Dense peak for weights, {words} (dense peak for weights) [FLOP/s]
            = peak_of(`{c}.stored_peak_key`)
{c}.wide_kernels  Kernels with 16-bit activations, {words} (kernels with 16-bit activations) [1]
            = index(datatype.kernels_bf16, `{c}.number`)
{c}.sixteen_bit  Weights multiply in 16 bit, {words} (weights multiply in 16 bit) [flag]
            = is_sixteen(`{c}.stored_peak_key`) ; so do weights in a format that is only stored
{c}.low_precision  Products run below 16 bit, {words} (products run below 16 bit) [flag]
            = where(min(`{c}.stored_peak`, activation_peak) > 0, (1 - activations_sixteen_bit) *
            (1 - `{c}.sixteen_bit`), 0)
            ; weights and activations both have to be narrower, and the accelerator to have both peaks
{c}.wide_format  Format of products with 16-bit activations, {words}
            (format of products with 16-bit activations) [1]
            = where(`{c}.wide_kernels` == 'bf16', sixteen_format, quantised_format)
{c}.wide_peak  Dense peak with 16-bit activations, {words} (peak with 16-bit activations) [FLOP/s]
            = where(`{c}.wide_kernels` == 'bf16', sixteen_peak, quantised_peak)
{c}.linear_peak  Dense peak of products, {words} (dense peak of products) [FLOP/s]
            = where(`{c}.low_precision` > 0, min(`{c}.stored_peak`, activation_peak), `{c}.wide_peak`)
when multiplied, whole
{c}.path    How products run, {words} (how products run) [1]
            = where(`{c}.low_precision` > 0, join('in ', `{c}.dtype`),
            join(`{c}.dtype`, ' held, multiplied in ', `{c}.wide_format`))
when multiplied
{c}.kernel_format  Kernel format, {words} (kernel format) [1]
            = where(`{c}.low_precision` > 0, index(datatype.kernels_native, `{c}.number`), `{c}.wide_kernels`)
            ; efficiency figures are found by it
{c}.activation_bytes  Bytes per activation, {words} (bytes per activation) [B/token]
            = where(`{c}.low_precision` > 0, activation_size, vector_bytes) / one_token
            ; the input of a product, per channel and token
when multiplied, of_experts
{c}.widened  Weights are widened before they multiply, {words}
            (weights are widened before they multiply) [flag]
            = (1 - `{c}.low_precision`) * where(`{c}.bytes` < vector_bytes, 1, 0)
            ; narrow weights in 16-bit products
when in_layers
{c}.stored_only  A native format multiplied in 16 bit, {words} (a native format multiplied in 16 bit) [flag]
            = where(`{c}.stored_peak` > 0, (1 - `{c}.sixteen_bit`) * (1 - `{c}.low_precision`), 0)
            ; the accelerator could multiply in the weights' format, but activations are wider

[formats] Paths | 0 where another format stands in | each formats
native      Products run in the format of the activations [flag]
            = max(min(activations_sixteen_bit, where(activation_peak > 0, 1, 0)),
            *[`{c}.low_precision` each class in layers])
            ; the accelerator has their 16-bit format, or some matrices are multiplied below 16 bit
# Attention runs in 16 bit, which on some accelerators is faster than int8.
best_peak   Largest peak of products of the layers [FLOP/s]
            = max(*[`{c}.linear_peak` each class in layers], sixteen_peak)

# Activations follow the weights, or what the checkpoint states beside its own weights, where the accelerator
# has a peak for that format; else they are bf16.

[formats] Activations by default | until somebody types over them | each formats
activation_basis  Format that activations follow [1] = inputs.weights_dtype
over {space}activation_basis = beside_own(model.activation_dtype, it) | when activation_of_checkpoint
activation_basis_number  Place of the format followed [number] = match(activation_basis, datatype.id)
activation_basis_peak_key  Peak used by activations by default [1]
            = index(datatype.peak, activation_basis_number)
activation_basis_runs  The framework multiplies in the format of activations by default [flag]
            = max(is_sixteen(activation_basis_peak_key), multiplies(activation_basis_peak_key))
            ; all frameworks do in 16 bit
activation_basis_peak  Dense peak for activations by default [FLOP/s]
            = peak_of(activation_basis_peak_key) * activation_basis_runs
activation_native  Activations where there is a path [1]
            = where(activation_basis_peak > 0, index(datatype.activations, activation_basis_number), 'bf16')
activation_default  Activations by default [1]
            = where(activation_basis_peak_key == 'bf16', 'bf16', activation_native)

# LM head and embedding follow the checkpoint beside its own weights; beside others they are as files in that
# data type have them.

[formats] Ends by default | until somebody types over them | each formats
head_default  LM head by default [1] = index(datatype.head, match(inputs.weights_dtype, datatype.id))
over {space}head_default = beside_own(model.head_dtype, it) | when head_of_checkpoint
when embedding
embedding_default  Embedding by default [1]
            = index(datatype.embedding, match(inputs.weights_dtype, datatype.id))
over {space}embedding_default = beside_own(model.embedding_dtype, it) | when embedding_of_checkpoint
