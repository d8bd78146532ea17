// SPDX-License-Identifier: MIT
// The door to formulas and everything that is counted of them. Nothing but includes. Rank 8.
#pragma once

// The formula: layers, + and *.
#include "sdepth/layers/block.hpp"             // dense, attention_only, ffn_only, layer<Mixer, Ffn>
#include "sdepth/layers/experts.hpp"           // moe<E, k>
#include "sdepth/layers/gated_delta.hpp"       // gated_delta
#include "sdepth/layers/linear_attention.hpp"  // linear_attention
#include "sdepth/layers/mamba.hpp"             // mamba
#include "sdepth/layers/mamba2.hpp"            // mamba2
#include "sdepth/layers/moda.hpp"              // moda, moda_last
#include "sdepth/layers/s4.hpp"                // s4
#include "sdepth/layers/sparse.hpp"            // sparse<K>, mod<K>
#include "sdepth/pattern.hpp"                  // * and +, loop<n>, 4_c

// The model and its counts.
#include "sdepth/contract.hpp"      // contract_text<M>(run_record)
#include "sdepth/counted.hpp"       // counted<got, want>()
#include "sdepth/digest.hpp"        // digest<M>
#include "sdepth/flops.hpp"         // flops<M, Run>
#include "sdepth/layer_counts.hpp"  // active_layers<M>
#include "sdepth/model.hpp"         // Model<formula, Dims{...}>
#include "sdepth/params.hpp"        // params<M>
#include "sdepth/state.hpp"         // state<M, Run>

// From a budget to a model, and to the models that it is compared with.
#include "sdepth/alignment.hpp"     // matched<M, P, Run>, alignment<M, P, Run>
#include "sdepth/law.hpp"           // residual, best_of
#include "sdepth/law_estimate.hpp"  // estimate, law_report
#include "sdepth/partner.hpp"       // equal_active<M>, equal_flops<M, Run>, equal_params<M>
#include "sdepth/planner.hpp"       // planned<x_mod_plan{...}>
#include "sdepth/token_budget.hpp"  // tokens_for<M, Run>(compute)
