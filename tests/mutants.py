"""Plant one formula error at a time and see that a test catches it.

    python tests/mutants.py [word to select mutants by] [--jobs 2]

Each mutant is a copy of the source with one replacement, on which the named tests run. A mutant that
survives is a hole in the tests: the command then ends with exit code 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

ROOT = Path(__file__).parents[1]

# (file, what is right, what is planted, tests that should notice)
MUTANTS = [
    ("models/rank_draws.py", "score += n * x", "score += (n - 3) * x", "models/test_copula.py"),
    ("models/rank_draws.py", "below += 1.0 if", "below += 0.0 if", "models/test_copula.py"),
    ("models/rank_draws.py", "gradient -= weights[j, c] * residual[c, r] / variance[c]", "pass", "models/test_copula.py"),
    ("models/rank_draws.py", "if missing:\n", "if False:\n", "models/test_copula.py"),
    ("models/copula.py", "theta.weights * scale[:, None] / scale", "theta.weights", "models/test_copula.py"),
    ("models/cells.py", "if intervened[row, child]:", "if False:", "models/test_completion.py"),
    ("models/cells.py", "total = shift[q, i]", "total = 0.0", "models/test_completion.py"),
    ("models/cells.py", "total = mean[a] + normals[at + a]", "total = mean[a]", "models/test_completion.py"),
    ("models/completion.py", "scaled = self.free[:, None, :] * (own / variance)", "scaled = np.ones_like(self.free)[:, None, :] * (own / variance)", "inference/mcmc/test_augmented.py"),
    ("inference/mcmc/augmented.py", "        rescore_all(chain.ensemble, scoring)\n", "", "inference/mcmc/test_augmented.py"),
    ("models/counts.py", "table.size / combinations\n", "table.size\n", "models/test_bdeu.py"),
    ("models/counts.py", "combinations *= table.levels[parents[a]]", "combinations *= 2", "models/test_bdeu.py"),
    ("models/counts.py", "if free[u]:\n            totals", "if True:\n            totals", "models/test_bdeu.py"),
    ("models/counts.py", "out -= log_rising(", "out += 0 * log_rising(", "models/test_bdeu.py"),
    ("models/perturbed.py", "np.arange(sets + conditions) < sets", "np.arange(sets + conditions) >= 0", "design/test_unknown_targets.py"),
    ("design/outcomes.py", "post.model.base if isinstance(post.model, Perturbed) else post.model", "post.model", "design/test_unknown_targets.py"),
    ("models/set_evidence.py", "0 if sets.hard else p", "p", "models/test_perturbed.py"),
    ("models/set_evidence.py", "                out[t] += own[k]", "                pass", "models/test_perturbed.py"),
    ("models/targets.py", "whole = np.logaddexp.reduce(logs)", "whole = 0.0", "models/test_perturbed.py"),
    ("models/perturbed.py", "within + np.einsum", "within + 0 * np.einsum", "models/test_perturbed.py"),
    ("models/perturbed.py", "!= place", "== place", "models/test_perturbed.py"),
    ("posterior/targets.py", "weights[:, None] * given", "given", "inference/test_targets.py"),
    ("models/bdeu.py", "np.log1p(-rng.random((draws, *shape.shape))) / shape", "0.0", "models/test_bdeu.py"),
    ("models/bdeu.py", "np.cumprod(levels[:0:-1])[::-1]", "np.cumprod(levels[1:])", "models/test_bdeu.py"),
    ("posterior/tables.py", "cut[:, :, i] = False", "cut[:, i, :] = False", "models/test_bdeu.py"),
    ("data/markers.py", "set(MARKERS) - own", "set(MARKERS)", "data/test_markers.py"),
    ("data/hints.py", "gap > spread or (", "(", "data/test_markers.py"),
    ("posterior/model_check.py", "np.flatnonzero(~past_columns(post.names)) if post.data.lags else np.arange(post.nodes)", "np.arange(post.nodes)", "posterior/test_model_check.py"),
    ("data/kinds.py", "key=_numbers_first)\n        present", "key=str)\n        present", "data/test_kinds.py"),
    ("models/bge.py", "weight = count * self.alpha_mu / (count + self.alpha_mu)", "weight = count * self.degrees(d) / (count + self.degrees(d))", "models/test_bge.py"),
    ("models/bge.py", "(self.degrees(d) - d - 1) / (self.alpha_mu + 1)", "(self.degrees(d) - d + 1) / (self.alpha_mu + 1)", "models/test_bge.py"),
    ("models/bge.py", "(self.degrees(d) - d + np.arange(d) + 1) / 2", "(self.degrees(d) - d + np.arange(d)) / 2", "models/test_bge.py"),
    ("models/bge.py", "0.5 * np.log(self.alpha_mu / (count + self.alpha_mu))[:, None]", "0.0 * count[:, None]", "models/test_bge.py"),
    ("models/bge.py", "mean = prior_mean + (count / (count + self.alpha_mu))[:, None] * shift", "mean = prior_mean + 0 * shift", "models/test_bge.py"),
    ("models/bge.py", "self._statistics(*grams(data, centre=True))", "self._statistics(*grams(data))", "models/test_bge.py"),
    ("models/bge.py", "between = (known * n)", "between = known", "models/test_contract.py"),
    ("models/linear_gaussian.py", "count + gets * len(rows)), stats.node", "count), stats.node", "models/test_contract.py"),
    ("design/outcomes.py", "[j not in result.clamped for", "[True for", "design/test_next_experiment.py"),
    ("design/outcomes.py", "self.families.log_evidence(self.model, more, nodes) - self.before", "self.families.log_evidence(self.model, more, nodes)", "design/test_next_experiment.py"),
    ("design/information.py", "xlogy(after, after) - xlogy(after, self.prior)", "xlogy(after, after) - xlogy(self.prior, self.prior)", "design/test_next_experiment.py"),
    ("design/information.py", "log_weight[outcomes, self.leave_out] = -np.inf", "pass", "design/test_next_experiment.py"),
    ("models/conjugate.py", "- 0.5 * log_determinant\n        + 0.5 * prior_determinant\n        - table", "- 0.5 * log_determinant\n        - table", "models/test_linear_gaussian.py"),
    ("models/conjugate.py", "prior_schur = table.prior_matrix[j, j]", "prior_schur = 1.0", "models/test_bge.py"),
    ("models/conjugate.py", "row = parents[a] if a < p else j", "row = parents[a] if a < p - 1 else j", "models/test_linear_gaussian.py"),
    ("models/conjugate.py", "if graphs[m, i, j]:", "if graphs[m, j, i]:", "models/test_contract.py"),
    ("models/conjugate.py", "jnp.diag(1.0 - m**2 + rounding)", "jnp.diag(1.0 - m + rounding)", "models/test_conjugate.py"),
    ("models/conjugate.py", "(1.0 - jnp.sum(solved**2))", "(1.0 - jnp.sum(solved))", "models/test_contract.py"),
    ("models/linear_gaussian.py", "constant = -count / 2 * log(2 * pi * variance) + precision / 2", "constant = -count / 2 * log(2 * pi * variance)", "models/test_linear_gaussian.py"),
    ("models/linear_gaussian.py", "power, offset, scale, linear = a + count / 2, b - precision / 2, 0.5, 0.0", "power, offset, scale, linear = a + count / 2, b, 0.5, 0.0", "models/test_linear_gaussian.py"),
    ("models/linear_gaussian.py", "out = jnp.sum(g_j * log_normal(weights, spread))", "out = jnp.sum(log_normal(weights, spread))", "models/test_linear_gaussian.py"),
    ("models/linear_gaussian.py", "spread = self.weight_scale**2 * (variance if self.noise.learned else 1.0)", "spread = self.weight_scale**2", "models/test_linear_gaussian.py"),
    ("models/linear_gaussian.py", "LinearTheta(centre + np.sqrt(variance) * noise,", "LinearTheta(centre + noise,", "models/test_linear_gaussian.py"),
    ("models/linear_gaussian.py", "gram[0] @ w - 2 * gram[0]", "gram[0] @ w - gram[0]", "models/test_linear_gaussian.py"),
    ("models/gaussian.py", "- a * log_variance - b", "- (a + 1) * log_variance - b", "models/test_mlp_gaussian.py"),
    ("models/mlp_gaussian.py", "out = jnp.sum(g_j * jnp.sum(log_normal(first, spread), axis=1))", "out = jnp.sum(log_normal(first, spread))", "models/test_mlp_gaussian.py"),
    ("models/mlp_gaussian.py", "layer > 0 else g_j * weight.T", "layer > 0 else weight.T", "models/test_mlp_gaussian.py"),
    ("models/mlp_gaussian.py", "squares = jnp.sum(observed * (values[:, j] - mean) ** 2)", "squares = jnp.sum((values[:, j] - mean) ** 2)", "models/test_contract.py"),
    ("models/base.py", "(~data.intervened.T)", "(data.intervened.T >= 0)", "models/test_contract.py"),
    ("graphs/essential.py", "if graph[z, y] and z != x and not graph[z, x]:", "if graph[z, y] and z != x and not graph[x, z]:", "graphs/test_essential.py"),
    ("inference/bootstrap/ges.py", "price = 0.5 * penalty", "price = penalty", "inference/bootstrap/test_ges.py"),
    ("inference/bootstrap/ges.py", "                if not _adjacent_to_all(z, family, parents, size, graph):\n                    return best\n", "", "inference/bootstrap/test_ges.py"),
    ("inference/bootstrap/ges.py", "or _separated(y, x,", "or True or _separated(y, x,", "inference/bootstrap/test_ges.py"),
    ("inference/bootstrap/ges.py", "            scratch.bounds[w, :] = np.inf", "            pass", "inference/bootstrap/test_ges.py"),
    ("inference/bootstrap/ges.py", "changed = (graph[x, w] and graph[w, x]) or (graph[y, w] and graph[w, y])", "changed = False", "inference/bootstrap/test_ges.py"),
    ("inference/bootstrap/ges.py", " or (before and graph[w, a] != scratch.before[w, a])", "", "inference/bootstrap/test_ges.py"),
    ("inference/bootstrap/ges.py", " and factored[shared] == family[shared]", "", "inference/bootstrap/test_ges.py"),
    ("inference/bootstrap/ges.py", "scratch.listed[REACHED_FROM] != start", "scratch.listed[REACHED_FROM] < 0", "inference/bootstrap/test_ges.py"),
    ("inference/bootstrap/ges.py", "discard(scratch.children[w], a)", "pass", "inference/bootstrap/test_ges.py"),
    ("inference/bootstrap/ges.py", "            if graph[x, z]:\n                graph[z, x] = False\n", "", "inference/bootstrap/test_ges.py"),
    ("inference/bootstrap/pc.py", "np.sqrt(rows - size - 3.0)", "np.sqrt(rows - 3.0)", "inference/bootstrap/test_pc.py"),
    ("inference/bootstrap/pc.py", "near = np.flatnonzero(adjacent[x])\n", "near = np.flatnonzero(adjacent[x] & ~separated[x])\n", "inference/bootstrap/test_pc.py"),
    ("inference/bootstrap/pc.py", "adjacent[x, z] or separators[x, z, y] or", "adjacent[x, z] or", "inference/bootstrap/test_pc.py"),
    ("inference/bootstrap/pc.py", " and not _leads_to(y, x, directed)", "", "inference/bootstrap/test_pc.py"),
    ("inference/bootstrap/resampling.py", "                    level = tried\n", "", "inference/bootstrap/test_resampling.py"),
    ("graphs/essential.py", "if not graph[w, y]:", "if graph[w, y]:", "graphs/test_essential.py"),
    ("graphs/acyclicity.py", "return value, power.T", "return value, power", "graphs/test_acyclicity.py"),
    ("graphs/essential.py", "pair = differs | np.swapaxes(differs, -1, -2)", "pair = differs", "graphs/test_distance.py"),
    ("priors/in_degree.py", "((d - 1) / 2 - parents) * jnp.log1p(-q)", "(d - 1) / 2 * jnp.log1p(-q)", "priors/test_priors.py"),
    ("priors/in_degree.py", "-self.exponent * jnp.log1p(parents)", "-self.exponent * jnp.log(2 + parents)", "priors/test_priors.py"),
    ("inference/exact/layers.py", "rho = 1.0 - rest[k]\n        upper", "rho = 1.0\n        upper", "inference/exact/test_layers.py"),
    ("inference/exact/layers.py", "minus[chunk, nodes[k], placed & ~layer] += derivative * rest[k]", "minus[chunk, nodes[k], placed & ~layer] += derivative", "inference/exact/test_layers.py"),
    ("inference/exact/method.py", "log_evidence = log_normaliser - _log_sum_of_prior(prior, factors, d)", "log_evidence = log_normaliser", "inference/exact/test_exact.py"),
    ("inference/exact/method.py", "families += share * family_probabilities(", "families += family_probabilities(", "inference/exact/test_exact.py"),
    ("inference/exact/method.py", "(families @ members(families.shape[0])).T", "(families @ members(families.shape[0]))", "inference/exact/test_exact.py"),
    ("posterior/parameters.py", "return log_prior + model.log_evidence_of(graphs, stats)", "return model.log_evidence_of(graphs, stats)", "posterior/test_posterior.py"),
    ("posterior/parameters.py", "return log_prior + np.asarray(score(", "return np.asarray(score(", "posterior/test_posterior.py"),
    ("posterior/sample.py", "merged = self.merged()\n        assert", "merged = self\n        assert", "posterior/test_posterior.py"),
    ("posterior/features.py", "chain_error(values, chain))", "float(values.std() / np.sqrt(len(values))))", "posterior/test_chains.py"),
    ("posterior/features.py", "return float(np.fmax(within, between))", "return float(np.fmin(within, between))", "posterior/test_chains.py"),
    ("posterior/sample.py", "np.repeat(np.arange(len(lengths)), lengths)", "np.arange(len(post)) % len(lengths)", "posterior/test_chains.py"),
    ("posterior/sample.py", "told_apart = () if self.is_collapsed else jax.tree.leaves(self.theta)", "told_apart = jax.tree.leaves(self.theta)", "posterior/test_posterior.py"),
    ("posterior/sample.py", "        if self.is_sample:\n            warnings", "        if False:\n            warnings", "posterior/test_posterior.py"),
    ("inference/dibs/target.py", "max(rows / batch, 1.0) if scaled else 1.0", "max(rows / batch, 1.0)", "inference/dibs/test_inference.py"),
    ("models/linear_gaussian.py", 'jnp.einsum("jn,ni,nk->jik", observed, values, values)', 'jnp.einsum("jn,ni,nk->jik", 0 * observed + 1, values, values)', "inference/dibs/test_inference.py"),
    ("inference/dibs/particles.py", "lambda step: -RATE", "lambda step: RATE", "inference/dibs/test_inference.py"),
    ("graphs/acyclicity.py", "np.log(LARGEST_GRADIENT) - jnp.log(largest)", "np.log(LARGEST_GRADIENT)", "graphs/test_acyclicity.py"),
    ("posterior/model_check.py", "if target @ target <= 1e-10 * size", "if target @ target < 0", "posterior/test_model_check.py"),
    ("posterior/model_check.py", "zip(same_rows, p.tolist())", "zip(same_rows, p.tolist()[::-1])", "posterior/test_model_check.py"),
    ("posterior/model_check.py", "new = left > 1e-10 * total", "new = left > -1.0", "posterior/test_model_check.py"),
    ("posterior/model_check.py", "alternative=\"greater\"", "alternative=\"less\"", "posterior/test_model_check.py"),
    ("posterior/model_check.py", "np.where(np.tile(others, 2), ", "np.where(True, ", "posterior/test_model_check.py"),
    ("inference/dibs/svgd.py", "every + ahead), steps)", "every + ahead), steps + every)", "inference/dibs/test_inference.py"),
    ("inference/mcmc/diagnostics.py", "between = means.var(axis=0, ddof=1)", "between = means.var(axis=0)", "inference/mcmc/test_diagnostics.py"),
    ("inference/mcmc/diagnostics.py", "LARGEST_RHAT = 1.01", "LARGEST_RHAT = 1.05", "inference/mcmc/test_diagnostics.py"),
    ("_util/clock.py", "time.perf_counter() - self._began - self.compiling", "time.perf_counter() - self._began", "_util/test_clock.py"),
    ("inference/dibs/chains.py", "jnp.sqrt(2 * e) * n", "jnp.sqrt(e) * n", "inference/dibs/test_chains.py"),
    ("inference/dibs/chains.py", "accepted = _accepts(key_accept, gain)", "accepted = gain > -1e9", "inference/dibs/test_chains.py"),
    ("inference/dibs/chains.py", "gain = density(x, proposed) - density(x, noise)", "gain = 1.0", "inference/dibs/test_chains.py"),
    ("inference/dibs/target.py", "log_parameter_prior(jnp.ones_like(g_j), theta_j)", "log_parameter_prior(g_j, theta_j)", "inference/dibs/test_chains.py"),
    ("inference/dibs/estimators.py", "log_p = jnp.where(possible, log_p, -jnp.inf)", "pass", "inference/dibs/test_chains.py"),
    ("inference/dibs/posterior.py", "weights = each.sum(axis=1) + score(columns, theta)", "weights = score(columns, theta)", "inference/dibs/test_latent_expectation.py"),
    ("inference/dibs/posterior.py", "model.log_conditional if latent.whole_prior else model.log_family", "model.log_family", "inference/dibs/test_latent_expectation.py"),
    ("inference/dibs/svgd.py", "return max(1.0, left / affordable)", "return 1.0", "_util/test_clock.py"),
    ("metrics.py", "max(0.0, 1.0 - q.sum())", "0.0", "test_metrics.py"),
    ("models/conjugate.py", "total_noise -= lower[c, a] * noise[parents[c], j]", "total_noise -= lower[a, c] * noise[parents[c], j]", "models/test_linear_gaussian.py"),
    ("inference/mcmc/exchange.py", "TINY = 1e-200", "TINY = -1.0", "inference/mcmc/test_moves.py"),
    ("inference/mcmc/exchange.py", "                if of_tail | of_head == full:\n                    weight", "                if True:\n                    weight", "inference/mcmc/test_moves.py"),
    ("inference/mcmc/moves.py", "np.log(edges) - np.log(edges_then) + forth_i", "forth_i", "inference/mcmc/test_moves.py"),
    ("inference/mcmc/moves.py", "accepts(rng, gain - np.log(neighbours(dag)))", "accepts(rng, gain)", "inference/mcmc/test_moves.py"),
    ("inference/mcmc/parent_sets.py", "uniform(rng) < np.exp(weight - total)", "uniform(rng) < 0.5", "inference/mcmc/test_moves.py"),
    ("inference/mcmc/swaps.py", "(cold.heat - hot.heat) * tempered", "(hot.heat - cold.heat) * tempered", "inference/mcmc/test_swaps.py"),
    ("inference/mcmc/swaps.py", "ensemble.scores[k + 1, j, part] = score", "pass", "inference/mcmc/test_swaps.py"),
    ("inference/mcmc/swaps.py", "        _replace_families(cold, before[0], r, region, words)\n        return\n    for j", "        return\n    for j", "inference/mcmc/test_swaps.py"),
    ("inference/mcmc/structure.py", "    if not has_detour(dag, i, j):\n        _refresh(dag, j)", "    if has_detour(dag, i, j):\n        _refresh(dag, j)", "inference/mcmc/test_structure.py"),
    ("inference/mcmc/swaps.py", "has(parents[k, i], j) == has(parents[k + 1, i], j)", "has(parents[k, i], j)", "inference/mcmc/test_swaps.py"),
    ("inference/mcmc/moves.py", "if uniform(rng) < 0.5:\n            i, j = j, i", "if False:\n            i, j = j, i", "inference/mcmc/test_moves.py"),
    ("inference/mcmc/scoring.py", "scorer.reference + heat * scorer.tilts[component]", "scorer.reference + scorer.tilts[component]", "inference/mcmc/test_moves.py"),
    ("inference/mcmc/scoring.py", "weights[c] += difference[:, 0].sum()", "weights[c] += 0.0", "inference/mcmc/test_moves.py"),
    ("inference/mcmc/ensembles.py", "weight = heat * log_density(scorer, scores, c)", "weight = log_density(scorer, scores, c)", "inference/mcmc/test_moves.py"),
    ("inference/mcmc/conditionals.py", "back = toggled + added + log_weight_of_edges(scorer, edges + counted + also) - base", "back = toggled + added", "inference/mcmc/test_conditionals.py"),
    ("inference/mcmc/conditionals.py", "if not has_detour(dag, i, j):", "if True:", "inference/mcmc/test_conditionals.py"),
    ("graphs/dags.py", "step = (u - r) * log_factor + np.log(np.expm1(r * log_factor))", "step = u * log_factor + 0.0 * r", "priors/test_priors.py"),
    ("models/base.py", "return self.log_evidence_of(graphs, after) - self.log_evidence_of(graphs, before)", "return self.log_evidence_of(graphs, after)", "interfaces/test_libraries.py"),
    ("models/gaussian_process.py", "(self._statistics(part, known.observations) for part", "(self.summarise(part) for part", "models/test_gaussian_process.py"),
    ("models/gaussian_process.py", "np.log(kernels * tables[0, 0].size) - jacobian", "np.log(kernels * tables[0, 0].size)", "models/test_gaussian_process.py"),
    ("models/gaussian_process.py", "np.log(kernels * tables[0, 0].size)", "np.log(tables[0, 0].size)", "models/test_gaussian_process.py"),
    ("models/gaussian_process.py", "(spread * len(counts) * counts[kernel])", "(spread * counts[kernel])", "models/test_gaussian_process.py"),
    ("models/gp_evidence.py", "np.sqrt(weight / (p if summed else 1))", "np.sqrt(weight)", "models/test_gaussian_process.py"),
    ("models/gp_factors.py", "return 1.0 - (1.0 + 2.0 * precision) ** (-0.5 * p)", "return 1.0", "models/test_gaussian_process.py"),
    ("inference/exact/orders.py", "if larger and rank[last] < rank[chosen]:", "if False:", "inference/exact/test_orders.py"),
    ("inference/exact/orders.py", "if placed and rank[a] > rank[nodes[k]]:", "if False:", "inference/exact/test_orders.py"),
    ("inference/exact/orders.py", "if among and not parents & among:", "if False:", "inference/exact/test_orders.py"),
    ("inference/exact/orders.py", "share += np.exp(log_total[j, placed & ~(among | 1 << i)] - whole)", "pass", "inference/exact/test_orders.py"),
    ("models/conjugate_subsets.py", "row[c] -= share * factor[b, c]", "pass", "models/test_conjugate_subsets.py"),
    ("priors/column_subsets.py", "_size(s & counted[j])", "_size(s)", "priors/test_informed.py"),
    ("models/gp_evidence.py", "return log_determinant + np.log(grown), yy", "return log_determinant, yy", "models/test_gaussian_process.py"),
    ("inference/mcmc/scoring.py", "if p > scorer.most:", "if p > scorer.most + 1:", "inference/mcmc/test_knowledge.py"),
    ("inference/mcmc/scoring.py", "if scorer.required[j, w] & ~words[w]:", "if scorer.required[j, w] & words[w]:", "inference/mcmc/test_knowledge.py"),
    ("inference/mcmc/scoring.py", "counted += not holds(scorer.uncounted, j, i)", "counted += 1", "inference/mcmc/test_knowledge.py"),
    ("priors/informed.py", "of_base(graphs & ~self.known.stated) + odds", "of_base(graphs) + odds", "priors/test_informed.py"),
    ("priors/informed.py", "jnp.any(~present & required)", "jnp.any(present & required)", "priors/test_informed.py"),
    ("priors/knowledge.py", "if earlier < later:", "if earlier > later:", "priors/test_knowledge.py"),
    ("priors/constraints.py", "np.where(self.required, np.inf, scores)", "scores", "priors/test_knowledge.py"),
    ("inference/dibs/target.py", "return mask_certain_edges(gradient, target.known)", "return gradient", "inference/dibs/test_knowledge.py"),
    ("inference/dibs/latent.py", "jnp.where(known.free, graph, jnp.asarray(known.required, dtype=graph.dtype))", "jnp.where(known.allowed, graph, 0.0)", "inference/dibs/test_knowledge.py"),
    ("inference/mcmc/joint.py", "graph * (1 - detour)", "graph", "inference/mcmc/test_joint.py"),
    ("metrics.py", "np.where(undirected, as_read, essential)", "essential", "inference/bootstrap/test_resampling.py"),
    ("studies/tables.py", "d * (d - 1) / 2, ", "d * (d - 1), ", "studies/test_tables.py"),
    ("simulation.py", "theta + shift * np.sign(theta)", "theta + shift", "test_simulation.py"),
    ("models/additive.py", "sums[:, :, None] * sums[:, None, :] / (count + 1 / INTERCEPT_RATIO)", "sums[:, :, None] * sums[:, None, :] / (count + INTERCEPT_RATIO)", "models/test_additive.py"),
    ("models/additive.py", "more = 0.5 * np.log(precisions / floor)[:, None] * self.width", "more = 0.5 * np.log(precisions / floor)[:, None] * self.functions", "models/test_additive.py"),
    ("models/additive.py", "by_node=-rows * log_scale", "by_node=rows * log_scale", "models/test_additive.py"),
    ("models/gp_evidence.py", "yy - grid.kappa2 * y1 * y1 / grown", "yy - grid.kappa2 * y1 * y1", "models/test_gaussian_process.py"),
    ("models/gp_evidence.py", "quadratic = 1.0 / (inverse + rise", "quadratic = 1.0 / (inverse - rise", "models/test_gaussian_process.py"),
    ("models/gp_evidence.py", "rate = grid.shape + 0.5 * rows, grid.rate / (1.0 + ratio)", "rate = grid.shape + 0.5 * rows, grid.rate * (1.0 + ratio)", "models/test_gaussian_process.py"),
    ("models/mlp_evidence.py", "log_evidence += step * values.max() + log(mean)", "log_evidence += values.max() + log(mean)", "models/test_numerical.py"),
    ("models/mlp_evidence.py", "shares[ancestors[c]] += weights", "shares[c] += weights", "models/test_numerical.py"),
    ("models/mlp_evidence.py", "level = beta * value + log(1.0 - rng.random())", "level = value + log(1.0 - rng.random())", "models/test_numerical.py"),
    ("models/mlp_evidence.py", "beta * value - noise.shape * at - noise.rate", "beta * value - (noise.shape + 1.0) * at - noise.rate", "models/test_numerical.py"),
    ("models/mlp_network.py", "+ m * log(net.prior_variance) + log_determinant", "+ log_determinant", "models/test_numerical.py"),
    ("models/mlp_network.py", "pivot -= z[row] * z[row]", "pivot -= 0.5 * z[row] * z[row]", "models/test_numerical.py"),
    ("models/mlp_network.py", "t = work.solved[a] + normals[s, a]", "t = normals[s, a]", "models/test_numerical.py"),
    ("models/family_table.py", "        if at == ABSENT:\n            return -np.inf\n", "        if at == ABSENT:\n            continue\n", "inference/test_integration.py"),
    ("inference/mcmc/final_moves.py", '"pair", rest, section', '"pair", 0, section', "inference/mcmc/test_final_moves.py"),
    ("inference/mcmc/ladder.py", "np.stack(reached[::-1], axis=1)", "np.stack(reached, axis=1)", "inference/mcmc/test_ladder.py"),
    ("inference/mcmc/refine.py", "(*earlier[-1:], block)", "(block,)", "_util/test_clock.py"),
    ("inference/mcmc/refine.py", "merged_batches(block.frequencies, longer / rounds)", "block.frequencies", "_util/test_clock.py"),
    ("inference/mcmc/refine.py", "blocks = [*earlier, join_blocks(parts)]", "blocks = [join_blocks(parts)]", "inference/checkpoints/test_resume.py"),
    ("inference/mcmc/refine.py", "weights = pair_weights(block", "pair_weights(block", "inference/mcmc/test_refine.py"),
    ("inference/mcmc/ladder.py", "np.sqrt(before + UNIFORM / len(before)) * np.hypot", "np.hypot", "inference/mcmc/test_refine.py"),
    ("inference/mcmc/parent_sets.py", "scaled.sum(axis=1)[None]", "np.ones((1, d))", "inference/mcmc/test_swaps.py"),
    ("inference/mcmc/refine.py", "heats, levels = spaced(ensembles, heats)", "levels = np.arange(len(heats))", "inference/mcmc/test_refine.py"),
    ("inference/mcmc/ladder.py", "np.cumsum(rejected)])", "np.cumsum(1.0 - rejected)])", "inference/mcmc/test_refine.py"),
    ("inference/integration.py", "marginals=found.marginals + outside", "marginals=found.marginals", "inference/test_integration.py"),
    ("inference/bootstrap/resampling.py", "if classes and not complete:", "if False:", "inference/bootstrap/test_resampling.py"),
    ("inference/dibs/family_terms.py", "axis=-2)) > jnp.asarray(sizes))", "axis=-2)) > 2 * jnp.asarray(sizes))", "inference/dibs/test_estimators.py"),
    ("inference/candidates.py", "if score >= best[j, code] - MARGIN:", "if score >= best[j, code]:", "inference/test_integration.py"),
    ("inference/candidates.py", "np.where(row, -change, change)", "change", "inference/test_integration.py"),
    ("models/integrated.py", "before = np.r_[0, np.cumsum(counts[order])[:-1]]", "before = np.cumsum(counts[order])", "inference/test_integration.py"),
    ("inference/candidates.py", "other[[i, parent]] = True, False", "other[i] = True", "inference/test_integration.py"),
    ("inference/candidates.py", "among & rest, row & rest, base - HOPELESS)", "among & rest, row, base - HOPELESS)", "inference/test_integration.py"),
    ("inference/candidates.py", "possible[i] * odds / (1 + odds)", "odds", "inference/test_integration.py"),
    ("comparison.py", "(part < fold, part == fold)", "(part != fold, part == fold)", "test_comparison.py"),
    ("comparison.py", "post.model.counted(post.data) @", "~post.data.intervened @", "test_comparison.py"),
    ("metrics.py", "counted & ~past, raw.with", "counted, raw.with", "test_comparison.py"),
    ("models/perturbed.py", " - roots.sum()", "", "models/test_perturbed.py"),
    ("models/perturbed.py", "self._summarise(part, known.observations)", "self._summarise(part)", "models/test_perturbed.py"),
]  # fmt: skip


def caught(file: str, right: str, wrong: str, tests: str) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        # without compiled code, which would not notice a change in a file that it was inlined from
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        path = copy / "dagpost" / file
        text = path.read_text()
        if text.count(right) != 1:
            raise SystemExit(f"{file}: the text to replace stands there {text.count(right)} times: {right!r}")
        path.write_text(text.replace(right, wrong))
        places = os.pathsep.join(filter(None, [str(copy), os.environ.get("PYTHONPATH", "")]))
        environment = {**os.environ, "PYTHONPATH": places, "NUMBA_CACHE_DIR": str(Path(folder) / "numba")}
        place = str(ROOT / "tests" / tests)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not long", place]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        return done.returncode == 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("word", nargs="?", default="", help="to select mutants by")
    parser.add_argument("--jobs", type=int, default=2, help="how many to try at the same time")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if any(options.word in part for part in mutant)]
    survivors, started = 0, time.perf_counter()
    with ThreadPoolExecutor(options.jobs) as pool:
        running = {pool.submit(caught, *mutant): mutant for mutant in chosen}
        for number, done in enumerate(as_completed(running), start=1):
            mutant, noticed = running[done], done.result()
            survivors += not noticed
            verdict = "caught  " if noticed else "SURVIVED"
            took = time.perf_counter() - started
            print(
                f"{number:>3}/{len(chosen)} {verdict} {mutant[0]}: {mutant[2]!r:.80} (after {took:.0f} s)", flush=True
            )
    print(f"{len(chosen) - survivors} of {len(chosen)} planted errors caught")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
