// Which parts does Gemma 3n have in every layer beside attention and MLP (transformers, modeling_gemma3n.py)?
#pragma once

#include "plan/work/blocks.h"

namespace rehearse {

// The embeddings of all layers; each layer reads its own.
void embed_per_layer(BlockBuilder& builder, const Model& model, TensorId rows);

// Adds a layer's own embedding.
TensorId add_per_layer(BlockBuilder& builder, const Model& model, TensorId rows);

// A linear branch of low rank beside attention: its output for normalized rows is added to `sum`.
TensorId add_laurel(BlockBuilder& builder, const Model& model, TensorId rows, TensorId sum);

// The copies beside a layer's rows: predicted before the layer, corrected after it.
TensorId alternate(BlockBuilder& builder, const Model& model, TensorId rows);

// Projections of rows to the copies, after the embedding, or from them, before the head.
TensorId project_copies(BlockBuilder& builder, const Model& model, TensorId rows);

}  // namespace rehearse
