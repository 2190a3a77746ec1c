"""Random knowledge that some DAG can satisfy, and a plain check of graphs against it, by names."""

import dagpost as dp


def random_knowledge(rng, names, probabilities=True):
    """Each kind of knowledge is there half of the time; all of it agrees with one random order of the names."""
    order = [names[k] for k in rng.permutation(len(names))]
    forward = [(a, b) for k, a in enumerate(order) for b in order[k + 1 :]]
    some = lambda items, share: [item for item in items if rng.random() < share]  # noqa: E731
    roots = some(order[:2], 0.5) if rng.random() < 0.5 else []
    leaves = some(order[-2:], 0.5) if rng.random() < 0.5 else []
    possible = [(a, b) for a, b in forward if b not in roots and a not in leaves]
    required = some(possible, 0.3) if rng.random() < 0.5 else []
    everything = [(a, b) for a in names for b in names if a != b and (a, b) not in required]
    forbidden = some(everything, 0.3) if rng.random() < 0.5 else []
    tiers = []
    if rng.random() < 0.5:
        cut = sorted(rng.choice(len(names) + 1, 2))
        tiers = [some(tier, 0.8) for tier in (order[: cut[0]], order[cut[0] : cut[1]], order[cut[1] :])]
    parents = max(sum(effect == name for _, effect in required) for name in names)
    open_pairs = [pair for pair in possible if pair not in required and pair not in forbidden]
    return dp.Knowledge(
        required=[f"{a} -> {b}" if rng.random() < 0.5 else (a, b) for a, b in required],
        forbidden=forbidden,
        tiers=tiers,
        roots=roots,
        leaves=leaves,
        max_parents=parents + int(rng.integers(2)) if rng.random() < 0.5 else None,
        probabilities={pair: float(rng.uniform(0.05, 0.95)) for pair in some(open_pairs, 0.3)} if probabilities else {},
    )


def violations(graph, names, knowledge):
    """What the graph does against the knowledge, in words."""
    edges = {(names[i], names[j]) for i in range(len(names)) for j in range(len(names)) if graph[i, j]}
    pairs = lambda given: {tuple(e.split(" -> ")) if isinstance(e, str) else e for e in given}  # noqa: E731
    tier = {name: number for number, members in enumerate(knowledge.tiers) for name in members}
    out = [f"{edge} is missing" for edge in pairs(knowledge.required) - edges]
    out += [f"{edge} is forbidden" for edge in pairs(knowledge.forbidden) & edges]
    out += [f"{e} against tiers" for e in edges if tier.get(e[0], 0) > tier.get(e[1], len(names)) and e[0] in tier]
    out += [f"{e} into a root" for e in edges if e[1] in knowledge.roots]
    out += [f"{e} out of a leaf" for e in edges if e[0] in knowledge.leaves]
    if knowledge.max_parents is not None and graph.sum(axis=0).max() > knowledge.max_parents:
        out.append("too many parents")
    return out
