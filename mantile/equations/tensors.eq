# What the stored tensors come to, and what of them the fullest rank holds. Which tensors there are, and by
# what each is split, follows from the architecture: tensors.py says it.

[tensors] {label} | {repeats} | each module with tensors
stored_of.{m}

[tensors] Parameters | of the decoder | total
each module with parameters
module.{m}  Parameters, {label} [parameter] = sum(`parameters_of.{m}`)

when buffers
buffers     Stored values that are no parameters [parameter] = not_parameters

parameters  Parameters [parameter] = sum([`tensors.module.{m}` each module with parameters])

[tensors] Vision tower | beside the decoder; the projector included | subtotal | when vision_tower
of_vision
vision      Parameters of the vision tower [parameter] = sum(of_vision)

[tensors] Multi-token prediction | listed apart: not run, and not among the parameters | subtotal
  | when prediction
of_prediction
prediction  Parameters of multi-token prediction [parameter] = sum(of_prediction)

[tensors] {title} | fullest rank, one layer | subtotal | each class on a rank
on_rank.{class}
{class}     {title}, of a layer on a rank ({words} on a rank) [parameter] = sum(`on_rank.{class}`)

[tensors] Embedding and LM head on a rank | vocabulary split over the TP ranks
embedding   Embedding weights on a rank [parameter] = embedding_split
over tensors.embedding = where(inputs.embedding_tp == 1, embedding_whole, it) | when TP_of_the_embedding
matrices_behind
head        LM head weights on a rank [parameter]
            = where(model.tied_embeddings > 0, 0, head_split) + behind ; a tied head uses the embedding
final_vectors  Final norm and bias weights on a rank [parameter] = vectors_outside
