// Parts that Gemma 3n has in every layer beside attention and MLP (transformers, modeling_gemma3n.py).
#pragma once

#include "plan/work/blocks.h"

namespace rehearse {

// The embeddings of all layers, of which each layer reads its own.
void embed_per_layer(BlockBuilder& builder, const Model& model, TensorId rows);

// What a layer adds of its own embedding.
TensorId add_per_layer(BlockBuilder& builder, const Model& model, TensorId rows);

// A linear branch of low rank, beside attention: of normalised rows what is added to `sum`.
TensorId add_laurel(BlockBuilder& builder, const Model& model, TensorId rows, TensorId sum);

// The copies beside the rows that a layer made: predicted before it, corrected after it.
TensorId alternate(BlockBuilder& builder, const Model& model, TensorId rows);

// Projections of rows to the copies, after the embedding, or from them, before the head.
TensorId project_copies(BlockBuilder& builder, const Model& model, TensorId rows);

}  // namespace rehearse
